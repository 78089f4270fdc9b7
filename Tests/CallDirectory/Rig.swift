import AppleStandIn
import Foundation
import Synchronization
import TrunklineCallDirectory

/// A telephone with one app's extensions: their folder, the app's store, and iOS as its stand-in.
final class Rig {
  /// The outcomes that a loader or the app got, in order.
  final class Log: Sendable {
    private let all = Mutex<[CallDirectoryLoader.Outcome]>([])
    func add(_ outcome: CallDirectoryLoader.Outcome) { all.withLock { $0.append(outcome) } }
    var outcomes: [CallDirectoryLoader.Outcome] { all.withLock { $0 } }
    var last: CallDirectoryLoader.Report? { try? outcomes.last?.get() }
    var lastFailure: CallDirectoryFailure? {
      guard case .failure(let failure) = outcomes.last else { return nil }
      return failure
    }
  }
  /// An extension as an app's author would write it.
  final class Directory: TrunklineCallDirectoryProvider {
    let path: String
    let name: String
    let log: Log
    init(_ path: String, _ name: String, _ log: Log) {
      (self.path, self.name, self.log) = (path, name, log)
      super.init()
    }
    override var identifier: String { name }
    override func folder() throws(DirectoryError) -> DirectoryFolder { DirectoryFolder(path: path) }
    override func ended(_ outcome: CallDirectoryLoader.Outcome) { log.add(outcome) }
  }

  let path: String
  let names: [String]
  let store: DirectoryStore
  let manager: CXCallDirectoryManager
  let log = Log()
  var name: String { names[0] }

  init(extensions: Int = 1, entriesPerExtension: Int = 1_000, _ change: (inout CallDirectoryRules) -> Void = { _ in }) throws {
    path = NSTemporaryDirectory() + "directory-" + UUID().uuidString
    names = (1...extensions).map { "example.app.directory\($0)" }
    store = try DirectoryStore(
      folder: DirectoryFolder(path: path), extensions: names, entriesPerExtension: entriesPerExtension)
    var rules = CallDirectoryRules()
    change(&rules)
    manager = CXCallDirectoryManager(rules: rules)
    for name in names { manager.install(name) { [path, log] in Directory(path, name, log) } }
  }
  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// - Returns: the code that the app gets; -1 if it gets no callback.
  @discardableResult
  func reload(_ name: String? = nil) -> Int? {
    let code = Mutex<Int?>(-1)
    manager.reloadExtension(withIdentifier: name ?? self.name) { error in
      code.withLock { $0 = error.map { ($0 as NSError).code } }
    }
    return code.withLock { $0 }
  }

  func match(_ number: Int64) -> CallDirectorySystem.Match { manager.change { $0.match(number) } }
  func files() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: path).sorted() }
  func current(_ name: String? = nil) -> String { "\(path)/\(name ?? self.name).current" }
  func loaded(_ name: String? = nil) -> String { "\(path)/\(name ?? self.name).loaded" }
  func bytes(_ file: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(fileURLWithPath: file))) }
  /// Replaces the file by a new one of the same name, as the store does.
  func put(_ bytes: [UInt8], _ file: String) throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    try Data(bytes).write(to: URL(fileURLWithPath: file), options: .atomic)
  }
}

/// The expected directory, by the rules in words: for each list the last change of a number applies.
struct Model {
  var labels: [Int64: String] = [:]
  var blocked: Set<Int64> = []

  mutating func add(_ entry: DirectoryEntry) {
    if entry.isBlocked { blocked.insert(entry.number.value) }
    if let label = entry.label, !label.isEmpty { labels[entry.number.value] = label }
  }
  mutating func remove(_ removal: DirectoryChunk.Removal) {
    switch removal.list {
    case .blocking: blocked.remove(removal.number.value)
    case .identification: labels[removal.number.value] = nil
    }
  }
  /// Numbers whose labels or blocks on the telephone differ, and a negative one if its number of entries does.
  func differences(_ rig: Rig) -> [Int64] {
    rig.manager.change { [self] system in
      let numbers = Set(labels.keys).union(blocked)
      var wrong = numbers.filter { system.match($0) != .init(label: labels[$0], isBlocked: blocked.contains($0)) }
      let held = rig.names.reduce(0) { $0 + system.count($1, .blocking) + system.count($1, .identification) }
      if held != labels.count + blocked.count { wrong.insert(-Int64(held)) }
      return wrong.sorted()
    }
  }
}

/// The number with this index in the range.
func phone(_ index: Int) -> PhoneNumber {
  PhoneNumber(15_550_000_000 + Int64(index)) ?? phone(abs(index % 1_000_000))
}

extension DirectoryEntry {
  static func labelled(_ index: Int, _ label: String) -> Self { Self(phone(index), label: label) }
  static func blocked(_ index: Int) -> Self { Self(phone(index), isBlocked: true) }

  static func random(_ random: inout Seeded, numbers: Int) -> Self {
    let index = Int.random(in: 0..<numbers, using: &random)
    let labels = ["Bank", "Spam likely", "Ärztin 医生 🩺", "", String(repeating: "long ", count: 20), "n\(index)"]
    return Self(
      phone(index), label: Bool.random(using: &random) ? labels.randomElement(using: &random) : nil,
      isBlocked: Int.random(in: 0..<3, using: &random) == 0)
  }
}
