import CallFlow
import CallModel
import Cluster
import JSONWebToken
import Testing
import TrunklineBytes

/// Grants of login tokens, in every shared store.
extension SharedStoreContract {
  func grants(_ a: any SharedStoreUnderTest, _ b: any SharedStoreUnderTest) throws {
    let (alice, bob) = (user("grants}"), user("bob \u{e9}"))
    // a fraction of a second ago: the shared store drops old grants by its own clock
    let seen = try #require(
      try { () throws -> Int64? in
        guard
          case .added(let number, _) = try a.ask(
            .addHistory(call(99), user: user("clock"), row: Array(#""c":"\#(call(99))"}"#.utf8), most: 1, keep: .seconds(60)))
        else { return nil }
        return number
      }())
    func put(_ sharedStore: any SharedStoreUnderTest, _ rows: SharedGrant...) throws -> (count: Int, others: [SharedGrant]) {
      guard case .grantsPut(let count, let others, 0) = try sharedStore.ask(.putGrants(rows)) else {
        throw PeerFailure(description: "not put")
      }
      return (count, others)
    }
    func read(_ sharedStore: any SharedStoreUnderTest, since: Int64) throws -> GrantPage {
      var (all, since) = (GrantPage(), since)
      while true {
        guard case .grants(let page) = try sharedStore.ask(.grants(since: since)) else {
          throw PeerFailure(description: "no page")
        }
        #expect(page.dropped == 0 && page.rows.count <= Limits.grantsPerRead)
        let rows = all.rows + page.rows
        (all, since) = (page, page.position)
        all.rows = rows
        if !page.hasMore { return all }
      }
    }
    func grant(_ user: String, _ numbers: [String], _ issuedAt: Int64, seen later: Int64 = 0) -> SharedGrant {
      var grant = TokenGrant(
        numbers: numbers, name: "A \"B\"", account: "work", allow: ["+1"], maxCalls: 3, callsPerHour: 9,
        diversions: ["no_answer": .init(number: "+1555", after: 15)], issuedAt: issuedAt)
      grant.record = true
      return SharedGrant(user: user, grant: grant, issuedAt: issuedAt, seen: seen + later)
    }
    let start = try read(a, since: 0)
    let first = grant(alice, ["+15551", "+15552"], 1_000)
    #expect(try put(a, first) == (1, []))
    let seen1 = try read(b, since: start.position)
    #expect(seen1.rows == [first] && !seen1.epoch.isEmpty && seen1.last == seen1.position, says("a grant comes whole"))
    #expect(try read(b, since: seen1.position).rows.isEmpty && read(b, since: seen1.position).position == seen1.position)

    #expect(try put(b, first) == (0, []), says("the same is put once"))
    let early = grant(alice, ["+15559"], 999)
    #expect(try put(b, early) == (0, [first]), says("an earlier token gives way, and the node gets the row that stays"))
    let again = grant(alice, ["+15551", "+15552"], 1_000, seen: 5)
    #expect(try put(a, again) == (1, []) && put(b, first) == (0, []), says("seen later"))
    let next = grant(alice, ["+15551", "+15552", "+15553"], 1_001)
    #expect(try put(a, next, grant(bob, [], 7)) == (2, []))
    let page = try read(b, since: seen1.position)
    #expect(page.rows == [next, grant(bob, [], 7)], says("each user once, in the order of what came last"))

    let erased = SharedGrant(user: alice, grant: nil, issuedAt: 2_000, seen: seen)
    #expect(try put(b, erased).count == 1 && put(a, next) == (0, [erased]), says("an erased user's tokens grant nothing"))
    #expect(try put(b, erased) == (0, []))
    #expect(
      try put(a, grant(alice, ["+1"], 2_000)) == (0, [erased]), says("nor does a token that is as late as the erasure"))
    #expect(try put(a, grant(alice, ["+1"], 2_001)).count == 1, says("one of later does"))
    #expect(try read(a, since: page.position).rows == [grant(alice, ["+1"], 2_001)])
    try numbersThatMove(a, b, put: { try put($0, $1) }, read: { try read(b, since: $0) }, grant: { grant($0, $1, $2) })

    let many = (0..<Limits.grantsPerRead + 10).map { grant(user("many\($0)"), ["+1555\($0)"], 1) }
    for from in stride(from: 0, to: many.count, by: Limits.grantsPerPut) {
      let rows = Array(many[from..<min(many.count, from + Limits.grantsPerPut)])
      guard case .grantsPut(rows.count, _, _) = try a.ask(.putGrants(rows)) else { throw PeerFailure(description: "not put") }
    }
    #expect(
      try read(b, since: page.position).rows.suffix(many.count).map(\.user) == many.map(\.user), says("pages follow each other"))
  }

  private func numbersThatMove(
    _ a: any SharedStoreUnderTest, _ b: any SharedStoreUnderTest,
    put: (any SharedStoreUnderTest, SharedGrant) throws -> (count: Int, others: [SharedGrant]),
    read: (Int64) throws -> GrantPage, grant: (String, [String], Int64) -> SharedGrant
  ) throws {
    let (carol, dora, erin) = (user("carol"), user("dora"), user("erin"))
    var position = try read(0).position
    func changed() throws -> [SharedGrant] {
      let page = try read(position)
      position = page.position
      return page.rows
    }
    let numbers = (0..<4).map { "+17\(run)\($0)" }
    let (first, second, third) = (numbers[0], numbers[1], numbers[2])
    let whole = grant(carol, [first, second], 100)
    _ = try put(a, whole)
    #expect(try changed() == [whole])

    // the same number, written differently
    let moved = grant(dora, ["00" + first.dropFirst(), third], 200)
    #expect(try put(b, moved) == (1, []), says("a later token of another user gets the number"))
    let left = grant(carol, [second], 100)
    #expect(try changed() == [moved, left], says("and its user loses it in that step; the winner's row comes first"))
    #expect(try put(a, whole) == (0, [left, moved]), says("the token of before does not get it again"))
    let late = try put(a, grant(erin, [first, numbers[3]], 150))
    #expect(
      late == (1, [grant(erin, [numbers[3]], 150), moved]),
      says("a token between them gets what is left of its numbers, and the node reads who has the other"))
    #expect(try changed() == [grant(erin, [numbers[3]], 150)])

    #expect(try put(a, grant(dora, [third], 300)).count == 1)
    #expect(try put(b, whole) == (0, [left]), says("a number that was given up stays lost to the token of before"))
    #expect(try put(b, grant(carol, [first, second], 101)) == (1, []), says("a new token gets it"))
    _ = try changed()

    #expect(try put(a, grant(dora, [second], 300)) == (1, [grant(dora, [], 300), grant(carol, [first, second], 101)]))
    #expect(try changed() == [grant(dora, [], 300)], says("of two tokens of one time only what both name"))
    #expect(try put(a, grant(carol, [first], 400)).count == 1 && put(b, grant(dora, [first], 400)).others == [])
    #expect(try put(b, grant(carol, [first], 400)).others == [grant(carol, [], 400), grant(dora, [first], 400)])
    #expect(
      try changed() == [grant(dora, [first], 400), grant(carol, [], 400)], says("of two as late the user with the greater id"))

    _ = try put(a, SharedGrant(user: dora, grant: nil, issuedAt: 500, seen: grant(dora, [], 0).seen))
    #expect(try put(a, grant(erin, [first], 160)) == (1, []), says("an erased user's numbers are free"))

    // from two nodes, in any order
    var tokens: [SharedGrant] = []
    for time in 600..<604 as Range<Int64> { tokens += [grant(carol, [third], time), grant(dora, [third], time)] }
    for (index, token) in tokens.shuffled().enumerated() { _ = try put(index % 2 == 0 ? a : b, token) }
    let rows = try read(0).rows
    #expect(rows.filter { $0.grant?.numbers.contains(third) ?? false }.map(\.user) == [dora], says("a number has one user"))
  }

  /// Redis alone: its clock decides which grants are old.
  func oldGrants(_ a: any SharedStoreUnderTest) throws {
    let old = SharedGrant(user: user("old"), grant: TokenGrant(numbers: ["+1888\(run)"]), issuedAt: 2, seen: 1_000)
    let new = SharedGrant(user: user("new"), grant: TokenGrant(numbers: ["+1888\(run)"]), issuedAt: 1, seen: 1 << 50)
    #expect(try a.ask(.putGrants([old])) == .grantsPut(1, others: []))
    #expect(try a.ask(.putGrants([new])) == .grantsPut(1, others: []), says("and its numbers are free"))
    var (users, since) = ([String](), 0 as Int64)
    while case .grants(let page) = try a.ask(.grants(since: since)) {
      users += page.rows.map(\.user)
      since = page.position
      if !page.hasMore { break }
    }
    #expect(users.contains(user("new")) && !users.contains(user("old")), says("what no token named for 30 days goes"))
  }
}
