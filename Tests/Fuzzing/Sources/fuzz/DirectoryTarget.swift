import AppleStandIn
import Foundation
import Glibc
import TrunklineCallDirectory

/// The file of a Call Directory extension, as a cut write or a hand may leave it: refused, or said to iOS in order. The first byte chooses: whether
/// both checksums are made right, so that the bytes get past them, and whether they are the file or the base of a difference.
@Sendable func fuzzDirectory(_ bytes: [UInt8]) {
  guard let first = bytes.first, let fixture = directoryFixture else { return }
  var file = Array(bytes.dropFirst())
  if first & 1 == 1 { file = sealed(file) }
  let isBase = first & 2 == 2
  fixture.put(isBase ? fixture.small : file, "example.current")
  if isBase || first & 4 == 4 {
    fixture.put(isBase ? file : fixture.small, "example.loaded")
  } else {
    unlink(fixture.path + "/example.loaded")
  }
  let context = ListeningContext(isIncremental: first & 6 != 0)
  let box = OutcomeBox()
  let loader = CallDirectoryLoader(folder: DirectoryFolder(path: fixture.path), identifier: "example") { box.value = $0 }
  loader.load(into: context)
  let outcome = box.value
  precondition(outcome != nil && context.ends == 1, "a request ends once")
  if case .success? = outcome { precondition(context.isCompleted && context.isInOrder, "iOS hears ascending numbers, each once") }
  if case .failure? = outcome { precondition(!context.isCompleted, "what is damaged is cancelled") }
  if isBase { precondition(context.isCompleted, "a damaged base costs a full load, not the directory") }
  guard !isBase else { return }
  let isRight = (try? fixture.store.verify("example")) != nil
  precondition(isRight || !context.isCompleted, "what cannot be read to its end is not loaded")
  // the app's next write repairs it
  if first & 8 == 8 {
    _ = try? fixture.store.replace(with: [])
    precondition(fixture.store.version != nil, "a full write repairs the directory")
  }
}

private final class OutcomeBox: @unchecked Sendable {
  // Unchecked: the loader ends within `load`.
  var value: CallDirectoryLoader.Outcome?
}

private struct DirectoryFixture: @unchecked Sendable {
  // Unchecked: the fuzzer has one thread.
  let path: String
  let store: DirectoryStore
  /// A small file that the store wrote.
  let small: [UInt8]

  init?() {
    path = NSTemporaryDirectory() + "/fuzz-directory-\(getpid())"
    guard mkdir(path, 0o700) == 0 || errno == EEXIST,
      let store = try? DirectoryStore(folder: DirectoryFolder(path: path), extensions: ["example"]),
      let number = PhoneNumber(15_550_000_001 as Int64), let other = PhoneNumber(15_550_000_400 as Int64),
      (try? store.replace(with: [
        DirectoryEntry(number, label: "Bank", isBlocked: true), DirectoryEntry(other, label: "Bank"),
      ])) != nil, let data = FileManager.default.contents(atPath: path + "/example.current")
    else { return nil }
    (self.store, small) = (store, [UInt8](data))
  }

  func put(_ bytes: [UInt8], _ name: String) {
    // a new file each time: the loader holds links to the old one
    unlink(path + "/" + name)
    let file = open(path + "/" + name, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    _ = bytes.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
    close(file)
  }
}
private let directoryFixture = DirectoryFixture()

/// Hears what the extension says.
private final class ListeningContext: CXCallDirectoryExtensionContext {
  private let incremental: Bool
  private var last: [Bool: Int64] = [:]
  private(set) var isInOrder = true
  private(set) var isCompleted = false
  private(set) var ends = 0

  init(isIncremental: Bool) {
    incremental = isIncremental
    super.init()
  }
  override var isIncremental: Bool { incremental }
  private func received(_ number: Int64, isBlocking: Bool) {
    if number <= last[isBlocking] ?? 0 { isInOrder = false }
    last[isBlocking] = number
  }
  override func addBlockingEntry(withNextSequentialPhoneNumber phoneNumber: CXCallDirectoryPhoneNumber) {
    received(phoneNumber, isBlocking: true)
  }
  override func addIdentificationEntry(withNextSequentialPhoneNumber phoneNumber: CXCallDirectoryPhoneNumber, label: String) {
    received(phoneNumber, isBlocking: false)
    if label.isEmpty || label.utf8.count > DirectoryLimits.labelBytes { isInOrder = false }
  }
  override func completeRequest(completionHandler completion: ((Bool) -> Void)? = nil) {
    (isCompleted, ends) = (true, ends + 1)
    completion?(false)
  }
  override func cancelRequest(withError error: any Error) { ends += 1 }
}

/// Both checksums made right (docs/design/call-directory.md).
private func sealed(_ bytes: [UInt8]) -> [UInt8] {
  guard bytes.count >= 64 else { return bytes }
  var bytes = bytes
  bytes.replaceSubrange(36..<40, with: little(crc(bytes[64...])))
  bytes.replaceSubrange(60..<64, with: little(crc(bytes[..<60])))
  return bytes
}
private func little(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (8 * UInt32($0))) } }
private func crc(_ bytes: ArraySlice<UInt8>) -> UInt32 {
  var crc = UInt32.max
  for byte in bytes {
    crc ^= UInt32(byte)
    for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
  }
  return ~crc
}
