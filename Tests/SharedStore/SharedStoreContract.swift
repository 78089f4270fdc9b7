import AppSessions
import CallFlow
import CallModel
import Cluster
import Devices
import Foundation
import Testing
import TrunklineAppProtocol
import TrunklineBytes

/// The effects of every request on every implementation of a shared store. The closure returns a node's connection to one and the
/// same shared store, which may contain data: users, calls and trunks of a run have names of their own.
///
///     let contract = SharedStoreContract("Redis") { name, started in try RedisNode(name, settings, started: started) }
///     try contract.check()
struct SharedStoreContract {
  let name: String
  let sharedStore: (_ node: String, _ started: Int64) throws -> any SharedStoreUnderTest
  /// Part of all names, so that other runs on the same shared store do not collide with this one.
  let run = "\(UInt32.random(in: 0 ... .max))"

  init(_ name: String, _ sharedStore: @escaping (_ node: String, _ started: Int64) throws -> any SharedStoreUnderTest) {
    (self.name, self.sharedStore) = (name, sharedStore)
  }

  func check() throws {
    let (a, b) = (try sharedStore("a", 1), try sharedStore("b", 1))
    defer {
      a.stop()
      b.stop()
    }
    try leases(a, b)
    try presence(a, b)
    try crossing(a, b)
    try registry(a, b)
    try ranks(a, b)
    try entries(a)
    try claims(a, b)
    try counts(a, b)
    try tasks(a, b)
    try records(a, b)
    try messages(a, b)
    try histories(a, b)
    try directories(a, b)
    try grants(a, b)
    if name != "memory" { try oldGrants(a) }
    try strangeNames(a)
  }

  func says(_ what: String) -> Comment { "\(name): \(what)" }
  func user(_ text: String) -> String { text + "-" + run }
  func call(_ number: UInt64) -> CallID { CallID(high: UInt64(run) ?? 0, low: 0x8000_0000_0000_0000 | number) }

  private func located(_ sharedStore: any SharedStoreUnderTest, _ user: String, entering: CallLocation? = nil) throws
    -> LocatedUser
  {
    guard case .located(let located) = try sharedStore.ask(.locate(user: user, entering: entering)) else {
      throw PeerFailure(description: "no answer to locate")
    }
    return located
  }

  private func leases(_ a: any SharedStoreUnderTest, _ b: any SharedStoreUnderTest) throws {
    func names(_ sharedStore: any SharedStoreUnderTest, _ lease: NodeLease, _ time: Duration) throws -> [NodeLease] {
      guard case .nodes(let nodes, _, _, 0) = try sharedStore.ask(.renew(lease, for: time)) else {
        throw PeerFailure(description: "no answer to renew")
      }
      return nodes.sorted { $0.incarnation < $1.incarnation }
    }
    let (mine, other) = (lease(a.incarnation, calls: 7), lease(b.incarnation))
    func renewed() throws -> (hadLease: Bool, clock: Int64)? {
      guard case .nodes([mine], let hadLease, let clock, 0) = try a.ask(.renew(mine, for: .seconds(60))) else { return nil }
      return (hadLease, clock)
    }
    let first = try #require(try renewed())
    let second = try #require(try renewed())
    #expect(!first.hadLease && second.hadLease, says("whether it lived until now is told"))
    let since = try a.enter(location(user("clock"), "phone", a.incarnation)).since
    #expect(first.clock > 0 && first.clock <= second.clock && second.clock <= since, says("the clock is the shared store's"))
    #expect(try names(a, mine, .seconds(60)) == [mine], says("a lease is read as it was written"))
    #expect(try names(b, other, .milliseconds(1_500)) == [mine, other], says("all that live are read"))
    let third = lease(Incarnation(node: "a", started: 2))
    #expect(
      try names(b, third, .seconds(60)).contains { $0.incarnation == a.incarnation },
      says("another life of the name does not get a lease that lives"))
    _ = try a.ask(.endLease(Incarnation(node: "a", started: 2)))
    #expect(try names(a, mine, .seconds(60)).count == 2, says("nobody ends another life's lease"))
    try a.wait(for: "the lease of b ends") { try names(a, mine, .seconds(60)) == [mine] }
    #expect(try a.ask(.endLease(a.incarnation)) == .done)
    #expect(try names(b, third, .seconds(60)) == [third], says("after its end the next life has the name"))
    #expect(try b.ask(.endLease(third.incarnation)) == .done)
  }

  private func presence(_ a: any SharedStoreUnderTest, _ b: any SharedStoreUnderTest) throws {
    let user = user("presence")
    let first = location(user, "phone", a.incarnation)
    let entered = try a.enter(first)
    #expect(entered.before == nil && entered.device == nil && entered.since > 0)
    let again = try a.enter(first)
    #expect(again.before == first && again.since == entered.since, says("entering again does no harm"))
    let second = location(user, "phone", b.incarnation, session: "s2")
    let later = try b.enter(second)
    #expect(later.before == first && later.since >= entered.since && !later.isOlder, says("where it was is told"))
    let old = try a.enter(first, since: later.since - 1)
    #expect(old.before == second && old.isOlder, says("a session that is put back does not take the place of a newer one"))
    #expect(try located(a, user).whereabouts == [second])
    #expect(try b.enter(second, since: later.since).since == later.since, says("the newer one is put back"))
    // a late update by the session that was replaced
    var late = first
    late.state = .fg
    #expect(try a.ask(.update(late)) == .done)
    #expect(try a.ask(.leave(first.device, first.session)) == .done)
    #expect(try located(a, user).whereabouts == [second], says("an old session changes nothing"))
    var moved = second
    (moved.state, moved.caps) = (.fg, [])
    #expect(try b.ask(.update(moved)) == .done)
    #expect(try located(a, user).whereabouts == [moved])
    for number in 0..<70 { _ = try a.ask(.enter(location(self.user("shelf"), "d\(number)", a.incarnation))) }
    let shelf = try located(a, self.user("shelf")).whereabouts
    #expect(
      shelf.count == Cluster.Limits.whereaboutsPerUser && shelf.contains { $0.device.device == "d69" },
      says("a user's devices that are connected have a limit"))
    _ = try b.ask(.enter(location(user, "desk", b.incarnation)))
    #expect(try located(a, user).whereabouts.map(\.device.device) == ["desk", "phone"])
    for _ in 0..<2 { #expect(try b.ask(.leave(moved.device, moved.session)) == .done) }
    #expect(try b.ask(.update(moved)) == .done)
    #expect(
      try located(a, user).whereabouts.map(\.device.device) == ["desk"], says("a word after its end does not bring it back"))
  }

  /// If a call and a device are entered at the same time, one sees the other.
  private func crossing(_ a: any SharedStoreUnderTest, _ b: any SharedStoreUnderTest) throws {
    for round in 0..<50 as Range<UInt64> {
      let user = user("cross-\(round)")
      let device = location(user, "phone", b.incarnation)
      let call = CallLocation(call(1_000 + round), at: a.incarnation, .incoming)
      let (asked, entered) = try together(a, .locate(user: user, entering: call), b, .enter(device))
      guard case .located(let seen) = asked, case .entered(_, let calls, _, _, _, _) = entered else {
        throw PeerFailure(description: "no answers")
      }
      #expect(!seen.whereabouts.isEmpty || !calls.isEmpty, says("two that cross, round \(round)"))
    }
  }

  /// Sends one request of each at the same time.
  private func together(
    _ a: any SharedStoreUnderTest, _ first: SharedStoreRequest, _ b: any SharedStoreUnderTest, _ second: SharedStoreRequest
  ) throws -> (SharedStoreReply, SharedStoreReply) {
    final class Answer: @unchecked Sendable { var result: Result<SharedStoreReply, any Error>? }
    struct Side: @unchecked Sendable {
      var sharedStore: any SharedStoreUnderTest
      var request: SharedStoreRequest
    }
    let (answer, side, done) = (Answer(), Side(sharedStore: b, request: second), DispatchSemaphore(value: 0))
    Thread.detachNewThread {
      answer.result = Result { try side.sharedStore.ask(side.request) }
      done.signal()
    }
    let mine = try a.ask(first)
    done.wait()
    guard let theirs = try answer.result?.get() else { throw PeerFailure(description: "no answer") }
    return (mine, theirs)
  }

  private func registry(_ a: any SharedStoreUnderTest, _ b: any SharedStoreUnderTest) throws {
    let user = user("registry")
    let known = device(user, "phone", seen: 2_000)
    #expect(try a.ask(.register(user: user, [.stored(known), .stored(device(user, "desk", seen: 2_000))])) == .done)
    #expect(
      try located(b, user).devices == [device(user, "desk", seen: 2_000), known], says("a device is read as it was written"))
    _ = try b.ask(.register(user: user, [.stored(device(user, "phone", seen: 1_500))]))
    #expect(try located(a, user).devices.contains(known), says("the later of two stores stays"))
    let revoked = device(user, "phone", seen: 2_000, revoked: 3_000)
    _ = try b.ask(.register(user: user, [.stored(revoked), .removed(DeviceKey(user: user, device: "desk"))]))
    _ = try a.ask(.register(user: user, [.stored(device(user, "phone", seen: 2_500))]))
    #expect(try located(a, user).devices == [revoked], says("a revocation stands against what was seen before it"))
    _ = try a.ask(.register(user: user, [.removed(revoked.key)]))
    #expect(try located(a, user).devices == [revoked], says("a logout does not take a revocation back"))
    #expect(
      try a.enter(location(user, "phone", a.incarnation)).device == revoked, says("a device that comes is told its registration"))
    _ = try a.ask(.register(user: user, [.stored(device("stranger", "phone", seen: 9_000))]))
    #expect(try located(a, user).devices == [revoked], says("changes of another user are not this one's"))
    let many = (0..<100).map { DeviceChange.stored(device(self.user("many"), "d\($0)", seen: Int64($0))) }
    _ = try a.ask(.register(user: self.user("many"), many))
    #expect(
      try located(a, self.user("many")).devices.count <= Cluster.Limits.devicesPerUser, says("a user's devices have a limit"))
  }

  private func ranks(_ a: any SharedStoreUnderTest, _ b: any SharedStoreUnderTest) throws {
    let user = user("ranks")
    func location(_ number: UInt64, _ sharedStore: any SharedStoreUnderTest) -> CallLocation {
      CallLocation(call(number), at: sharedStore.incarnation, number % 2 == 0 ? .incoming : .outgoing)
    }
    // all at once: a call that finds fewer than `most` before itself is admitted, and exactly `most` are
    let most = 5
    let replies = try a.ask((0..<20).map { .locate(user: user, entering: location($0, a)) })
    var admitted: Set<CallID> = []
    for (number, reply) in replies.enumerated() {
      guard case .success(.located(let seen)) = reply else { throw PeerFailure(description: "\(reply)") }
      let own = location(UInt64(number), a)
      #expect(seen.calls == seen.calls.sorted { $0.rank < $1.rank }, says("calls come by rank"))
      guard let rank = seen.calls.first(where: { $0.call == own.call })?.rank else {
        Issue.record(says("a call finds itself"))
        continue
      }
      if seen.calls.count(where: { $0.rank < rank }) < most { admitted.insert(own.call) }
    }
    #expect(admitted.count == most, says("a limit is exact"))
    let before = try located(b, user).calls
    #expect(before.count == 20 && Set(before.map(\.rank)).count == 20, says("ranks are unique"))
    #expect(try located(b, user, entering: location(3, a)).calls == before, says("entering again keeps the rank"))
    let (crowd, limit) = (self.user("crowd"), Cluster.Limits.callsPerUser)
    for number in 0..<limit + 3 {
      _ = try a.ask(.locate(user: crowd, entering: CallLocation(call(UInt64(number)), at: a.incarnation, .incoming)))
    }
    let left = try located(a, crowd).calls
    #expect(left.count == limit && left.first?.call == call(3), says("beyond a user's limit the oldest call gives way"))
    for number in 0..<20 as Range<UInt64> { #expect(try a.ask(.leaveCall(user: user, call(number))) == .done) }
    #expect(try a.ask(.leaveCall(user: user, call(0))) == .done)
    let last = try located(b, user, entering: location(50, b))
    #expect(last.calls.map(\.call) == [call(50)], says("calls that left are gone"))
    #expect(try located(b, user, entering: location(51, b)).calls.map(\.call) == [call(50), call(51)])
  }

  private func entries(_ a: any SharedStoreUnderTest) throws {
    let mine = Incarnation(node: "entries-\(run)", started: 5)
    func all() throws -> [CallID: CallEntry] {
      var out: [CallID: CallEntry] = [:]
      var cursor: UInt64 = 0
      for _ in 0..<1_000 {
        guard case .entries(let page, let next, 0) = try a.ask(.entries(of: mine, cursor: cursor)) else {
          throw PeerFailure(description: "no entries")
        }
        #expect(page.count <= Cluster.Limits.entriesPerRead, says("a page has its limit"))
        for entry in page { out[entry.line.call] = entry }
        cursor = next
        if next == 0 { return out }
      }
      throw PeerFailure(description: "reading entries has no end")
    }
    #expect(try all().isEmpty)
    for number in 0..<250 as Range<UInt64> { #expect(try a.ask(.put(entry(call(number)), at: mine)) == .done) }
    #expect(try all().count == 250, says("all pages together are all entries"))
    let connected = entry(call(3), connect: 1_790_000_005_000)
    #expect(try a.ask(.put(connected, at: mine)) == .done)
    #expect(try all()[call(3)] == connected, says("an entry replaces the one before"))
    #expect(try a.ask(.entry(call(3), of: mine)) == .entries([connected], next: 0), says("one is read by its call"))
    #expect(try a.ask(.entry(call(999), of: mine)) == .entries([], next: 0))
    #expect(try a.ask(.entry(call(3), of: Incarnation(node: "entries-\(run)", started: 6))) == .entries([], next: 0))
    for number in 0..<250 as Range<UInt64> { #expect(try a.ask(.remove(call(number), at: mine)) == .done) }
    #expect(try a.ask(.remove(call(0), at: mine)) == .done)
    #expect(try all().isEmpty, says("nothing is left"))
    let tombstone = RemoteTombstone(users: ["alice", "bob"], CallOver(.answeredElsewhere, by: .app, at: 5, sip: 200))
    #expect(try a.ask(.tombstone(of: call(1))) == .tombstone(nil))
    #expect(try a.ask(.putTombstone(call(1), tombstone)) == .done)
    #expect(try a.ask(.tombstone(of: call(1))) == .tombstone(tombstone), says("the end of a call is read as it was written"))
  }

  private func claims(_ a: any SharedStoreUnderTest, _ b: any SharedStoreUnderTest) throws {
    let dead = Incarnation(node: "dead", started: 1)
    let reply = try a.ask(.claimReaping(call(1), of: dead, by: a.incarnation))
    #expect(reply == .granted(true, holder: a.incarnation), says("the first reaper has the call"))
    #expect(
      try a.ask(.claimReaping(call(1), of: dead, by: a.incarnation)) == .granted(true, holder: a.incarnation),
      says("it has it again, if it did not hear that"))
    #expect(
      try b.ask(.claimReaping(call(1), of: dead, by: b.incarnation)) == .granted(false, holder: a.incarnation),
      says("the second is told whose it is"))
    #expect(try b.granted(.claimReaping(call(1), of: Incarnation(node: "dead", started: 2), by: b.incarnation)))
    #expect(try a.ask(.put(entry(call(1)), at: dead)) == .done)
    #expect(try a.ask(.reaped(call(1), of: dead, by: a.incarnation)) == .done)
    #expect(try a.ask(.entry(call(1), of: dead)) == .entries([], next: 0), says("what a reaper has closed is gone"))
    #expect(
      try b.ask(.claimReaping(call(1), of: dead, by: b.incarnation)) == .granted(false, holder: a.incarnation),
      says("and nobody else gets it"))
    let key = DeviceKey(user: user("claims"), device: "phone")
    #expect(try a.granted(.claimStart(call(2), device: key, at: a.incarnation)))
    #expect(try a.granted(.claimStart(call(2), device: key, at: a.incarnation)), says("a repeat of the same device is granted"))
    #expect(
      try b.ask(.claimStart(call(2), device: key, at: b.incarnation)) == .granted(false, holder: a.incarnation),
      says("at another node it is not"))
    let other = DeviceKey(user: key.user, device: "desk")
    #expect(try a.granted(.claimStart(call(2), device: other, at: a.incarnation)) == false, says("another device's UUID"))
    var winners = 0
    for round in 0..<30 as Range<UInt64> {
      let request = { (sharedStore: any SharedStoreUnderTest) in
        SharedStoreRequest.claimStart(self.call(100 + round), device: key, at: sharedStore.incarnation)
      }
      let (first, second) = try together(a, request(a), b, request(b))
      for case .granted(true, _) in [first, second] { winners += 1 }
    }
    #expect(winners == 30, says("of two at once one wins"))
  }

  private func counts(_ a: any SharedStoreUnderTest, _ b: any SharedStoreUnderTest) throws {
    let trunk = user("trunk")
    func admitted(_ count: Int, _ sharedStore: any SharedStoreUnderTest) throws -> Int {
      let request = SharedStoreRequest.admit(trunk: trunk, most: 10, at: sharedStore.incarnation)
      return try sharedStore.ask([SharedStoreRequest](repeating: request, count: count)).count {
        if case .success(.granted(true, _)) = $0 { true } else { false }
      }
    }
    #expect(try admitted(7, a) + admitted(7, b) == 10, says("over all nodes as many as may"))
    _ = try b.ask(.share(trunk: trunk, count: 1, of: b.incarnation))
    #expect(try admitted(5, a) == 2, says("a share that is told heals"))
    _ = try a.ask(.share(trunk: trunk, count: 0, of: a.incarnation))
    #expect(try admitted(20, b) == 9, says("a share that is gone has room for others"))
    let user = user("hour")
    let taken = try a.ask([SharedStoreRequest](repeating: .consumeQuota(user: user, most: 3), count: 5))
    #expect(taken.count { $0 == .success(.granted(true)) } == 3, says("calls in an hour"))
    #expect(try b.granted(.consumeQuota(user: user, most: 3)) == false)
    #expect(try b.granted(.consumeQuota(user: user, most: 4)))
  }

  private func tasks(_ a: any SharedStoreUnderTest, _ b: any SharedStoreUnderTest) throws {
    let task = SingleTask.trunk(user("task"))
    #expect(try a.ask(.lead(task, a.incarnation)) == .granted(true, holder: a.incarnation))
    #expect(try b.ask(.lead(task, b.incarnation)) == .granted(false, holder: a.incarnation), says("one leads"))
    #expect(try a.ask(.lead(task, a.incarnation)) == .granted(true, holder: a.incarnation), says("it renews"))
    _ = try b.ask(.resign(task, b.incarnation))
    #expect(try b.granted(.lead(task, b.incarnation)) == false, says("nobody resigns for another"))
    _ = try a.ask(.resign(task, a.incarnation))
    #expect(try b.granted(.lead(task, b.incarnation)), says("after its resignation another leads"))
    _ = try b.ask(.resign(task, b.incarnation))
  }

  private func records(_ a: any SharedStoreUnderTest, _ b: any SharedStoreUnderTest) throws {
    let record = Array(#"{"call":"x"}"#.utf8)
    #expect(try a.granted(.append(call(7), record: record)))
    #expect(try a.granted(.append(call(7), record: record)) == false, says("a call has one record"))
    #expect(try b.granted(.append(call(7), record: record)) == false)
    #expect(try b.granted(.append(call(8), record: record)))
    let other = Array(#"{"call":"y"}"#.utf8)
    #expect(try b.granted(.append(call(9), record: other)))
    #expect(try a.ask(.record(of: call(7))) == .record(record), says("a call's record is found"))
    #expect(try a.ask(.record(of: call(9))) == .record(other))
    #expect(try a.ask(.record(of: call(10))) == .record(nil))
  }

  private func messages(_ a: any SharedStoreUnderTest, _ b: any SharedStoreUnderTest) throws {
    let key = DeviceKey(user: user("messages"), device: "phone")
    var wake = CallWake(
      call: call(9), exp: 1_790_000_000, from: Handle(k: .phone, h: "+491", n: "\"Ä\""), video: true, gw: "wss://a/", wake: "w")
    wake.parameters = CallParameters(["a": "{}"])
    let (toB, toAll): ([ClusterMessage], [ClusterMessage]) = (
      [
        .wake(key, wake), .came(location(key.user, "phone", a.incarnation)),
        .replaced(key, SessionID("s9")),
      ], [.revoked(key), .lost(call(9), user: key.user), .dead(b.incarnation)]
    )
    for message in toB { #expect(try a.ask(.publish(message, to: "b")) == .done) }
    for message in toAll { #expect(try a.ask(.broadcast(message)) == .done) }
    #expect(try a.ask(.publish(.lost(call(9), user: "x"), to: "nobody")) == .done, says("nobody may hear"))
    try b.wait(for: "messages of \(name)") {
      b.messages.count { toB.contains($0) } == 3 && b.messages.count { toAll.contains($0) } == 3
    }
    #expect(!a.messages.contains { toB.contains($0) }, says("a message has one reader"))
    #expect(b.messages.filter { toB.contains($0) || toAll.contains($0) } == toB + toAll, says("each once, in order"))
  }

  /// Whatever characters a user's name contains, its keys are its own and in one slot.
  private func strangeNames(_ a: any SharedStoreUnderTest) throws {
    let names = [
      "}", "{", "a}b{c}", "", "ü☎", "a b\r\nc", "%7D", String(repeating: "x", count: 500), String(repeating: "x", count: 501),
    ]
    .map { $0 + (user($0.isEmpty ? "" : "n")) }
    for (number, user) in names.enumerated() {
      _ = try a.ask(.enter(location(user, "d}\(number)", a.incarnation)))
      _ = try a.ask(.register(user: user, [.stored(device(user, "d\(number)", seen: 2_000))]))
      let entered = CallLocation(call(500 + UInt64(number)), at: a.incarnation, .outgoing)
      _ = try located(a, user, entering: entered)
    }
    for (number, user) in names.enumerated() {
      let seen = try located(a, user)
      #expect(seen.whereabouts == [location(user, "d}\(number)", a.incarnation)], says("the user \(user.prefix(20))"))
      #expect(seen.devices == [device(user, "d\(number)", seen: 2_000)] && seen.calls.count == 1 && seen.dropped == 0)
    }
  }
}
