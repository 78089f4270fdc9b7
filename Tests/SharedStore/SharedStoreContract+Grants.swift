import Bytes
import CallFlow
import Cluster
import JSONWebToken
import Testing

/// Grants of login tokens, in every shared store.
extension SharedStoreContract {
  func grants(_ a: any SharedStoreUnderTest, _ b: any SharedStoreUnderTest) throws {
    let (alice, bob) = (user("grants}"), user("bob \u{e9}"))
    // a fraction of a second ago: the shared store drops what is old by its own clock
    let seen = try #require(
      try { () throws -> Int64? in
        guard
          case .added(let number, _) = try a.ask(
            .addHistory(call(99), user: user("clock"), row: Array(#""c":"\#(call(99))"}"#.utf8), most: 1, keep: .seconds(60)))
        else { return nil }
        return number
      }())
    func put(_ sharedStore: any SharedStoreUnderTest, _ rows: SharedGrant...) throws -> (count: Int, later: [SharedGrant]) {
      guard case .grantsPut(let count, let later, 0) = try sharedStore.ask(.putGrants(rows)) else {
        throw PeerFailure(description: "not put")
      }
      return (count, later)
    }
    func read(_ sharedStore: any SharedStoreUnderTest, since: Int64) throws -> GrantPage {
      var (all, since) = (GrantPage(), since)
      while true {
        guard case .grants(let page) = try sharedStore.ask(.grants(since: since)) else {
          throw PeerFailure(description: "no page")
        }
        #expect(page.dropped == 0 && page.rows.count <= Limits.grantsPerRead)
        let rows = all.rows + page.rows
        (all, since) = (page, page.place)
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
    let seen1 = try read(b, since: start.place)
    #expect(seen1.rows == [first] && !seen1.epoch.isEmpty && seen1.last == seen1.place, says("a grant comes whole"))
    #expect(try read(b, since: seen1.place).rows.isEmpty && read(b, since: seen1.place).place == seen1.place)

    #expect(try put(b, first) == (0, []), says("the same is put once"))
    let early = grant(alice, ["+15559"], 999)
    #expect(try put(b, early) == (0, [first]), says("an earlier token gives way, and hears to what"))
    let less = grant(alice, ["+15551"], 1_000)
    #expect(try put(b, less).count == 1 && put(a, first).later == [less], says("of one token numbers only become fewer"))
    let again = grant(alice, ["+15551"], 1_000, seen: 5)
    #expect(try put(a, again).count == 1 && put(b, less) == (0, []), says("seen later"))
    let next = grant(alice, ["+15551", "+15552", "+15553"], 1_001)
    #expect(try put(a, next, grant(bob, [], 7)).count == 2)
    let page = try read(b, since: seen1.place)
    #expect(page.rows == [next, grant(bob, [], 7)], says("each user once, in the order of what came last"))

    let erased = SharedGrant(user: alice, grant: nil, issuedAt: 2_000, seen: seen)
    #expect(try put(b, erased).count == 1 && put(a, next) == (0, [erased]), says("an erased user's tokens grant nothing"))
    #expect(try put(a, grant(alice, ["+1"], 2_001)).count == 1, says("one of later does"))
    #expect(try read(a, since: page.place).rows == [grant(alice, ["+1"], 2_001)])

    let many = (0..<Limits.grantsPerRead + 10).map { grant(user("many\($0)"), ["+1555\($0)"], 1) }
    for from in stride(from: 0, to: many.count, by: Limits.grantsPerPut) {
      let rows = Array(many[from..<min(many.count, from + Limits.grantsPerPut)])
      guard case .grantsPut(rows.count, _, _) = try a.ask(.putGrants(rows)) else { throw PeerFailure(description: "not put") }
    }
    #expect(try read(b, since: page.place).rows.dropFirst().map(\.user) == many.map(\.user), says("pages follow each other"))
  }

  /// Redis alone: its clock says what is old.
  func oldGrants(_ a: any SharedStoreUnderTest) throws {
    let old = SharedGrant(user: user("old"), grant: TokenGrant(numbers: ["+1"]), issuedAt: 1, seen: 1_000)
    _ = try a.ask(.putGrants([old]))
    _ = try a.ask(.putGrants([SharedGrant(user: user("new"), grant: TokenGrant(), issuedAt: 1, seen: 1 << 50)]))
    var (users, since) = ([String](), 0 as Int64)
    while case .grants(let page) = try a.ask(.grants(since: since)) {
      users += page.rows.map(\.user)
      since = page.place
      if !page.hasMore { break }
    }
    #expect(users.contains(user("new")) && !users.contains(user("old")), says("what no token named for 30 days goes"))
  }
}
