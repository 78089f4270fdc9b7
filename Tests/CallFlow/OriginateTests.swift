import AppSessions
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone
private let tablet = Surroundings.tablet
private let number = "+15557654321"

/// Click-to-call: the user's devices ring first, then the number is called.
@Suite struct OriginateTests {
  private enum Stage: String, CaseIterable { case ringing, answering, ready, progress, connected }

  private func begin(_ world: Surroundings, _ devices: [DeviceKey] = [phone], from: String? = nil) throws -> CallID {
    for device in devices { world.connect(device) }
    let call = try #require(try world.originate(.init(user: "alice", to: number, from: from))?.get())
    #expect(world.offeredCall(devices[0]) == call)
    return call
  }

  private func answer(_ world: Surroundings, _ call: CallID, _ device: DeviceKey = phone) {
    world.notify(device, .callRinging(CallRinging()), call: call)
    world.warm(device, call)
    #expect(world.isOK(world.request(device, .callAnswer(CallAnswer()), call: call)))
  }

  /// The call at a stage.
  private func reach(_ stage: Stage, _ world: Surroundings) throws -> CallID {
    let call = try begin(world)
    if stage == .ringing { return call }
    if stage == .answering {
      _ = world.prepare(phone, call)
      #expect(world.isOK(world.request(phone, .callAnswer(CallAnswer()), call: call)))
      return call
    }
    answer(world, call)
    if stage == .ready { return call }
    let leg = try #require(world.outgoingLeg)
    world.feed(.sip(.progress(leg, code: 180, sdp: nil)))
    if stage == .connected { world.feed(.sip(.answered(leg, sdp: Surroundings.trunkSDP()))) }
    return call
  }

  @Test func `the user's devices ring as for a call from the number; the INVITE follows the answer and its media`() throws {
    let world = Surroundings()
    let call = try begin(world, [phone, tablet])
    let offer = world.messages[phone]?.compactMap { if case .callOffer(let offer) = $0 { offer } else { nil } }.first
    #expect(offer?.from == Handle(k: .phone, h: number) && offer?.to.h == "+15551230001")
    #expect(world.trunkReceived == [], "nobody has answered")
    _ = world.prepare(phone, call)
    #expect(world.isOK(world.request(phone, .callAnswer(CallAnswer()), call: call)))
    #expect(world.received[tablet]?.last == "call.cancel answeredElsewhere" && world.trunkReceived == [], "no media yet")
    world.pair(phone)
    world.keys(phone)
    world.ready(phone, call)
    #expect(world.trunkReceived == ["INVITE \(number)"])
    let leg = try #require(world.outgoingLeg)
    #expect(world.invites.last?.from == "+15551230001")
    world.feed(.sip(.progress(leg, code: 180, sdp: nil)))
    world.feed(.sip(.progress(leg, code: 183, sdp: Surroundings.trunkSDP())))
    world.feed(.sip(.answered(leg, sdp: Surroundings.trunkSDP())))
    #expect(
      world.received[phone] == ["call.offer", "call.progress ringing", "call.progress early", "call.connected"])
    world.feed(.sip(.byeReceived(leg, nil)))
    world.expectRecord(.remoteHangup, by: .trunk, sip: 200)
    let record = try #require(world.records.first)
    #expect(record.direction == .outgoing && record.from == "+15551230001" && record.to == number)
    #expect(record.user == "alice" && record.device == "phone" && world.records.count == 1)
  }

  @Test func `it goes out from the number that is asked for, and from no other's`() throws {
    let world = Surroundings()
    let call = try begin(world, from: "+15551230002")
    answer(world, call)
    #expect(world.invites.last?.from == "+15551230002")
    guard case .failure(let failure)? = world.originate(.init(user: "alice", to: number, from: "+15551230009")) else {
      Issue.record("another user's number was taken")
      return
    }
    #expect(failure.code == .callerNumber)
  }

  @Test func `no device answers: all stop ringing, the number was never called`() throws {
    let world = Surroundings()
    _ = try begin(world)
    world.pass(.seconds(46))
    #expect(world.received[phone]?.last == "call.cancel unanswered" && world.trunkReceived == [])
    world.expectRecord(.unanswered, by: .gateway)
    #expect(world.machine.summaries.isEmpty && world.machine.trunksWithCalls.isEmpty && world.machine.calls.legs.isEmpty)
  }

  @Test func `the user declines: no INVITE`() throws {
    let world = Surroundings()
    let call = try begin(world, [phone, tablet])
    #expect(world.isOK(world.request(phone, .callReject(CallReject()), call: call)))
    #expect(world.received[tablet]?.last == "call.cancel declinedElsewhere" && world.trunkReceived == [])
    world.expectRecord(.declined, by: .app)
  }

  @Test func `the number is busy: who answered is told`() throws {
    let world = Surroundings()
    let call = try begin(world)
    answer(world, call)
    world.feed(.sip(.failed(try #require(world.outgoingLeg), code: 486, cause: nil, byTransport: false)))
    #expect(world.received[phone]?.last == "call.ended busy")
    world.expectRecord(.busy, by: .trunk, sip: 486)
  }

  @Test func `media does not come: mediaTimeout, and no INVITE`() throws {
    let world = Surroundings()
    let call = try reach(.answering, world)
    world.pass(.seconds(21))
    #expect(world.received[phone]?.last == "call.ended mediaTimeout" && world.trunkReceived == [])
    world.expectRecord(.mediaTimeout, by: .gateway)
    #expect(world.code(world.request(phone, .callHold(CallHold(on: true)), call: call)) == .gone)
  }

  @Test(arguments: Stage.allCases) private func `the user hangs up at each stage`(stage: Stage) throws {
    let world = Surroundings()
    let call = try reach(stage, world)
    #expect(world.isOK(world.request(phone, .callEnd(CallEnd()), call: call)))
    let sent: [Stage: String] = [.ready: "CANCEL", .progress: "CANCEL", .connected: "BYE"]
    #expect(world.trunkReceived.last == sent[stage])
    world.pass(.seconds(200))
    #expect(world.records.count == 1 && world.records.first?.end.by == .app)
    #expect(world.records.first?.end.reason == (stage == .ringing ? .declined : .localEnd))
  }

  @Test(arguments: Stage.allCases, [nil, HangUpReason.localEnd]) private func `a program ends it at each stage`(
    stage: Stage, reason: HangUpReason?
  ) throws {
    let world = Surroundings()
    let call = try reach(stage, world)
    #expect(world.command(call, .hangUp(.busy))?.code == .badState, "the number did not call")
    #expect(world.command(call, .hangUp(reason)) == nil)
    let sent: [Stage: String] = [.ready: "CANCEL", .progress: "CANCEL", .connected: "BYE"]
    #expect(world.trunkReceived.last == sent[stage])
    let word = stage == .ringing ? "call.cancel" : "call.ended"
    #expect(world.received[phone]?.last == "\(word) \(reason == nil ? "server" : "localEnd")")
    world.pass(.seconds(200))
    #expect(world.records.count == 1 && world.records.first?.end.by == .gateway)
  }

  @Test(arguments: Stage.allCases) private func `a device that comes back finds it as a call that came in`(stage: Stage) throws {
    let world = Surroundings()
    let call = try reach(stage, world)
    world.connect(phone, "again")
    let snapshot = try #require(world.welcomes[SessionID("again")]?.calls.first)
    #expect(snapshot.call == call && snapshot.dir == .incoming && snapshot.from.h == number)
    #expect(snapshot.state.rawValue == stage.rawValue)
  }

  @Test func `a killed app is woken for it`() throws {
    let world = Surroundings(pushes: true)
    world.register()
    let call = try #require(try world.originate(.init(user: "alice", to: number))?.get())
    #expect(world.pushes.last?.key.call == call && world.pushes.last?.content.handle == number)
    world.pushed()
    world.pass(.seconds(3))
    #expect(world.trunkReceived == [], "there is nobody to ring to")
    world.connect(phone, "woken", wake: call)
    #expect(world.welcomes[SessionID("woken")]?.calls.map(\.call) == [call])
  }

  @Test(
    arguments: [
      ("nobody", number, .notFound), ("alice", "+", .notFound), ("alice", "sip:x", .notFound), ("alice", "112", .emergency),
      ("alice", "+15551230002", .forbidden), ("bob", number, .badState),
    ] as [(String, String, ErrorCode)])
  func `what call-start refuses is refused, and what nobody could answer`(user: String, to: String, code: ErrorCode) throws {
    let world = Surroundings()
    world.connect(phone)
    guard case .failure(let failure)? = world.originate(.init(user: user, to: to)) else {
      Issue.record("it was taken")
      return
    }
    #expect(failure.code == code)
    #expect(world.refusals.count == 1 && world.records.isEmpty && world.machine.summaries.isEmpty)
  }

  @Test func `a gateway that drains, a user with enough calls and one over the hour's number are refused`() throws {
    func code(_ world: Surroundings) -> ErrorCode? {
      if case .failure(let failure)? = world.originate(.init(user: "alice", to: number)) { failure.code } else { nil }
    }
    var world = Surroundings { configuration, _ in configuration.bounds.callsPerUser = 1 }
    _ = try begin(world)
    #expect(code(world) == .tooMany)
    world = Surroundings { _, routing in routing.users[0].allowance.callsPerHour = 1 }
    _ = try begin(world)
    #expect(code(world) == .tooMany)
    world = Surroundings()
    world.connect(phone)
    world.feed(.draining)
    #expect(code(world) == .overload)
    world = Surroundings()
    world.connect(phone)
    world.mediaRefusal = "no port"
    #expect(code(world) == .overload && world.machine.summaries.isEmpty)
  }

  @Test func `among nodes it is claimed, and devices at other nodes are looked for`() throws {
    let world = Surroundings { configuration, _ in configuration.isClustered = true }
    world.connect(phone)
    #expect(world.originate(.init(user: "alice", to: number)) == nil, "the cluster is asked first")
    let claim = try #require(world.claims.last)
    #expect(claim.device.user == "alice" && world.offeredCall() == nil)
    world.feed(.claimed(claim.call, .granted))
    #expect(world.locates.last?.call == claim.call && world.offeredCall() == nil)
    world.feed(.located(claim.call, .here(remoteDevices: [], registry: [:])))
    #expect(world.offeredCall() == claim.call)
    #expect(world.originate(.init(user: "alice", to: number)) == nil)
    let second = try #require(world.claims.last)
    world.feed(.claimed(second.call, .refused(.userLimit)))
    #expect(world.refusals.last?.reason == .userLimit && world.machine.summaries.count == 1)
  }
}
