import Bytes
import Cluster
import Testing

/// Histories and directories, in every engine.
extension EngineContract {
  func histories(_ a: any EngineUnderTest, _ b: any EngineUnderTest) throws {
    let user = user("history")
    func add(_ number: UInt64, _ engine: any EngineUnderTest, most: Int = 200, keep: Duration = .seconds(60)) throws -> (
      number: Int64?, at: Set<Incarnation>
    ) {
      let row = Array(#""v":1,"c":"\#(call(number))","p":"+1\"c\":\"x"}"#.utf8)
      let request = EngineRequest.addHistory(call(number), user: user, row: row, most: most, keep: keep)
      guard case .added(let number, let at) = try engine.ask(request) else { throw PeerFailure(description: "not added") }
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
    _ = try a.enter(place(user, "phone", a.incarnation))
    _ = try b.enter(place(user, "desk", b.incarnation))
    #expect(try add(3, a).at == [a.incarnation, b.incarnation], says("where the user's devices are"))
    for number in 4...10 as ClosedRange<UInt64> { _ = try add(number, a, most: 5) }
    #expect(try rows().calls == [10, 9, 8, 7, 6], says("the oldest go"))
    #expect(try b.ask(.forgetHistory(of: user)) == .count(5) && a.ask(.forgetHistory(of: user)) == .count(0))
    #expect(try rows().calls.isEmpty && (add(1, a, keep: .milliseconds(1)).number ?? 0) > 0)
    try a.wait(for: "the row is older than it is kept") { try rows(keep: .milliseconds(1)).calls.isEmpty }
  }

  func directories(_ a: any EngineUnderTest, _ b: any EngineUnderTest) throws {
    let (scope, other) = ("user:" + user("d}"), "account:" + user("o"))
    var number = 0
    // later than what other runs have left
    guard case .directories(let before) = try a.ask(.directories(since: 0)) else { throw PeerFailure(description: "no versions") }
    let base = before.last
    /// Of what came last.
    func place(_ engine: any EngineUnderTest) throws -> Int64 {
      var since: Int64 = 0
      while case .directories(let seen) = try engine.ask(.directories(since: since)) {
        since = seen.place
        if !seen.hasMore { break }
      }
      return since
    }
    let start = try place(a)
    func commit(
      _ engine: any EngineUnderTest, _ scope: String, _ from: Int64, _ to: Int64, _ form: DirectoryCommit.Form = .whole,
      _ parts: [String] = ["p0"], isNew: Bool = true, claims: Int? = nil,
      after: Int64? = nil
    ) throws -> CommitOutcome {
      number += 1
      let name = "\(scope)-\(number)"
      for (index, part) in parts.enumerated() {
        #expect(try engine.ask(.stageDirectory(name, part: index, Array(part.utf8))) == .done)
      }
      if form == .whole { _ = try engine.ask(.stageDirectory(name, part: nil, Array("head \(to)".utf8))) }
      let place = try place(engine)
      let commit = DirectoryCommit(
        scope, from: from, to: to, form, staged: name, parts: claims ?? parts.count + (form == .whole ? 1 : 0), isNew: isNew,
        after: after ?? place)
      guard case .committed(let outcome, _, _, _, _) = try engine.ask(.commitDirectory(commit)) else {
        throw PeerFailure(description: "no outcome")
      }
      return outcome
    }
    func values(_ request: EngineRequest) throws -> (texts: [String], number: Int64) {
      guard case .values(let values, let number) = try b.ask(request) else { throw PeerFailure(description: "no values") }
      return (values.map { String(decoding: $0, as: UTF8.self) }, number)
    }
    #expect(try values(.directory(scope, since: 0, skip: 0)) == ([], 0) && values(.directoryPart(scope, 0)) == ([], 0))
    #expect(try commit(a, scope, 0, base + 10, claims: 3) == .notStaged, says("a part is missing"))
    #expect(try commit(a, scope, 0, base + 10, .whole, ["p0", "p1"]) == .done)
    #expect(try values(.directoryPart(scope, 1)) == (["head \(base + 10)", "p1"], base + 10))
    #expect(try values(.directoryPart(scope, 2)) == (["head \(base + 10)"], base + 10))
    #expect(try commit(b, scope, 0, base + 20) == .conflict, says("another version was expected"))
    #expect(try commit(b, other, 0, base + 10) == .conflict, says("a new version is later than any other"))
    #expect(try commit(b, other, 0, base + 11, after: start) == .conflict, says("who gives has taken what was given before"))
    #expect(try commit(b, other, 0, base + 5, isNew: false) == .done, says("one that is put back need not be"))
    #expect(try commit(b, scope, base + 10, base + 20, .change, ["b", "a"]) == .done)
    #expect(try commit(a, scope, base + 20, base + 30, .change, ["c"]) == .done)
    #expect(try values(.directory(scope, since: base + 10, skip: 0)) == (["a", "b", "c"], base + 30))
    #expect(try values(.directory(scope, since: base + 10, skip: 2)) == (["c"], base + 30))
    #expect(try values(.directory(scope, since: base + 20, skip: 0)) == (["c"], base + 30))
    #expect(try values(.directoryPart(scope, 0)).texts == ["head \(base + 10)", "p0"], says("the whole is that of before"))
    #expect(try commit(a, scope, base + 30, base + 30, .whole, ["w"], isNew: false) == .done)
    #expect(try values(.directory(scope, since: base + 10, skip: 0)).texts == ["a", "b", "c"], says("changes stay for others"))
    #expect(try commit(a, scope, base + 30, base + 40, .whole, []) == .done)
    #expect(try values(.directory(scope, since: base + 10, skip: 0)) == ([], base + 40), says("of another whole there are none"))
    #expect(try values(.directoryPart(scope, 0)) == (["head \(base + 40)"], base + 40), says("it has no contacts, and a version"))
    let many = Array(repeating: "x", count: 300).enumerated().map { "\($0.element)\($0.offset)" }
    for step in 0..<3 as Range<Int64> {
      #expect(try commit(a, scope, base + 40 + step, base + 41 + step, .change, many.map { "\($0)-\(step)" }) == .done)
    }
    #expect(try commit(a, scope, base + 43, base + 44, .change, many) == .mustBeWhole, says("changes have a limit"))
    #expect(try values(.directory(scope, since: 0, skip: 0)).texts.count == Limits.changesPerRead)
    guard case .directories(let all) = try b.ask(.directories(since: start)) else {
      throw PeerFailure(description: "no versions")
    }
    let mine = all.versions.filter { [scope, other].contains($0.scope) }
    #expect(
      mine.map(\.scope) == [other, scope] && mine.map(\.version) == [base + 5, base + 43], says("in the order of their coming"))
    #expect(!all.epoch.isEmpty && all.last >= base + 43 && all.place > start)
    guard case .directories(let later) = try b.ask(.directories(since: all.place)) else { throw PeerFailure(description: "no") }
    #expect(!later.versions.contains { $0.scope == scope } && later.epoch == all.epoch)
  }
}
