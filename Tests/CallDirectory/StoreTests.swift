import AppleStandIn
import Foundation
import Testing
import TrunklineCallDirectory

/// DIR-5: from entries of any source to what the telephone shows.
@Suite struct StoreTests {
  private func error(_ body: () throws(DirectoryError) -> Void) -> DirectoryError? {
    do throws(DirectoryError) {
      try body()
      return nil
    } catch { return error }
  }

  @Test func `DIR-5: the last label of a number wins, an empty one says nothing, and a block stays`() throws {
    let rig = try Rig()
    try rig.store.replace(with: [
      .labelled(2, "old"), .blocked(2), .labelled(1, "x"), .labelled(2, "new"), .labelled(2, ""), .blocked(2),
      DirectoryEntry(phone(3)),
    ])
    #expect(rig.reload() == nil)
    #expect(rig.match(phone(2).value) == .init(label: "new", isBlocked: true))
    #expect(rig.match(phone(1).value) == .init(label: "x", isBlocked: false))
    #expect(rig.manager.change { $0.count(rig.name, .identification) } == 2)
  }

  @Test func `versions grow by one, or as the server says, and never go back`() throws {
    let rig = try Rig()
    #expect(rig.store.version == nil)
    #expect(try rig.store.replace(with: []).version == 1)
    #expect(try rig.store.replace(with: []).version == 2)
    #expect(try rig.store.replace(with: [], version: 40).version == 40)
    for version in [40, 39, 0] as [UInt64] {
      #expect(
        error { () throws(DirectoryError) in try rig.store.replace(with: [], version: version) }
          == .versionNotNewer(given: version, stored: 40))
    }
    #expect(try rig.store.replace(with: []).version == 41 && rig.store.version == 41)
  }

  @Test func `entries are split over the extensions, and the telephone shows all of them`() throws {
    let rig = try Rig(extensions: 3, entriesPerExtension: 4)
    let entries = (0..<5).map { DirectoryEntry.blocked($0) } + (0..<6).map { .labelled($0, "l\($0)") }
    let summary = try rig.store.replace(with: entries)
    #expect(summary.entries == [4, 4, 3] && summary.blocked == 5 && summary.identified == 6)
    for name in rig.names { #expect(rig.reload(name) == nil) }
    var model = Model()
    for entry in entries { model.add(entry) }
    #expect(model.differences(rig) == [])
    try rig.store.replace(with: [.blocked(1)])
    for name in rig.names { #expect(rig.reload(name) == nil) }
    #expect(rig.names.map { name in rig.manager.change { $0.count(name, .blocking) } } == [1, 0, 0])
    #expect(rig.names.map { name in rig.manager.change { $0.count(name, .identification) } } == [0, 0, 0])
  }

  @Test func `one entry more than all extensions hold is refused, and the files stay`() throws {
    let rig = try Rig(extensions: 2, entriesPerExtension: 4)
    try rig.store.replace(with: (0..<8).map { .blocked($0) })
    #expect(
      error { () throws(DirectoryError) in try rig.store.replace(with: (0..<9).map { .blocked($0) }) }
        == .tooManyEntries(count: 9, extensions: 2, needed: 3))
    #expect(rig.store.version == 1 && rig.names.allSatisfy { rig.reload($0) == nil })
  }

  @Test func `a store is refused that names no extension, one twice, one that is no identifier, or a limit below one`() throws {
    let folder = DirectoryFolder(path: "/tmp")
    for names in [[], ["a", "a"], ["a/b"], [""], [".."], ["a b"], [String(repeating: "a", count: 201)]] {
      #expect(throws: DirectoryError.self, "\(names)") { try DirectoryStore(folder: folder, extensions: names) }
    }
    #expect(throws: DirectoryError.self) { try DirectoryStore(folder: folder, extensions: ["a"], entriesPerExtension: 0) }
  }

  @Test func `a folder that cannot be made or written is an error with the call and errno`() throws {
    let store = try DirectoryStore(folder: DirectoryFolder(path: "/proc/none/directory"), extensions: ["a"])
    guard case .system(let call, _, let code)? = error({ () throws(DirectoryError) in try store.replace(with: []) }) else {
      Issue.record("no system error")
      return
    }
    #expect(call == "mkdir" && code != 0)
  }

  @Test func `chunks: the full directory, then differences, each to the version before`() throws {
    let rig = try Rig()
    try rig.store.apply([
      DirectoryChunk(version: 5, adds: [.labelled(1, "a"), .blocked(1)]), DirectoryChunk(version: 5, adds: [.labelled(2, "b")]),
    ])
    #expect(rig.store.version == 5 && rig.reload() == nil && rig.match(phone(2).value).label == "b")
    try rig.store.apply([
      DirectoryChunk(version: 6, base: 5, removes: [.init(phone(1), from: .identification), .init(phone(8), from: .blocking)]),
      DirectoryChunk(
        version: 6, base: 5, removes: [.init(phone(2), from: .identification)], adds: [.labelled(2, "B"), .blocked(3)]),
    ])
    #expect(rig.reload() == nil && rig.log.last?.mode == .difference)
    #expect(rig.match(phone(1).value) == .init(label: nil, isBlocked: true), "the lists are independent")
    #expect(rig.match(phone(2).value).label == "B" && rig.match(phone(3).value).isBlocked)
    try rig.store.apply([DirectoryChunk(version: 9, adds: [.labelled(4, "d")])])
    #expect(rig.reload() == nil && rig.match(phone(4).value).label == "d" && rig.match(phone(3).value).isBlocked == false)
  }

  @Test func `chunks that do not fit what is stored are refused: ask for the full directory, or nothing to do`() throws {
    let rig = try Rig(extensions: 2)
    func refusal(_ chunks: [DirectoryChunk]) -> DirectoryError? {
      error { () throws(DirectoryError) in try rig.store.apply(chunks) }
    }
    #expect(refusal([DirectoryChunk(version: 2, base: 1)]) == .baseMissing(needed: 1, stored: nil))
    try rig.store.replace(with: [.blocked(1)], version: 5)
    #expect(refusal([DirectoryChunk(version: 7, base: 6)]) == .baseMissing(needed: 6, stored: 5))
    #expect(refusal([DirectoryChunk(version: 5, base: 4)]) == .versionNotNewer(given: 5, stored: 5))
    #expect(refusal([DirectoryChunk(version: 5)]) == .versionNotNewer(given: 5, stored: 5))
    #expect(refusal([DirectoryChunk(version: 6, base: 5), DirectoryChunk(version: 6, base: 4)]) == .mixedChunks)
    #expect(refusal([DirectoryChunk(version: 6, base: 5), DirectoryChunk(version: 7, base: 5)]) == .mixedChunks)
    #expect(refusal([]) == .mixedChunks)
    try rig.put([], rig.current(rig.names[1]))
    #expect(rig.store.version == nil, "one of two files is damaged")
    #expect(refusal([DirectoryChunk(version: 6, base: 5)]) == .baseMissing(needed: 5, stored: nil))
    #expect(refusal([DirectoryChunk(version: 4)]) == .versionNotNewer(given: 4, stored: 5))
    #expect(refusal([DirectoryChunk(version: 5, adds: [.blocked(1)])]) == nil, "the same version makes it whole again")
    #expect(rig.store.version == 5)
  }

  @Test(arguments: 0..<60)
  func `random changes, losses and failures: the telephone shows what the model holds (property)`(seed: Int) throws {
    var random = Seeded(UInt64(seed))
    let rig = try Rig(extensions: seed % 3 + 1, entriesPerExtension: 200) {
      $0.afterFailure = CallDirectoryRules.AfterFailure.allCases[seed % 3]
    }
    var model = Model()
    for step in 0..<12 {
      let adds = (0..<Int.random(in: 0...40, using: &random)).map { _ in DirectoryEntry.random(&random, numbers: 90) }
      let version = rig.store.version
      if let version, Bool.random(using: &random) {
        let removes = (0..<Int.random(in: 0...20, using: &random)).map { _ in
          DirectoryChunk.Removal(
            phone(Int.random(in: 0..<90, using: &random)), from: Bool.random(using: &random) ? .blocking : .identification)
        }
        try rig.store.apply([
          DirectoryChunk(version: version + 1, base: version, removes: removes),
          DirectoryChunk(version: version + 1, base: version, adds: adds),
        ])
        for removal in removes { model.remove(removal) }
      } else {
        try rig.store.replace(with: adds)
        model = Model()
      }
      for entry in adds { model.add(entry) }
      for name in rig.names {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: try? FileManager.default.removeItem(atPath: rig.loaded(name))
        case 1: rig.manager.change { $0.forget(name) }
        case 2:
          rig.manager.change { $0.failNext(name, code: 102) }
          #expect(rig.reload(name) == 102)
        case 3:
          rig.manager.change { system in
            system.set(name, .disabled)
            system.set(name, .enabled)
          }
        default: break
        }
        #expect(rig.reload(name) == nil, "seed \(seed), step \(step)")
      }
      #expect(model.differences(rig) == [], "seed \(seed), step \(step)")
    }
  }
}
