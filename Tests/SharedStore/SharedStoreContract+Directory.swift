import Cluster
import Testing
import TrunklineBytes

/// Histories and directories, in every shared store.
extension SharedStoreContract {
  func histories(_ a: any SharedStoreUnderTest, _ b: any SharedStoreUnderTest) throws {
    let user = user("history")
    func add(_ number: UInt64, _ sharedStore: any SharedStoreUnderTest, most: Int = 200, keep: Duration = .seconds(60)) throws
      -> (
        number: Int64?, at: Set<Incarnation>
      )
    {
      let row = Array(#""v":1,"c":"\#(call(number))","p":"+1\"c\":\"x"}"#.utf8)
      let request = SharedStoreRequest.addHistory(call(number), user: user, row: row, most: most, keep: keep)
      guard case .added(let number, let at) = try sharedStore.ask(request) else { throw PeerFailure(description: "not added") }
      return (number, at)
    }
    func rows(before: Int64? = nil, most: Int = 200, keep: Duration = .seconds(60)) throws -> (calls: [UInt64], hasMore: Bool) {
      guard case .values(let rows, let more) = try b.ask(.history(of: user, before: before, most: most, keep: keep)) else {
        throw PeerFailure(description: "no rows")
      }
      let texts = rows.map { String(decoding: $0, as: UTF8.self) }
      let calls = texts.compactMap { text in
        (1...20 as ClosedRange<UInt64>).first { text.contains(#""c":"\#(call($0))""#) && text.hasPrefix(#"{"n":"#) }
      }
      return (calls, more == 1)
    }
    #expect(try rows().calls.isEmpty)
    let first = try #require(try add(1, a).number)
    #expect(try add(1, b).number == nil, says("a call is added once, whichever node adds it"))
    let second = try add(2, b)
    #expect(try #require(second.number) > first && second.at.isEmpty, says("numbers grow"))
    #expect(try rows().calls == [2, 1] && rows(before: second.number).calls == [1], says("the last comes first, and pages"))
    let page = try rows(most: 1)
    #expect(try page.calls == [2] && page.hasMore && !rows(most: 2).hasMore)
    _ = try a.enter(location(user, "phone", a.incarnation))
    _ = try b.enter(location(user, "desk", b.incarnation))
    #expect(try add(3, a).at == [a.incarnation, b.incarnation], says("where the user's devices are"))
    for number in 4...10 as ClosedRange<UInt64> { _ = try add(number, a, most: 5) }
    #expect(try rows().calls == [10, 9, 8, 7, 6], says("the oldest go"))
    #expect(try b.ask(.forgetHistory(of: user)) == .count(5) && a.ask(.forgetHistory(of: user)) == .count(0))
    #expect(try rows().calls.isEmpty && (add(1, a, keep: .milliseconds(1)).number ?? 0) > 0)
    try a.wait(for: "the row is older than it is kept") { try rows(keep: .milliseconds(1)).calls.isEmpty }
  }

  func directories(_ a: any SharedStoreUnderTest, _ b: any SharedStoreUnderTest) throws {
    let (scope, other) = ("user:" + user("d}"), "account:" + user("o"))
    var number = 0
    /// Stages a part of each text.
    func stage(_ sharedStore: any SharedStoreUnderTest, _ texts: String...) throws -> [String] {
      let pieces = texts.map { text in
        number += 1
        return DirectoryPiece(user("p\(number)").replacing("-", with: "."), Array(text.utf8))
      }
      #expect(try sharedStore.ask(.stageDirectoryParts(pieces)) == .done)
      return pieces.map(\.name)
    }
    func read(_ names: [String]) throws -> [String] {
      guard case .directoryParts(let pieces) = try b.ask(.directoryParts(names)) else {
        throw PeerFailure(description: "no parts")
      }
      #expect(pieces.map(\.name) == names.filter { pieces.map(\.name).contains($0) })
      return pieces.map { String(decoding: $0.content, as: UTF8.self) }
    }
    func commit(
      _ sharedStore: any SharedStoreUnderTest, _ scope: String, _ from: Int64, _ to: Int64, made: [String] = [],
      dropped: [String] = []
    ) throws -> (outcome: CommitOutcome, version: Int64, last: Int64) {
      let commit = DirectoryCommit(scope, from: from, to: to, head: Array("head \(to)\n".utf8), made: made, dropped: dropped)
      guard case .committed(let outcome, let version, let last) = try sharedStore.ask(.commitDirectory(commit)) else {
        throw PeerFailure(description: "no outcome")
      }
      return (outcome, version, last)
    }
    func head(_ scope: String) throws -> (text: String?, version: Int64, clock: Int64) {
      guard case .directoryHead(let head, let version, let clock) = try b.ask(.directoryHead(scope)) else {
        throw PeerFailure(description: "no head")
      }
      return (head.map { String(decoding: $0, as: UTF8.self) }, version, clock)
    }
    func versions(since: Int64) throws -> DirectoryVersions {
      guard case .directories(let seen) = try b.ask(.directories(since: since)) else {
        throw PeerFailure(description: "no versions")
      }
      return seen
    }
    // later than the versions of other runs
    let base = try versions(since: 0).last + 100
    let before = try head(scope)
    #expect(before.text == nil && before.version == 0)
    let first = try stage(a, "one", "two\n")
    #expect(try read(first + ["none"]) == ["one", "two\n"], says("what is staged can be read, what is not there is left out"))
    #expect(try commit(a, scope, 4, base + 10, made: first) == (.conflict, 0, base - 100), says("another version was expected"))
    #expect(try commit(a, scope, 0, base + 10, made: first + ["none"]).outcome == .missing, says("a part is missing"))
    #expect(try head(scope).version == 0 && versions(since: 0).last == base - 100, says("and nothing has changed"))
    #expect(try commit(a, scope, 0, base + 10, made: first).outcome == .done)
    #expect(try head(scope).text == "head \(base + 10)\n" && head(scope).version == base + 10)
    #expect(try commit(b, scope, 0, base + 20).outcome == .conflict, says("of two that were made of one version the first stays"))
    #expect(try commit(b, other, 0, base + 10) == (.late, 0, base + 10), says("a version is later than any other"))
    #expect(try commit(b, other, 0, base + 12).outcome == .done)
    let second = try stage(b, "three")
    #expect(try commit(b, scope, base + 10, base + 14, made: second, dropped: [first[0]]) == (.done, base + 10, base + 12))
    #expect(try commit(a, scope, base + 14, base + 16, made: second).outcome == .missing, says("a part is staged once"))
    #expect(try head(scope).version == base + 14)
    #expect(try read(first + second) == ["one", "two\n", "three"], says("what is dropped can be read for a while"))
    #expect(try versions(since: base + 10).versions.map(\.scope) == [other, scope], says("by version"))
    #expect(try versions(since: base + 12).versions.map(\.version) == [base + 14] && versions(since: base + 14).versions.isEmpty)
    let epoch = try versions(since: 0).epoch
    #expect(try !epoch.isEmpty && !versions(since: base + 14).hasMore)
    #expect(try head(scope).clock >= before.clock)
    let long = try stage(a, String(repeating: "x", count: 60_000), String(repeating: "y", count: 60_000))
    #expect(try read(long).map(\.utf8.count) == [60_000, 60_000], says("parts are as long as nodes make them"))
    #expect(try commit(a, scope, base + 14, base + 20, made: long, dropped: second + [first[1]]).outcome == .done)
    #expect(try versions(since: base + 12).epoch == epoch)
    // parts that a commit drops expire in steps, at whichever node
    func expire(_ sharedStore: any SharedStoreUnderTest) throws -> Int {
      guard case .count(let left) = try sharedStore.ask(.expireDirectoryParts) else { throw PeerFailure(description: "no count") }
      return left
    }
    while try expire(a) > 0 {}
    let many = (0..<450).map { user("d\($0)").replacing("-", with: ".") }
    #expect(try commit(a, scope, base + 20, base + 30, dropped: long + many).outcome == .done)
    #expect(try expire(b) == 252 && expire(a) == 52 && expire(b) == 0 && expire(a) == 0)
    #expect(try read(long).count == 2, says("and can be read for a while"))
  }
}
