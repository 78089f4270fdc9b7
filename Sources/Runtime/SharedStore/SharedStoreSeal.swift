import JSONWebToken
import Synchronization
import TrunklineBytes
import TrunklinePlatform

/// Signs the values that nodes write into the shared store, and verifies them when they are read: HMAC under a key derived from
/// `cluster.key`, over the name of the key, the field in it and the value. So a client that may write to the shared store, but
/// lacks the key, cannot make a value or move one to another key.
///
/// | value | signed | not signed |
/// |---|---|---|
/// | JSON | all between its braces; `"h"`, the tag, comes last | the numbers that a script prepends: `"t"`, `"n"` |
/// | text of a claim | all; the tag is its last line | |
/// | part of a directory | all; the tag is its last line | its directory and its index |
///
/// It does not detect a value that is withheld, or an old one that is restored. Docs: docs/design/cluster-shared-store.md, What
/// is signed.
final class SharedStoreSeal: Sendable {
  private let key: PurposeKey
  private let clock: @Sendable () -> Int64
  private let failures = Mutex<(count: Int, position: String)>((0, ""))

  /// Nil: the key is empty. `clock`: milliseconds since 1970.
  init?(clusterKey: [UInt8], clock: @escaping @Sendable () -> Int64 = { WallClock.nowMilliseconds() }) {
    guard let key = PurposeKey("trunkline shared store values 1", from: clusterKey) else { return nil }
    (self.key, self.clock) = (key, clock)
  }

  // MARK: JSON

  private static let mark = Array(#","h":""#.utf8)
  private static let end = Array(#""}"#.utf8)
  private static let tagCharacters = 22
  private static let tail = mark.count + tagCharacters + end.count

  /// - Parameter value: a JSON object that is not empty.
  func seal(_ value: [UInt8], at position: String) -> [UInt8] {
    guard value.count > 2, value.first == UInt8(ascii: "{"), value.last == UInt8(ascii: "}") else { return value }
    let content = value[1..<value.count - 1]
    return value.dropLast() + Self.mark + Array(Base64URL.encode(tag(content, position)).utf8) + Self.end
  }

  /// - Parameter counted: the name of the number that a script may have prepended.
  func isGenuine(_ value: [UInt8], at position: String, counted: Character? = nil) -> Bool {
    isSealed(value, at: position, counted: counted) || failed(position)
  }

  private func isSealed(_ value: [UInt8], at position: String, counted: Character?) -> Bool {
    guard value.count > Self.tail, value.first == UInt8(ascii: "{"), value.suffix(Self.end.count).elementsEqual(Self.end) else {
      return false
    }
    let start = value.count - Self.tail
    let tagStart = start + Self.mark.count
    guard value[start..<tagStart].elementsEqual(Self.mark),
      let tag = Base64URL.decode(value[tagStart..<tagStart + Self.tagCharacters])
    else { return false }
    let content = value[1..<start]
    return key.isTag(tag, of: message(content.dropFirst(Self.counted(content, counted)), position))
  }

  /// The bytes of a prepended `"t":123,`.
  private static func counted(_ content: ArraySlice<UInt8>, _ name: Character?) -> Int {
    guard let name else { return 0 }
    let head = Array("\"\(name)\":".utf8)
    guard content.starts(with: head) else { return 0 }
    let digits = content.dropFirst(head.count).prefix { (48...57).contains($0) }
    guard !digits.isEmpty, digits.count <= 19, digits.endIndex < content.endIndex, content[digits.endIndex] == UInt8(ascii: ",")
    else { return 0 }
    return head.count + digits.count + 1
  }

  // MARK: lines

  func sealed(lines: [UInt8], at position: String) -> [UInt8] {
    lines + [10] + Array(Base64URL.encode(tag(lines[...], position)).utf8)
  }

  /// The content without its last line; nil: that is not a signature of it.
  func opened(lines: [UInt8], at position: String) -> [UInt8]? {
    let last = lines.suffix(Self.tagCharacters + 1)
    let content = lines.dropLast(Self.tagCharacters + 1)
    guard last.count == Self.tagCharacters + 1, last.first == 10, let tag = Base64URL.decode(last.dropFirst()),
      key.isTag(tag, of: message(content, position))
    else {
      _ = failed(position)
      return nil
    }
    return Array(content)
  }

  // MARK: time

  /// The end of a lease or message, in seconds since 1970: at least `Limits.sealed` from now, on a grid, so that unchanged values
  /// have the same bytes.
  var end: Int64 {
    (clock() / 1_000 + Limits.sealed.seconds) / Limits.sealedGrid.seconds * Limits.sealedGrid.seconds + Limits.sealedGrid.seconds
  }
  /// A value without an end is refused, too.
  func isOver(_ end: Int64?, at position: String) -> Bool {
    if let end, end > clock() / 1_000 { return false }
    return !failed(position)
  }

  // MARK: failures

  /// The number of values with a bad signature since the last call, and the position of the last one.
  func drainFailures() -> (count: Int, position: String)? {
    failures.withLock { failures in
      defer { failures = (0, "") }
      return failures.count > 0 ? failures : nil
    }
  }

  private func failed(_ position: String) -> Bool {
    failures.withLock { $0 = ($0.count + 1, String(position.prefix { $0 != "\n" }.prefix(200))) }
    return false
  }

  private func tag(_ content: ArraySlice<UInt8>, _ position: String) -> [UInt8] { key.tag(message(content, position)) }

  /// The length of the position comes first, so that no two pairs of position and value have the same bytes.
  private func message(_ content: ArraySlice<UInt8>, _ position: String) -> [UInt8] {
    let name = Array(position.utf8)
    return withUnsafeBytes(of: UInt32(clamping: name.count).bigEndian) { Array($0) } + name + content
  }
}

extension Duration { fileprivate var seconds: Int64 { components.seconds } }

/// Positions of values, and their signatures. Without a seal nothing is signed, and every value is accepted.
extension SharedStoreKeys {
  func sealed(_ value: [UInt8], at key: String, field: String = "") -> [UInt8] {
    seal?.seal(value, at: Self.position(key, field: field)) ?? value
  }
  func isGenuine(_ value: [UInt8], at key: String, field: String = "", counted: Character? = nil) -> Bool {
    seal?.isGenuine(value, at: Self.position(key, field: field), counted: counted) ?? true
  }
  func sealed(lines: [UInt8], at key: String, field: String = "") -> [UInt8] {
    seal?.sealed(lines: lines, at: Self.position(key, field: field)) ?? lines
  }
  func opened(lines: [UInt8], at key: String, field: String = "") -> [UInt8]? {
    guard let seal else { return lines }
    return seal.opened(lines: lines, at: Self.position(key, field: field))
  }
  func isOver(_ end: Int64?, _ key: String) -> Bool { seal?.isOver(end, at: Self.position(key, field: "")) ?? false }

  /// No key contains a line break.
  private static func position(_ key: String, field: String) -> String { "\(key)\n\(field)" }
}
