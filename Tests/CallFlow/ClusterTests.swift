import AppSessions
import Devices
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone
private let tablet = Surroundings.tablet

/// A call in a cluster: its users are located before it rings; it is steered, woken through another node, claimed.
@Suite struct ClusterTests {
  func world(pushes: Bool = true, _ configure: (inout Routing) -> Void = { _ in }) -> Surroundings {
    Surroundings { configuration, routing in
      configuration.isClustered = true
      configuration.push = PushSettings(gateway: "wss://n1.example/v1/connect", wakes: Surroundings.wakes)
      configure(&routing)
    }
  }
  private func remote(_ key: DeviceKey, at node: String = "n2", state: AppState = .fg, caps: Set<String> = ["nodes"])
    -> RemoteDevice
  {
    RemoteDevice(key, at: node, state: state, caps: caps)
  }
  func located(
    _ world: Surroundings, _ remoteDevices: [RemoteDevice] = [], registry: [String: [Device]] = [:], isHeard: Bool = true
  )
    throws -> CallID
  {
    let call = try #require(world.locates.last?.call)
    world.feed(.located(call, .here(remoteDevices: remoteDevices, registry: registry, isHeard: isHeard)))
    return call
  }

  @Test func `an INVITE is a call only once its users were looked for`() throws {
    let world = world()
    world.connect(phone)
    world.invite()
    let question = try #require(world.locates.first)
    #expect(question.users == ["alice"] && question.trunk == "carrier" && question.connectedHere == ["alice"])
    #expect(!question.mayRedirect, "no edge sent it")
    #expect(world.machine.summaries.isEmpty && world.received[phone] == nil)
    let call = try located(world)
    #expect(world.received[phone] == ["call.offer"] && world.machine.summaries.map(\.call) == [call])
    #expect(world.wakes.isEmpty)
  }

  @Test func `without a cluster nothing is asked`() {
    let world = Surroundings()
    world.connect(phone)
    world.invite()
    #expect(world.locates.isEmpty && world.received[phone] == ["call.offer"])
  }

  @Test func `a user who is elsewhere is called there: 302, counted, no record`() throws {
    let world = world()
    world.invite(isFromEdge: true)
    let question = try #require(world.locates.first)
    #expect(question.mayRedirect && question.connectedHere.isEmpty)
    world.feed(.located(question.call, .redirect(to: "sip:10.0.0.6:5060;transport=tcp")))
    #expect(world.trunkReceived == ["302 sip:10.0.0.6:5060;transport=tcp"])
    #expect(world.refusals.map(\.reason) == [.steered] && world.refusals.first?.isRoutine == true)
    #expect(world.records.isEmpty && world.machine.summaries.isEmpty)
  }

  @Test func `a silent shared store, and no device known here: an edge should try the next node, and no call is made`() throws {
    let world = world()
    world.invite(isFromEdge: true)
    let call = try located(world, isHeard: false)
    #expect(world.trunkReceived == ["503"] && world.unclaimed == [call])
    #expect(world.refusals.map(\.reason) == [.unlocated] && world.records.isEmpty && world.machine.summaries.isEmpty)
  }

  @Test func `a silent shared store, and a carrier that dials us itself: 480, and a record`() throws {
    let world = world()
    world.invite()
    _ = try located(world, isHeard: false)
    #expect(
      world.trunkReceived == ["480 Q.850;cause=20"] && world.records.map(\.end.reason) == [.unanswered] && world.refusals.isEmpty)
  }

  @Test func `the shared store knows of no device: 480 to an edge, too`() throws {
    let world = world()
    world.invite(isFromEdge: true)
    _ = try located(world)
    #expect(
      world.trunkReceived == ["480 Q.850;cause=20"] && world.records.map(\.end.reason) == [.unanswered] && world.refusals.isEmpty)
  }

  @Test func `a silent shared store, and a device here: it rings`() throws {
    let world = world()
    world.connect(phone)
    world.invite(isFromEdge: true)
    _ = try located(world, isHeard: false)
    #expect(world.received[phone] == ["call.offer"] && world.refusals.isEmpty)
  }

  @Test func `an INVITE is sent on once only`() throws {
    let world = world()
    world.invite(isFromEdge: true, isSteered: true)
    #expect(world.locates.first?.mayRedirect == false)
  }

  @Test func `a caller who gives up while users are looked for has one record, and a late answer rings no device`() throws {
    let world = world()
    world.connect(phone)
    let leg = world.invite()
    let call = try #require(world.locates.first?.call)
    world.feed(.sip(.cancelled(leg, nil)))
    world.feed(.sip(.legClosed(leg)))
    #expect(world.records.map(\.end.reason) == [.callerCancelled])
    world.feed(.located(call, .here(remoteDevices: [remote(tablet)], registry: [:])))
    #expect(world.received[phone] == nil && world.wakes.isEmpty && world.records.count == 1)
  }

  @Test(arguments: [Refusal.Reason.trunkLimit, .userLimit])
  func `limits of all nodes refuse a call before it is one`(_ reason: Refusal.Reason) throws {
    let world = world { $0.trunks[0].maximumCalls = 2 }
    world.connect(phone)
    world.invite()
    #expect(world.locates.first?.mostOfTrunk == 2 && world.locates.first?.mostOfUser == 8)
    world.feed(.located(try #require(world.locates.first?.call), .refused(reason)))
    #expect(world.trunkReceived == ["503"] && world.refusals.map(\.reason) == [reason] && world.records.isEmpty)
  }

  @Test func `the claim of a call without a media port is released`() throws {
    let world = world()
    world.connect(phone)
    world.mediaRefusal = "no ports"
    world.invite()
    let call = try located(world)
    #expect(world.unclaimed == [call] && world.trunkReceived == ["503"])
  }

  @Test func `a device elsewhere is woken through its socket, and comes here`() throws {
    let world = world()
    world.invite()
    let call = try located(world, [remote(phone)])
    #expect(world.wakes.map(\.key) == [phone] && world.wakes.first?.node == "n2")
    #expect(world.wakes.first?.content.gateway == "wss://n1.example/v1/connect" && world.pushes.isEmpty)
    world.pass(.seconds(1))
    world.connect(phone, "woken", wake: call)
    #expect(world.welcomes[SessionID("woken")]?.calls.map(\.call) == [call])
    world.notify(phone, .callRinging(CallRinging()), call: call)
    #expect(world.trunkReceived == ["180"])
    #expect(world.machine.statistics.wakesSent == 1 && world.machine.statistics.wakesCome == 1)
    world.pass(.seconds(20))
    #expect(world.wakes.count == 1 && world.pushes.isEmpty && world.trunkReceived == ["180"])
  }

  @Test func `one that does not come in 1.5 s is pushed to, once`() throws {
    let world = world()
    world.register()
    world.invite()
    _ = try located(world, [remote(phone)], registry: ["alice": world.machine.devices.devices(of: "alice")])
    #expect(world.wakes.count == 1 && world.pushes.isEmpty)
    world.pass(.milliseconds(1_499))
    #expect(world.pushes.isEmpty)
    world.pass(.milliseconds(2))
    #expect(world.pushes.count == 1 && world.machine.statistics.wakesFallenBack == 1)
    world.pushed()
    world.pass(.seconds(30))
    #expect(world.pushes.count == 1 && world.wakes.count == 1)
  }

  @Test func `a device without a push target is woken five times, then the call ends`() throws {
    let world = world()
    world.invite()
    _ = try located(world, [remote(phone)])
    world.pass(.milliseconds(8_001))
    #expect(world.wakes.count == 5 && world.records.isEmpty)
    world.pass(.seconds(2))
    #expect(world.wakes.count == 5 && world.trunkReceived == ["480 Q.850;cause=20"])
    #expect(world.records.first?.end.detail == "no device left, no push accepted: did not come from its node")
  }

  @Test func `in the background it is pushed to at once, too`() throws {
    let world = world()
    world.register()
    world.invite()
    _ = try located(
      world, [remote(phone, state: .bg)], registry: ["alice": world.machine.devices.devices(of: "alice")])
    #expect(world.wakes.count == 1 && world.pushes.count == 1)
  }

  @Test func `a client that knows one node gets calls of other nodes by push alone`() throws {
    let world = world()
    world.invite()
    _ = try located(world, [remote(phone, caps: [])])
    #expect(world.wakes.isEmpty && world.trunkReceived.first?.hasPrefix("480") == true)
  }

  @Test func `devices that the shared store lists for a user are pushed to; those it no longer lists are not`() throws {
    let world = world()
    world.register([phone])
    let known = try #require(world.machine.devices[phone])
    world.register([tablet])
    world.pass(.seconds(120))
    world.invite()
    _ = try located(world, registry: ["alice": [known]])
    #expect(world.pushes.map(\.key.device) == ["phone"])
  }

  @Test func `a device that comes to another node while it may ring is woken there`() throws {
    let world = world()
    world.connect(tablet)
    world.invite()
    let call = try located(world)
    world.feed(.remote(.deviceConnected(remote(phone, at: "n3"))))
    #expect(world.wakes.map(\.node) == ["n3"])
    world.connect(phone, "woken", wake: call)
    world.feed(.remote(.deviceConnected(remote(phone, at: "n2"))))
    #expect(world.wakes.count == 1, "it is here")
    world.warm(tablet, call)
    #expect(world.isOK(world.request(tablet, .callAnswer(CallAnswer()), call: call)))
    world.feed(.remote(.deviceConnected(remote(DeviceKey(user: "alice", device: "third")))))
    #expect(world.wakes.count == 1, "somebody has the call")
  }

  @Test func `a device answers: the other one, woken at another node, gets the reason once`() throws {
    let world = world()
    world.connect(tablet)
    world.invite()
    let call = try located(world, [remote(phone)])
    world.warm(tablet, call)
    #expect(world.isOK(world.request(tablet, .callAnswer(CallAnswer()), call: call)))
    world.connect(phone, "late", wake: call)
    #expect(world.welcomes[SessionID("late")]?.gone.map(\.over.reason) == [.answeredElsewhere])
    #expect(world.welcomes[SessionID("late")]?.calls.isEmpty == true)
  }

  @Test func `a device that has the call and lost its socket is woken through another node`() throws {
    let world = world()
    world.connect(tablet)
    world.invite()
    let call = try located(world)
    world.warm(tablet, call)
    #expect(world.isOK(world.request(tablet, .callAnswer(CallAnswer()), call: call)))
    world.feed(.remote(.deviceConnected(remote(tablet))))
    #expect(world.wakes.isEmpty, "its socket here is not closed yet")
    world.disconnect(tablet, forGood: true)
    #expect(world.wakes.map(\.key) == [tablet])
    world.feed(.remote(.deviceConnected(remote(tablet))))
    #expect(world.wakes.map(\.key) == [tablet, tablet])
    world.connect(tablet, "back", wake: call)
    #expect(world.welcomes[SessionID("back")]?.calls.map(\.state) == [.connected])
  }

  @Test func `a device that moves to another node while it rings here is woken there once its socket here is closed`() throws {
    let world = world()
    world.connect(tablet)
    world.invite()
    let call = try located(world)
    world.warm(tablet, call)
    world.feed(.remote(.deviceConnected(remote(tablet, at: "n3"))))
    #expect(world.wakes.isEmpty)
    world.disconnect(tablet, forGood: true)
    #expect(world.wakes.map(\.node) == ["n3"])
    world.connect(tablet, "woken", wake: call)
    world.feed(.remote(.deviceConnected(remote(tablet, at: "n3"))))
    world.disconnect(tablet, "woken", forGood: true)
    #expect(world.wakes.count == 1, "a session for the call is no login that another one ends")
  }

  @Test func `a device that connects after a dead node's call was closed gets the reason once, at any node`() throws {
    let world = world()
    let (call, other) = (CallID(random: .seeded(3)), CallID(random: .seeded(4)))
    world.feed(.remote(.callLost(call, user: "alice")))
    world.feed(.remote(.callLost(other, user: "bob")))
    world.connect(phone)
    #expect(world.welcomes[SessionID(phone.device)]?.gone.map(\.call) == [call])
    #expect(world.welcomes[SessionID(phone.device)]?.gone.map(\.over.reason) == [.gatewayRestart])
    world.feed(.remote(.callLost(call, user: "alice")))
    #expect(world.received[phone] == nil, "it has heard it")
    world.connect(tablet)
    #expect(world.welcomes[SessionID(tablet.device)]?.gone.map(\.call) == [call], "each device is told")
    #expect(world.records.isEmpty, "who closed it writes the record")
  }

  @Test func `a call of a dead node has its record here, and devices that connect get the reason`() throws {
    let world = world()
    let call = CallID(random: .seeded(3))
    let line = JournalEntry(
      call: call, sipCallId: "a@b", direction: .incoming, trunk: "carrier", from: "+1", to: "+15551230001", user: "alice",
      start: 1_700_000_000_000)
    world.connect(tablet)
    world.feed(.orphaned(line, users: ["alice"]))
    world.feed(.orphaned(line, users: ["alice"]))
    #expect(world.received[tablet] == ["call.gone gatewayRestart"])
    world.feed(.remote(.callLost(CallID(random: .seeded(4)), user: "alice")))
    #expect(world.received[tablet]?.count == 2 && world.received[phone] == nil)
    #expect(world.records.map(\.call) == [call] && world.records.first?.end.detail == "node lost")
    #expect(world.records.first?.end.reason == .gatewayRestart)
    world.connect(phone, "woken", wake: call)
    #expect(world.welcomes[SessionID("woken")]?.gone.map(\.over.reason) == [.gatewayRestart, .gatewayRestart])
  }

  @Test func `a node that was considered dead ends the call and writes no second record`() throws {
    let world = world()
    world.connect(tablet)
    world.invite()
    let call = try located(world)
    world.warm(tablet, call)
    #expect(world.isOK(world.request(tablet, .callAnswer(CallAnswer()), call: call)))
    world.feed(.reaped(call))
    world.pass(.seconds(2))
    #expect(world.records.isEmpty && world.disowned == [call] && world.trunkReceived.last == "BYE")
    #expect(world.received[tablet]?.last == "call.ended gatewayRestart")
  }

  // MARK: outgoing

  private static let start = CallStart(
    to: Handle(k: .phone, h: "+15557654321"), sdp: Surroundings.appSDP(setup: "actpass"))
  func ask(_ world: Surroundings, _ call: CallID) -> RequestToken {
    let token = RequestToken(device: phone, request: Identifier(high: 1, low: world.nextRequest))
    world.request(phone, .callStart(Self.start), call: call)
    return token
  }
  private func failure(_ answer: RequestAnswer?) -> Failure? { if case .err(let failure) = answer { failure } else { nil } }

  @Test func `a call.start is entered in the cluster before anything else, and its limits hold`() throws {
    let world = world { $0.trunks[0].maximumCalls = 5 }
    world.connect(phone)
    let call = CallID(random: .seeded(1))
    let request = ask(world, call)
    let claim = try #require(world.claims.first)
    #expect(claim.call == call && claim.device == phone && claim.trunk == "carrier" && claim.mostOfTrunk == 5)
    #expect(world.answers[request] == nil && world.session == nil)
    let repeated = ask(world, call)
    #expect(failure(world.answers[repeated])?.code == .overload && world.claims.count == 1)
    world.feed(.claimed(call, .granted))
    #expect(world.isOK(world.answers[request]))
  }

  @Test func `the same call.start at two nodes is one call`() throws {
    let world = world()
    world.connect(phone)
    let call = CallID(random: .seeded(1))
    let request = ask(world, call)
    world.feed(.claimed(call, .atOtherNode("n2", url: "wss://n2.example/v1/connect")))
    #expect(failure(world.answers[request])?.code == .overload)
    #expect(world.refusals.map(\.reason) == [.steered] && world.records.isEmpty)
  }

  // MARK: calls of other nodes

  @Test func `a device that is woken for a call that ended at another node hears why`() throws {
    let world = world()
    let call = CallID(random: .seeded(9))
    world.connect(phone, "woken", wake: call)
    #expect(world.askedTombstones == [call] && world.welcomes.isEmpty, "its welcome waits")
    world.feed(.tombstone(call, RemoteTombstone(users: ["alice"], CallOver(.answeredElsewhere, by: .app))))
    #expect(world.gone("woken") == [.answeredElsewhere])
    // unknown, or another user's
    for (session, found) in [("a", nil), ("b", RemoteTombstone(users: ["bob"], CallOver(.declined)))]
      as [(String, RemoteTombstone?)]
    {
      world.connect(phone, session, wake: call)
      world.feed(.tombstone(call, found))
      #expect(world.gone(session) == [.unknown])
    }
    // one session ends before the answer
    world.connect(phone, "c", wake: call)
    world.connect(phone, "d", wake: call)
    world.disconnect(phone, "d", forGood: true)
    world.feed(.tombstone(call, nil))
    #expect(world.welcomes.count == 3)
    world.feed(.tombstone(call, nil))
    #expect(world.welcomes.count == 3, "nobody waits any more")
  }

  @Test func `a decline by HTTP of another node's call is refused with the reason, or with the possible ones`() throws {
    let world = world()
    let call = CallID(random: .seeded(9))
    for (found, reason) in [
      (RemoteTombstone(users: ["alice"], CallOver(.gatewayRestart, by: .gateway)), EndReason.gatewayRestart),
      (RemoteTombstone(users: ["bob"], CallOver(.declined)), .unknown), (nil, .unknown),
    ] {
      let request = HTTPRequestID(world.nextRequest)
      #expect(world.reject(phone, call) == nil, "the shared store is asked first")
      world.feed(.tombstone(call, found))
      let failure = failure(world.httpAnswers[request])
      #expect(failure?.code == .gone && failure?.reason == reason)
      #expect(
        failure?.msg
          == (found == nil || reason == .unknown
            ? "no such call here: it is over, or its node is gone" : "the call is over for this device"))
    }
    let alone = Surroundings()
    #expect(failure(alone.reject(phone, call))?.reason == .unknown && alone.askedTombstones.isEmpty)
  }

  @Test func `a request and an existing session get the reason, too; an end needs no look-up`() throws {
    let world = world()
    world.connect(phone)
    let call = CallID(random: .seeded(9))
    #expect(world.isOK(world.request(phone, .callEnd(CallEnd()), call: call)) && world.askedTombstones.isEmpty)
    let token = RequestToken(device: phone, request: Identifier(high: 1, low: world.nextRequest))
    world.request(phone, .callAnswer(CallAnswer()), call: call)
    world.feed(.app(.callLost(phone, SessionID("phone"), call: call)))
    #expect(world.askedTombstones == [call] && world.answers[token] == nil, "asked once")
    world.feed(.tombstone(call, RemoteTombstone(users: ["alice"], CallOver(.callerCancelled, by: .trunk))))
    #expect(failure(world.answers[token])?.reason == .callerCancelled && world.received[phone] == ["call.gone callerCancelled"])
    // beyond the limit the answer comes at once, as without a cluster
    for number in 0..<1_010 as Range<UInt64> {
      world.request(tablet, .callAnswer(CallAnswer()), call: CallID(random: .seeded(number + 100)))
    }
    #expect(world.askedTombstones.count == 1_001 && world.answers.values.count { failure($0)?.code == .gone } == 11)
    let alone = Surroundings()
    alone.connect(phone, "woken", wake: call)
    #expect(alone.askedTombstones.isEmpty && alone.gone("woken") == [.unknown])
  }
}
