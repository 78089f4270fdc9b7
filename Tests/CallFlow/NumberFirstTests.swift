import AppSessions
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIP
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone
private let tablet = Surroundings.tablet
private let number = "+15557654321"

/// A program's call that reaches the number first: it is dialled at once, and the user's devices ring when it has answered.
@Suite struct NumberFirstTests {
  private enum Stage: String, CaseIterable { case dialling, calling, ringing, answering, connected }

  private func begin(_ world: Surroundings, _ devices: [DeviceKey] = [phone]) throws -> CallID {
    for device in devices { world.connect(device) }
    let call = try #require(try world.originate(.init(user: "alice", to: number, first: .number))?.get())
    #expect(world.trunkReceived == ["INVITE \(number)"] && world.offeredCall() == nil)
    return call
  }

  /// The number has answered.
  private func waiting(_ world: Surroundings, _ devices: [DeviceKey] = [phone]) throws -> (CallID, LegID) {
    let call = try begin(world, devices)
    let leg = try #require(world.outgoingLeg)
    world.feed(.sip(.progress(leg, code: 180, sdp: nil)))
    #expect(world.offeredCall() == nil, "nobody is on the line yet")
    world.feed(.sip(.answered(leg, sdp: Surroundings.trunkSDP())))
    return (call, leg)
  }

  private func answer(_ world: Surroundings, _ call: CallID) {
    world.notify(phone, .callRinging(CallRinging()), call: call)
    world.warm(phone, call)
    #expect(world.isOK(world.request(phone, .callAnswer(CallAnswer()), call: call)))
  }

  /// The call at a stage.
  private func reach(_ stage: Stage, _ world: Surroundings) throws -> CallID {
    if stage == .dialling { return try begin(world) }
    if stage == .calling {
      let call = try begin(world)
      world.feed(.sip(.progress(try #require(world.outgoingLeg), code: 180, sdp: nil)))
      return call
    }
    let (call, _) = try waiting(world)
    if stage == .answering {
      _ = world.prepare(phone, call)
      #expect(world.isOK(world.request(phone, .callAnswer(CallAnswer()), call: call)))
    }
    if stage == .connected { answer(world, call) }
    return call
  }

  /// `Reason` of the BYE.
  private func cause(_ world: Surroundings) -> String? {
    for case .sip(.bye(_, let reason)) in world.actions.reversed() { return reason.map { "\($0)" } ?? "none" }
    return nil
  }

  @Test func `the number is dialled at once; the devices ring when it has answered, and the one with media hears it`() throws {
    let world = Surroundings()
    let (call, leg) = try waiting(world, [phone, tablet])
    #expect(world.offeredCall() == call && world.offeredCall(tablet) == call)
    let offer = world.messages[phone]?.compactMap { if case .callOffer(let offer) = $0 { offer } else { nil } }.first
    #expect(offer?.from == Handle(k: .phone, h: number) && offer?.to.h == "+15551230001")
    #expect(world.invites.last?.from == "+15551230001")
    #expect(world.mediaReceived == ["play 40000"], "ringback of ours")
    world.feed(.media(.played(try #require(world.session))))
    #expect(world.mediaReceived == ["play 40000", "play 40000"], "over and over")
    world.notify(phone, .callRinging(CallRinging()), call: call)
    #expect(world.trunkReceived == ["INVITE \(number)"], "there is nobody to send a 180 to")
    world.pass(.seconds(3))
    _ = world.prepare(phone, call)
    #expect(world.isOK(world.request(phone, .callAnswer(CallAnswer()), call: call)))
    #expect(world.received[tablet]?.last == "call.cancel answeredElsewhere" && world.mediaReceived.last == "lock", "no media yet")
    world.pair(phone)
    world.keys(phone)
    world.ready(phone, call)
    #expect(world.mediaReceived.suffix(3) == ["lock", "no play", "connect"])
    #expect(world.received[phone] == ["call.offer", "call.connected"])
    world.feed(.media(.played(try #require(world.session))))
    #expect(world.mediaReceived.last == "connect", "a word of the ringback that crossed its end")
    world.pass(.seconds(10))
    world.feed(.sip(.byeReceived(leg, nil)))
    #expect(world.received[phone]?.last == "call.ended remoteHangup")
    world.expectRecord(.remoteHangup, by: .trunk, sip: 200)
    let record = try #require(world.records.first)
    #expect(record.direction == .outgoing && record.from == "+15551230001" && record.to == number)
    #expect(record.user == "alice" && record.device == "phone")
    let (answered, connected) = (record.times["numberAnswered"] ?? 0, record.times["connected"] ?? 0)
    #expect(connected - answered == 3_000 && record.connectedMs == 13_000, "it costs from its 200 on")
  }

  @Test func `call.connected and the snapshot count from when the two hear each other`() throws {
    let world = Surroundings()
    let (call, _) = try waiting(world)
    world.pass(.seconds(5))
    let joined = world.now
    answer(world, call)
    let at = world.messages[phone]?.compactMap { if case .callConnected(let connected) = $0 { connected.at } else { nil } }
    world.connect(phone, "again")
    let row = try #require(world.welcomes[SessionID("again")]?.calls.first)
    #expect(at == [row.at] && row.at == joined.nanoseconds / 1_000_000 + 1_700_000_000_000 && row.dir == .incoming)
  }

  @Test func `nobody takes it: the number hears BYE with the cause, after the time that devices ring`() throws {
    let world = Surroundings()
    _ = try waiting(world)
    world.pass(.seconds(46))
    #expect(world.received[phone]?.last == "call.cancel unanswered" && world.trunkReceived.last == "BYE")
    #expect(cause(world) == "Q.850;cause=19")
    world.expectRecord(.unanswered, by: .gateway)
    #expect(world.records.first?.connectedMs == 45_000 && world.records.first?.times["connected"] == nil)
  }

  @Test func `a user who declines, and one whose devices are gone by then`() throws {
    var world = Surroundings()
    let (call, _) = try waiting(world, [phone, tablet])
    #expect(world.isOK(world.request(phone, .callReject(CallReject()), call: call)))
    #expect(world.received[tablet]?.last == "call.cancel declinedElsewhere" && cause(world) == "Q.850;cause=21")
    world.expectRecord(.declined, by: .app)
    world = Surroundings()
    _ = try begin(world)
    world.disconnect(phone, forGood: true)
    world.pass(.seconds(10))
    world.feed(.sip(.answered(try #require(world.outgoingLeg), sdp: Surroundings.trunkSDP())))
    #expect(world.received[phone] == nil && cause(world) == "Q.850;cause=20")
    world.expectRecord(.unanswered)
  }

  @Test func `a number that is busy, or does not answer, rings no device`() throws {
    var world = Surroundings()
    _ = try begin(world)
    world.feed(.sip(.failed(try #require(world.outgoingLeg), code: 486, cause: nil, byTransport: false)))
    world.expectRecord(.busy, by: .trunk, sip: 486)
    #expect(world.received[phone] == nil)
    world = Surroundings()
    _ = try reach(.calling, world)
    world.pass(.seconds(181))
    #expect(world.trunkReceived.last == "CANCEL" && world.received[phone] == nil)
    world.expectRecord(.unanswered, by: .trunk)
  }

  @Test(arguments: [Stage.ringing, .answering]) private func `a number that hangs up before it is answered gave up`(stage: Stage)
    throws
  {
    let world = Surroundings()
    _ = try reach(stage, world)
    world.feed(.sip(.byeReceived(try #require(world.outgoingLeg), nil)))
    #expect(world.received[phone]?.last == (stage == .ringing ? "call.cancel" : "call.ended") + " callerCancelled")
    #expect(!world.trunkReceived.contains("BYE"))
    world.expectRecord(.callerCancelled, by: .trunk)
  }

  @Test func `media does not come: the number hears BYE`() throws {
    let world = Surroundings()
    _ = try reach(.answering, world)
    world.pass(.seconds(21))
    #expect(world.received[phone]?.last == "call.ended mediaTimeout" && world.trunkReceived.last == "BYE")
    world.expectRecord(.mediaTimeout, by: .gateway)
  }

  @Test func `a 200 without a codec of ours ends before anybody rings`() throws {
    let world = Surroundings()
    _ = try begin(world)
    world.feed(.sip(.answered(try #require(world.outgoingLeg), sdp: Surroundings.trunkSDP(formats: "97"))))
    #expect(world.received[phone] == nil && world.trunkReceived.last == "BYE" && world.mediaReceived == [])
    world.expectRecord(.codec, by: .trunk)
  }

  @Test(arguments: Stage.allCases, [nil, HangUpReason.localEnd]) private func `a program ends it at each stage`(
    stage: Stage, reason: HangUpReason?
  ) throws {
    let world = Surroundings()
    let call = try reach(stage, world)
    #expect(world.command(call, .hangUp(.busy))?.code == .badState, "the number did not call")
    #expect(world.command(call, .hangUp(reason)) == nil)
    #expect(world.trunkReceived.last == ([.dialling, .calling].contains(stage) ? "CANCEL" : "BYE"))
    let word: String? =
      switch stage {
      case .dialling, .calling: nil
      case .ringing: "call.cancel"
      case .answering, .connected: "call.ended"
      }
    #expect(world.received[phone]?.last == word.map { "\($0) \(reason == nil ? "server" : "localEnd")" })
    world.pass(.seconds(200))
    #expect(world.records.count == 1 && world.records.first?.end.by == .gateway)
  }

  @Test(arguments: [Stage.ringing, .answering, .connected]) private func `the user ends it at each stage`(stage: Stage) throws {
    let world = Surroundings()
    let call = try reach(stage, world)
    #expect(world.isOK(world.request(phone, .callEnd(CallEnd()), call: call)))
    #expect(world.trunkReceived.last == "BYE")
    world.pass(.seconds(200))
    #expect(world.records.count == 1 && world.records.first?.end.reason == (stage == .ringing ? .declined : .localEnd))
  }

  @Test func `a killed app is woken when the number has answered, and not before`() throws {
    let world = Surroundings(pushes: true)
    world.register()
    let call = try begin(world, [])
    #expect(world.pushes.isEmpty)
    world.feed(.sip(.answered(try #require(world.outgoingLeg), sdp: Surroundings.trunkSDP())))
    #expect(world.pushes.last?.key.call == call && world.pushes.last?.content.handle == number)
    world.pushed()
    world.connect(phone, "woken", wake: call)
    #expect(world.welcomes[SessionID("woken")]?.calls.map(\.call) == [call])
  }

  @Test func `a device that comes while the number is called rings with the others`() throws {
    let world = Surroundings()
    _ = try begin(world)
    world.connect(tablet)
    #expect(world.offeredCall(tablet) == nil && world.welcomes[SessionID("tablet")]?.calls.isEmpty == true)
    world.feed(.sip(.answered(try #require(world.outgoingLeg), sdp: Surroundings.trunkSDP())))
    #expect(world.offeredCall(tablet) != nil)
  }

  @Test func `the INVITE waits for the journal entry on disk, and the second line says since when it costs`() throws {
    let world = Surroundings()
    world.journals = false
    world.connect(phone)
    let call = try #require(try world.originate(.init(user: "alice", to: number, first: .number))?.get())
    #expect(world.trunkReceived == [])
    world.feed(.journalled(call))
    world.feed(.sip(.answered(try #require(world.outgoingLeg), sdp: Surroundings.trunkSDP())))
    let lines = world.actions.compactMap { if case .journal(let line) = $0 { line } else { nil } }
    #expect(lines.count == 2 && lines[0].connect == nil && lines[1].connect != nil)
  }

  @Test func `a trunk that fails leaves the number to the next of its route`() throws {
    let world = Surroundings { _, routing in
      var second = Surroundings.peer
      second.name = "second"
      routing.trunks.append(.init(name: "second", peer: second))
      routing.outbound = [.init(prefix: "+", choices: [.init(trunk: "carrier"), .init(trunk: "second", priority: 2)])]
    }
    _ = try begin(world)
    world.feed(.sip(.failed(try #require(world.outgoingLeg), code: 503, cause: nil, byTransport: false)))
    #expect(world.trunkReceived == ["INVITE \(number)", "INVITE \(number)"])
    world.feed(.sip(.answered(try #require(world.outgoingLeg), sdp: Surroundings.trunkSDP())))
    #expect(world.offeredCall() != nil && world.machine.summaries.first?.trunk == "second")
  }

  @Test(arguments: [("112", .emergency), ("+15551230002", .forbidden), ("x", .notFound)] as [(String, ErrorCode)])
  func `what the user may not call is refused, and an emergency number though a route takes it`(to: String, code: ErrorCode) {
    let world = Surroundings { _, routing in
      routing.outbound.append(.init(prefix: "112", choices: [.init(trunk: "carrier")], allowsEmergency: true))
    }
    world.connect(phone)
    guard case .failure(let failure)? = world.originate(.init(user: "alice", to: to, first: .number)) else {
      return #expect(Bool(false), "it was taken")
    }
    #expect(failure.code == code && world.trunkReceived == [] && world.records.isEmpty)
  }

  @Test func `a user whom nobody could reach costs no call to the number`() {
    let world = Surroundings()
    guard case .failure(let failure)? = world.originate(.init(user: "alice", to: number, first: .number)) else {
      return #expect(Bool(false), "it was taken")
    }
    #expect(failure.code == .badState && world.trunkReceived == [])
  }

  @Test func `among nodes it is claimed before the number is dialled, and devices are looked for when it has answered`() throws {
    let world = Surroundings { configuration, _ in configuration.isClustered = true }
    world.connect(phone)
    #expect(world.originate(.init(user: "alice", to: number, first: .number)) == nil)
    let claim = try #require(world.claims.last)
    world.feed(.claimed(claim.call, .granted))
    #expect(world.trunkReceived == ["INVITE \(number)"] && world.locates.isEmpty)
    world.feed(.sip(.answered(try #require(world.outgoingLeg), sdp: Surroundings.trunkSDP())))
    #expect(world.locates.last?.call == claim.call && world.offeredCall() == nil)
    world.feed(.located(claim.call, .here(remoteDevices: [], registry: [:])))
    #expect(world.offeredCall() == claim.call)
    world.pass(.seconds(46))
    world.expectRecord(.unanswered)
  }

  @Test func `a number of another user rings that user's devices, and then the user's own`() throws {
    let world = Surroundings()
    let bob = DeviceKey(user: "bob", device: "bob's")
    for device in [phone, bob] { world.connect(device) }
    let call = try #require(try world.originate(.init(user: "alice", to: "+15551230009", first: .number))?.get())
    let other = try #require(world.offeredCall(bob))
    #expect(other != call && world.offeredCall() == nil)
    world.warm(bob, other)
    #expect(world.isOK(world.request(bob, .callAnswer(CallAnswer()), call: other)))
    #expect(world.received[bob]?.last == "call.connected" && world.offeredCall() == call)
    world.session = world.firstSession
    answer(world, call)
    #expect(world.received[phone] == ["call.offer", "call.connected"])
    #expect(world.isOK(world.request(phone, .callEnd(CallEnd()), call: call)))
    #expect(world.received[bob]?.last == "call.ended remoteHangup")
    world.pass(.seconds(10))
    #expect(world.records.count == 2 && world.records.allSatisfy { $0.peer != nil })
  }

  @Test func `a recording begins when the two hear each other`() throws {
    let world = Surroundings { configuration, _ in configuration.recording = RecordingRules(when: .on) }
    let (call, _) = try waiting(world)
    #expect(world.recordings.isEmpty)
    answer(world, call)
    #expect(world.recordings.count == 1)
  }
}
