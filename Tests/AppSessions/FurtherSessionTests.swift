import AppSessions
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineBytes

/// A device's session at a node other than its own, for calls there: whatever happens to it, the device's location remains the
/// node of its own session.
@Suite struct FurtherSessionTests {
  private let home = Bench(node: "n1").seen()

  /// A node with a call and a further session that a login has made valid for all calls.
  private func further() throws -> (Bench, Client) {
    var bench = Bench(node: "n2")
    bench.perform(.nodes([home]))
    let client = try bench.woken(bench.wakeToken(), live: [callA])
    bench.send(.authRefresh(AuthRefresh(auth: Bench.token(), further: true)), on: client.connection, id: number(7))
    _ = bench.frames(client.connection)
    return (bench, client)
  }
  /// Its latest resume token: that of a resume.
  private func resumed(_ bench: inout Bench, _ client: Client) throws -> Client {
    bench.give(.closed(client.connection, nil))
    let id = bench.resume(client, lastSeq: 0)
    guard case .message(.welcome(let welcome))? = bench.frames(id).first?.body, welcome.resumed else {
      throw Trouble("no welcome")
    }
    return Client(connection: id, device: client.device, session: client.session, welcome: welcome)
  }
  private func come(_ bench: inout Bench, further: Bool) -> (ConnectionID, DeviceInfo?) {
    let id = bench.open()
    bench.events = []
    bench.send(
      .hello(Hello(.auth(Bench.token()), device: .init(id: "d1"), caps: ["nodes"], further: further)), on: id, id: number(8))
    guard case .connected(_, let session, let info, resumed: false)? = bench.events.last else { return (id, nil) }
    bench.perform(.welcome(session, calls: [], gone: [], live: []))
    return (id, info)
  }

  @Test func `where its resume is refused it begins again as a further one, at its node and at any other`() throws {
    var (bench, client) = try further()
    let current = try resumed(&bench, client)
    var there = Bench(node: "n3")
    there.perform(.nodes([home]))
    #expect(try there.resumeAsNew(current).1.isFurther)
    // at its own node, restarted, which has lost the session
    var restarted = Bench(node: "n2", started: 1_690_000_100_000)
    restarted.perform(.nodes([home]))
    #expect(try restarted.resumeAsNew(current).1.isFurther)
    // and at a node that knows the session but cannot replay it: the token issued before the refresh does not mention it
    bench.give(.closed(current.connection, nil))
    #expect(try bench.resumeAsNew(client, lastSeq: 99).1.isFurther)
  }

  @Test func `a device's own session that begins again is not a further one`() throws {
    var bench = Bench(node: "n2")
    let client = try bench.login()
    var there = Bench(node: "n3")
    #expect(try !there.resumeAsNew(client).1.isFurther)
  }

  @Test func `a hello states that its session is further, and replaces no own session that has a socket`() throws {
    var bench = Bench(node: "n2")
    bench.perform(.nodes([home]))
    #expect(come(&bench, further: true).1?.isFurther == true)
    var own = Bench(node: "n2")
    let client = try own.login()
    let (id, info) = come(&own, further: true)
    #expect(info == nil)
    let (failure, close) = try own.failure(id)
    #expect(failure.code == .gone && failure.fatal == true && close == .replaced)
    own.send(.ping, on: client.connection)
    #expect(own.frames(client.connection).map(\.body) == [.message(.pong)])
    #expect(own.machine.stats.refusals == [.ownSessionIsHere: 1])
    // a session without a socket is the one that the device had before it moved elsewhere
    own.give(.closed(client.connection, nil))
    #expect(come(&own, further: true).1?.isFurther == true)
    // a gateway without a cluster has no other node
    var alone = Bench()
    #expect(come(&alone, further: true).1?.isFurther == false)
  }

  private enum Step: CaseIterable { case own, further, ownBreaks, furtherBreaks, furtherResumes }

  /// The state after some steps. A value, so that orders with equal beginnings share the work of them.
  private struct Order {
    var bench = Bench(node: "n2")
    var own: ConnectionID?
    var other: ConnectionID?
    var last: Client?
    var steps: [Step] = []
    func isOpen(_ id: ConnectionID?) -> Bool { id.map { bench.closed($0) == nil } ?? false }
  }

  private func apply(_ step: Step, to order: inout Order) {
    order.steps.append(step)
    let wasOpen = order.isOpen(order.own)
    switch step {
    case .own:
      let (id, info) = come(&order.bench, further: false)
      if info?.isFurther != false { Issue.record("\(order.steps): the own session is refused or further") }
      order.own = id
    case .further:
      let (id, info) = come(&order.bench, further: true)
      if wasOpen != (info == nil) || info?.isFurther == false {
        Issue.record("\(order.steps): \(wasOpen) \(String(describing: info))")
      }
      if wasOpen != order.isOpen(order.own) { Issue.record("\(order.steps): the own session was ended") }
      guard info != nil else { return }
      order.other = id
      if case .message(.welcome(let welcome))? = order.bench.frames(id).first?.body {
        order.last = Client(
          connection: id, device: DeviceKey(user: "alice", device: "d1"), session: SessionID(welcome.sid), welcome: welcome)
      }
    case .ownBreaks:
      if let id = order.own, wasOpen { order.bench.give(.closed(id, nil)) }
      order.own = nil
    case .furtherBreaks:
      if let id = order.other, order.isOpen(id) { order.bench.give(.closed(id, nil)) }
      order.other = nil
    case .furtherResumes:
      guard let client = order.last, order.other == nil else { return }
      order.bench.events = []
      let id = order.bench.resume(client, lastSeq: 0)
      for case .connected(_, _, let info, _) in order.bench.events where !info.isFurther {
        Issue.record("\(order.steps): no further one")
      }
      if wasOpen != order.isOpen(order.own) { Issue.record("\(order.steps): the own session was ended by a resume") }
      if order.bench.closed(id) == nil { order.other = id }
    }
  }

  /// The device's own session and a further one connect to one node, break and connect again, in every order of six steps.
  @Test func `in every order the own session is the device's location, and a further one never ends it`() throws {
    var first = Order()
    first.bench.perform(.nodes([home]))
    var orders = [first]
    var count = 0
    while let before = orders.popLast() {
      for step in Step.allCases {
        var order = before
        apply(step, to: &order)
        if order.steps.count < 6 { orders.append(order) } else { count += 1 }
      }
    }
    #expect(count == 15_625)
  }
}
