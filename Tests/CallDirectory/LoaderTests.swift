import AppleStandIn
import Foundation
import Testing
import TrunklineCallDirectory

/// DIR-1, DIR-2: the entries that iOS gets from a file, and the record that is kept of them.
@Suite struct LoaderTests {
  /// A context that records its calls, and answers as the test requires.
  private final class Context: CXCallDirectoryExtensionContext {
    var lines: [String] = []
    var incremental = false
    var completion: ((Bool) -> Void)?
    var cancelled: NSError?
    override var isIncremental: Bool {
      lines.append("isIncremental")
      return incremental
    }
    override func addBlockingEntry(withNextSequentialPhoneNumber phoneNumber: Int64) {
      lines.append("block \(phoneNumber % 1_000)")
    }
    override func removeBlockingEntry(withPhoneNumber phoneNumber: Int64) { lines.append("unblock \(phoneNumber % 1_000)") }
    override func removeAllBlockingEntries() { lines.append("unblock all") }
    override func addIdentificationEntry(withNextSequentialPhoneNumber phoneNumber: Int64, label: String) {
      lines.append("label \(phoneNumber % 1_000) \(label)")
    }
    override func removeIdentificationEntry(withPhoneNumber phoneNumber: Int64) { lines.append("forget \(phoneNumber % 1_000)") }
    override func removeAllIdentificationEntries() { lines.append("forget all") }
    override func completeRequest(completionHandler completion: ((Bool) -> Void)? = nil) {
      lines.append("complete")
      self.completion = completion
    }
    override func cancelRequest(withError error: any Error) {
      lines.append("cancel")
      cancelled = error as NSError
    }
  }
  /// The calls that one request makes; `expired` nil: iOS never answers. - Returns: lines without those that every request has.
  private func said(_ rig: Rig, incremental: Bool, expired: Bool? = false) -> (lines: [String], outcomes: Rig.Log) {
    let (context, log) = (Context(), Rig.Log())
    context.incremental = incremental
    let loader = CallDirectoryLoader(folder: DirectoryFolder(path: rig.path), identifier: rig.name) { log.add($0) }
    loader.load(into: context)
    if let expired { context.completion?(expired) }
    #expect(context.lines.first == "isIncremental", "iOS takes the request as full if it is not read first")
    return (Array(context.lines.dropFirst()), log)
  }
  private let first: [DirectoryEntry] = [.labelled(1, "a"), .labelled(2, "b"), .labelled(3, "c"), .blocked(5), .blocked(4)]
  private let second: [DirectoryEntry] = [.labelled(2, "b"), .labelled(3, "C"), .labelled(9, "i"), .blocked(5), .blocked(6)]

  @Test func `DIR-2: a full request gets every entry ascending and no removal, also with a base`() throws {
    let rig = try Rig()
    try rig.store.replace(with: first)
    for _ in 1...2 {
      let (lines, log) = said(rig, incremental: false)
      #expect(lines == ["block 4", "block 5", "label 1 a", "label 2 b", "label 3 c", "complete"])
      #expect(log.last?.mode == .full && log.last?.added == 5 && log.last?.removed == 0 && log.last?.version == 1)
    }
  }

  @Test func `DIR-2: an incremental request gets the difference from the base, removals first; a new label is both`() throws {
    let rig = try Rig()
    try rig.store.replace(with: first)
    _ = said(rig, incremental: false)
    try rig.store.replace(with: second)
    let (lines, log) = said(rig, incremental: true)
    #expect(lines == ["unblock 4", "forget 1", "forget 3", "block 6", "label 3 C", "label 9 i", "complete"])
    #expect(log.last?.mode == .difference && log.last?.added == 3 && log.last?.removed == 3 && log.last?.version == 2)
    #expect(said(rig, incremental: true).lines == ["complete"], "nothing is new")
  }

  @Test func `DIR-2: an incremental request without a base, or with a damaged one, removes all and gets every entry`() throws {
    let all = ["unblock all", "forget all", "block 5", "block 6", "label 2 b", "label 3 C", "label 9 i", "complete"]
    let damages: [(String, ([UInt8]) -> [UInt8]?)] = [
      ("none", { _ in nil }), ("cut", { Array($0.dropLast()) }), ("empty", { _ in [] }),
      ("changed", { Array($0.dropLast()) + [0x55] }),
      // a valid checksum over a file with a repeated number
      ("crafted", { bytes in FileCraft.sealed(bytes.map { $0 == 1 ? 0 : $0 }) }),
    ]
    for (name, damage) in damages {
      let rig = try Rig()
      try rig.store.replace(with: first)
      _ = said(rig, incremental: false)
      let bytes = damage(try rig.bytes(rig.loaded()))
      try FileManager.default.removeItem(atPath: rig.loaded())
      if let bytes { try rig.put(bytes, rig.loaded()) }
      try rig.store.replace(with: second)
      let (lines, log) = said(rig, incremental: true)
      #expect(lines == all, "base: \(name)")
      #expect(log.last?.mode == .replacement)
      #expect(said(rig, incremental: true).lines == ["complete"], "base: \(name): the new file is the base now")
    }
  }

  @Test func `the version is recorded only when iOS confirms: after an expiry, a failure or silence the next load replaces`()
    throws
  {
    for (name, expired) in [("expired", true), ("silence", nil)] as [(String, Bool?)] {
      let rig = try Rig()
      try rig.store.replace(with: first)
      _ = said(rig, incremental: false)
      #expect(rig.store.loadedVersion(rig.name) == 1)
      try rig.store.replace(with: second)
      let (_, log) = said(rig, incremental: true, expired: expired)
      #expect(rig.store.loadedVersion(rig.name) == nil, "\(name)")
      #expect(log.outcomes.count == (expired == nil ? 0 : 1) && log.last == nil)
      #expect(said(rig, incremental: true).lines.prefix(2) == ["unblock all", "forget all"], "\(name)")
      #expect(rig.store.loadedVersion(rig.name) == 2)
    }
  }

  @Test func `a request that iOS fails is not a base, in whatever order its callbacks come, and the next load repairs`() throws {
    for order in CallDirectoryRules.AfterFailure.allCases {
      for code in [2, 3, 4, 5, 8, 11, 102] {
        let rig = try Rig { $0.afterFailure = order }
        try rig.store.replace(with: first)
        #expect(rig.reload() == nil)
        try rig.store.replace(with: second)
        rig.manager.change { $0.failNext(rig.name, code: code) }
        #expect(rig.reload() == code)
        #expect(rig.store.loadedVersion(rig.name) == nil, "\(order), \(code)")
        if order != .completionThenDelegate { #expect(rig.log.lastFailure?.code == code) }
        #expect(rig.reload() == nil && rig.log.last?.mode == .replacement)
        var model = Model()
        for entry in second { model.add(entry) }
        #expect(model.differences(rig) == [], "\(order), \(code)")
      }
    }
  }

  @Test func `the file that was read is the base, also if the app replaces it before iOS confirms`() throws {
    let rig = try Rig()
    try rig.store.replace(with: first)
    let (context, log) = (Context(), Rig.Log())
    let loader = CallDirectoryLoader(folder: DirectoryFolder(path: rig.path), identifier: rig.name) { log.add($0) }
    loader.load(into: context)
    try rig.store.replace(with: second)
    context.completion?(false)
    #expect(log.last?.version == 1 && rig.store.loadedVersion(rig.name) == 1 && rig.store.version == 2)
    #expect(said(rig, incremental: true).lines.contains("unblock 4"), "the difference is to the first")
    #expect(try rig.files() == ["example.app.directory1.current", "example.app.directory1.loaded"])
  }

  @Test func `a file that is missing or damaged cancels the request before an entry, and the base stays`() throws {
    let rig = try Rig()
    #expect(said(rig, incremental: false).lines == ["cancel"])
    try rig.store.replace(with: first)
    _ = said(rig, incremental: false)
    try rig.put(Array(try rig.bytes(rig.current()).dropLast()), rig.current())
    for incremental in [true, false] {
      let (lines, log) = said(rig, incremental: incremental)
      #expect(lines == ["cancel"] && log.lastFailure?.nextStep == .writeAgain && log.outcomes.count == 1)
    }
    try rig.store.replace(with: first + [.blocked(7)])
    #expect(said(rig, incremental: true).lines == ["block 7", "complete"])
  }

  @Test func `a file whose fault is found between its entries is cancelled, and the next load replaces`() throws {
    let rig = try Rig()
    try rig.store.replace(with: first)
    _ = said(rig, incremental: false)
    let whole = try rig.bytes(rig.current())
    try rig.put(FileCraft.sealed(whole.dropLast() + [0xFF]), rig.current())
    let (lines, log) = said(rig, incremental: false)
    #expect(lines.first == "block 4" && lines.last == "cancel" && log.lastFailure?.domain == CallDirectoryFailure.ourDomain)
    try rig.store.replace(with: first)
    #expect(said(rig, incremental: true).lines.first == "unblock all")
  }

  @Test func `with a base, a file whose fault is between its entries is seen before iOS gets an entry, and the base stays`()
    throws
  {
    let rig = try Rig()
    try rig.store.replace(with: first)
    _ = said(rig, incremental: false)
    try rig.put(FileCraft.sealed(try rig.bytes(rig.current()).dropLast() + [0xFF]), rig.current())
    #expect(said(rig, incremental: true).lines == ["cancel"])
    try rig.store.replace(with: first + [.blocked(7)])
    #expect(said(rig, incremental: true).lines == ["block 7", "complete"])
  }

  @Test func `an identifier that cannot be a file name and a missing app group cancel with what to do`() throws {
    let (context, log) = (Context(), Rig.Log())
    CallDirectoryLoader(folder: DirectoryFolder(path: "/tmp"), identifier: "../etc/passwd") { log.add($0) }.load(into: context)
    #expect(context.lines.last == "cancel" && log.lastFailure?.nextStep == .correctProject)
    let other = Context()
    TrunklineCallDirectoryProvider().beginRequest(with: other)
    #expect(other.lines == ["cancel"] && other.cancelled?.localizedDescription.contains("App Groups") == true)
    #expect(throws: DirectoryError.noAppGroup("group.example")) { try DirectoryFolder(appGroup: "group.example") }
  }

  @Test func `interrupted by iOS while it loads: error 2, and the late confirmation counts for nothing`() throws {
    let rig = try Rig()
    try rig.store.replace(with: first)
    nonisolated(unsafe) var open: CXCallDirectoryExtensionContext?
    final class Slow: CXCallDirectoryProvider {
      let begun: (CXCallDirectoryExtensionContext) -> Void
      init(_ begun: @escaping (CXCallDirectoryExtensionContext) -> Void) {
        self.begun = begun
        super.init()
      }
      override func beginRequest(with context: CXCallDirectoryExtensionContext) { begun(context) }
    }
    rig.manager.install(rig.name) { Slow { open = $0 } }
    rig.reload()
    rig.manager.interrupt(rig.name)
    let context = try #require(open)
    let log = Rig.Log()
    let loader = CallDirectoryLoader(folder: DirectoryFolder(path: rig.path), identifier: rig.name) { log.add($0) }
    loader.load(into: context)
    #expect(log.lastFailure?.nextStep == .tryLater && rig.store.loadedVersion(rig.name) == nil)
  }
}
