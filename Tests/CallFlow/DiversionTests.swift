import AppSessions
import Testing
import TrunklineAppProtocol
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIP
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone
private let tablet = Surroundings.tablet
private let bob = DeviceKey(user: "bob", device: "desk")
private let mobile = "+15558887777"

/// Diversion if no device answers: to another user, a number, a recording or a code; one lock, one record, one terminal message
/// for each device.
@Suite struct DiversionTests {
  /// Alice's rules.
  private func world(
    _ rules: [DiversionTrigger: Diversions.Rule], pushes: Bool = false,
    _ more: (inout CallConfiguration, inout Routing) -> Void = { _, _ in }
  ) -> Surroundings {
    Surroundings(pushes: pushes) { configuration, routing in
      routing.users[0].diversions = Diversions(rules)
      more(&configuration, &routing)
    }
  }
  private let toMobile = Diversions.Rule(.number(mobile, showsCaller: false))
  private let toBob = Diversions.Rule(.user("bob"))
  private func recording(early: Bool = false, missed: Bool = true) -> Diversions.Rule {
    let audio = Announcement(Recording(Array(repeating: 1, count: 8_000)))
    return .init(.recording(.init(name: "away.wav", audio: audio, isEarly: early, isMissed: missed)))
  }
  private func diversion(_ world: Surroundings) -> CallRecord.Diversion? { world.records.first?.diversions?.first }

  // MARK: a number

  @Test
  func `SRV-7: no device answers: devices get diverted, the number is called, its 200 answers the caller, audio both ways`()
    throws
  {
    let world = world([.noAnswer: toMobile])
    let (leg, call) = try world.ringing([phone, tablet])
    world.pass(.seconds(45))
    #expect(world.received[phone] == ["call.offer", "call.cancel diverted"] && world.received[tablet] == world.received[phone])
    #expect(world.trunkReceived == ["180", "INVITE \(mobile)"])
    let second = try #require(world.outgoingLeg)
    world.feed(.sip(.progress(second, code: 180, sdp: nil)))
    world.feed(.sip(.answered(second, sdp: Surroundings.trunkSDP(port: 7_000))))
    #expect(world.trunkReceived == ["180", "INVITE \(mobile)", "200"])
    #expect(world.mediaReceived == ["bridge caller → number", "bridge number → caller"])
    world.feed(.sip(.acknowledged(leg, sdp: nil)))
    world.pass(.seconds(60))
    #expect(world.machine.summaries.first?.state == .connected)
    #expect(world.request(phone, .callAnswer(CallAnswer()), call: call).flatMap { world.reason($0) } == .diverted)
    world.feed(.sip(.byeReceived(second, nil)))
    #expect(world.trunkReceived.last == "BYE")
    world.feed(.sip(.legClosed(second)))
    world.feed(.sip(.legClosed(leg)))
    world.expectRecord(.remoteHangup, by: .trunk)
    #expect(diversion(world)?.why == .noAnswer && diversion(world)?.number == mobile && diversion(world)?.trunk == "carrier")
    #expect(diversion(world)?.sipCallId == world.invites.first?.callID && world.records[0].sipCallId == "call-2@carrier")
    #expect(world.records[0].connectedMs == 60_000 && world.machine.calls.legs.isEmpty)
  }

  @Test func `SRV-7: early media of the number reaches the caller before its 200`() throws {
    let world = world([.noAnswer: toMobile])
    _ = try world.ringing()
    world.pass(.seconds(45))
    let second = try #require(world.outgoingLeg)
    world.feed(.sip(.progress(second, code: 183, sdp: Surroundings.trunkSDP(port: 7_000))))
    #expect(world.trunkReceived.last == "183" && world.mediaReceived == ["bridge number → caller early"])
    world.feed(.sip(.progress(second, code: 183, sdp: Surroundings.trunkSDP(port: 7_000))))
    #expect(world.trunkReceived.count(where: { $0 == "183" }) == 1)
    world.feed(.sip(.answered(second, sdp: nil)))
    #expect(world.trunkReceived.last == "200" && world.mediaReceived.count == 3)
  }

  @Test func `the INVITE to the number names who diverts it, why, and who diverted it before; it shows the user's number`() throws
  {
    let world = world([.busy: toMobile])
    world.connect(phone)
    let leg = LegID.inbound(1)
    var invite = InboundInvite(
      trunk: "carrier", source: Surroundings.peer.flow, callID: "a@b", from: .init(number: "+15550000042"),
      to: .init(number: "+15551230002"),
      isPrivate: false, sdp: Surroundings.trunkSDP(), diversions: 2, maxForwards: 20)
    invite.divertedFrom = [.init(number: "+15550000043")]
    world.feed(.sip(.inviteReceived(leg, invite)))
    let call = try #require(world.offeredCall())
    #expect(world.isOK(world.request(phone, .callReject(CallReject(reason: .busy)), call: call)))
    let out = try #require(world.invites.first)
    #expect(out.from == "+15551230002" && out.assertedIdentity == "+15551230002" && out.maxForwards == 19)
    #expect(
      out.extraHeaders.map { "\($0.name): \($0.value)" } == [
        "Diversion: <sip:+15551230002@127.0.0.1:5080>;reason=user-busy;counter=2",
        "Diversion: <sip:+15550000043@127.0.0.1:5080>;reason=unknown;counter=1",
      ])
    // the device sent busy itself: the `ok` was its terminal message
    #expect(world.received[phone] == ["call.offer"])
  }

  @Test func `a caller who withholds the number stays withheld, one who does not is shown where the rule says so`() throws {
    for isPrivate in [false, true] {
      let world = world([.unreached: .init(.number(mobile, showsCaller: true))])
      world.invite(isPrivate: isPrivate)
      let out = try #require(world.invites.first)
      #expect(out.from == (isPrivate ? "+15551230001" : "+15550000042") && out.isPrivate == isPrivate)
    }
  }

  @Test func `a diversion beyond the third, and one to a number of our own, is 482 and makes no leg`() throws {
    let circle = world([.unreached: .init(.number("+15551230009", showsCaller: false))])
    circle.invite()
    #expect(circle.trunkReceived == ["482 Q.850;cause=20"] && circle.invites.isEmpty)
    circle.expectRecord(.unanswered, sip: 482)
    let often = world([.unreached: toMobile])
    often.invite(diversions: 3)
    #expect(often.trunkReceived == ["482 Q.850;cause=20"] && often.invites.isEmpty)
    often.expectRecord(.unanswered, sip: 482)
  }

  @Test func `the user's own outbound limits hold for a diversion: the call ends as without the rule`() throws {
    for (name, change) in [
      ("prefix", { $0.users[0].allowance = .init(prefixes: ["+49"]) }), ("calls", { $0.users[0].allowance = .init(calls: 0) }),
      ("hour", { $0.users[0].allowance = .init(callsPerHour: 0) }), ("route", { $0.outbound = [] }),
    ] as [(String, (inout Routing) -> Void)] {
      let world = world([.unreached: toMobile]) { change(&$1) }
      world.invite()
      #expect(world.trunkReceived == ["480 Q.850;cause=20"], "\(name)")
      world.expectRecord(.unanswered)
    }
  }

  @Test(arguments: [
    (486, "486", EndReason.busy), (603, "486", .declined), (480, "480 Q.850;cause=19", .unanswered),
    (404, "480 Q.850;cause=20", .unanswered), (503, "480 Q.850;cause=20", .unanswered),
  ])
  func `the number's refusal reaches the caller`(code: Int, received: String, reason: EndReason) throws {
    let world = world([.unreached: toMobile])
    world.invite()
    let second = try #require(world.outgoingLeg)
    world.feed(.sip(.failed(second, code: code, cause: nil, byTransport: false)))
    world.feed(.sip(.legClosed(second)))
    #expect(world.trunkReceived.last == received)
    world.expectRecord(reason)
  }

  @Test func `the trunk of the number is down: the next one of the route is tried, on a new leg`() throws {
    let world = world([.unreached: toMobile]) { _, routing in
      var other = Surroundings.peer
      other.name = "other"
      routing.trunks.append(.init(name: "other", peer: other))
      routing.outbound = [
        .init(prefix: "+", choices: [.init(trunk: "carrier", priority: 1), .init(trunk: "other", priority: 2)])
      ]
    }
    let leg = world.invite()
    let first = try #require(world.outgoingLeg)
    world.feed(.sip(.failed(first, code: 503, cause: nil, byTransport: false)))
    world.feed(.sip(.legClosed(first)))
    let second = try #require(world.outgoingLeg)
    #expect(second != first && world.invites.map(\.trunk.name) == ["carrier", "other"])
    world.feed(.sip(.answered(second, sdp: Surroundings.trunkSDP())))
    #expect(world.trunkReceived.last == "200")
    world.feed(.sip(.byeReceived(leg, nil)))
    #expect(world.trunkReceived.last == "BYE")
    world.feed(.sip(.legClosed(second)))
    world.feed(.sip(.legClosed(leg)))
    world.expectRecord(.remoteHangup)
    #expect(
      diversion(world)?.trunk == "other" && diversion(world)?.sipCallId == world.invites[1].callID
        && world.machine.calls.legs.isEmpty)
  }

  @Test func `the number does not answer in the ring window: CANCEL there, 480 here`() throws {
    let world = world([.unreached: toMobile])
    world.invite()
    world.pass(.seconds(45))
    #expect(world.trunkReceived == ["INVITE \(mobile)", "CANCEL", "480 Q.850;cause=19"])
    world.expectRecord(.unanswered)
  }

  @Test func `the caller hangs up while the number rings: CANCEL there`() throws {
    let world = world([.unreached: toMobile])
    let leg = world.invite()
    world.feed(.sip(.cancelled(leg, nil)))
    #expect(world.trunkReceived == ["INVITE \(mobile)", "CANCEL"])
    world.expectRecord(.callerCancelled)
  }

  @Test func `ANS-5: a winner whose media fails gets mediaFailed, or mediaTimeout, and the number gets the call`() throws {
    for says in [true, false] {
      let world = world([.mediaFailed: toMobile])
      let (_, call) = try world.ringing([phone, tablet])
      _ = world.prepare(phone, call)
      #expect(world.isOK(world.request(phone, .callAnswer(CallAnswer()), call: call)))
      if says { world.notify(phone, .mediaFail(MediaFail(gen: 1, stage: .ice)), call: call) } else { world.pass(.seconds(20)) }
      #expect(world.received[phone]?.last == (says ? "call.ended mediaFailed" : "call.ended mediaTimeout"))
      #expect(world.received[tablet]?.last == "call.cancel answeredElsewhere")
      let second = try #require(world.outgoingLeg)
      world.feed(.sip(.answered(second, sdp: Surroundings.trunkSDP())))
      #expect(world.trunkReceived.last == "200")
      // later reports of the app about its media change nothing
      world.ready(phone, call)
      #expect(world.trunkReceived.count(where: { $0 == "200" }) == 1)
    }
  }

  @Test func `a late offer: the number's media joins with the caller's ACK`() throws {
    let world = world([.unreached: toMobile])
    let leg = world.invite(sdp: nil)
    let second = try #require(world.outgoingLeg)
    world.feed(.sip(.progress(second, code: 183, sdp: Surroundings.trunkSDP())))
    world.feed(.sip(.answered(second, sdp: Surroundings.trunkSDP())))
    #expect(world.trunkReceived.last == "200" && world.mediaReceived.isEmpty)
    world.feed(.sip(.acknowledged(leg, sdp: Surroundings.trunkSDP())))
    #expect(world.mediaReceived == ["bridge caller → number", "bridge number → caller"])
  }

  @Test func `digits, holds and silence of either trunk of a diverted call`() throws {
    let world = world([.unreached: toMobile])
    let leg = world.invite()
    let second = try #require(world.outgoingLeg)
    world.feed(.sip(.answered(second, sdp: Surroundings.trunkSDP())))
    world.feed(.sip(.acknowledged(leg, sdp: nil)))
    let (first, other) = (try #require(world.firstSession), try #require(world.session))
    world.feed(.media(.digit(first, from: .trunkToApp, digit: "5", durationMilliseconds: 100)))
    world.feed(.media(.digit(other, from: .trunkToApp, digit: "7", durationMilliseconds: 100)))
    #expect(world.mediaReceived.suffix(2) == ["digits 5 to number", "digits 7 to caller"])
    world.feed(.sip(.reinviteReceived(second, sdp: Surroundings.trunkSDP(direction: "sendonly"))))
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP(direction: "sendonly"))))
    #expect(world.trunkReceived.suffix(2) == ["200 re-INVITE", "200 re-INVITE"])
    world.feed(.media(.trunkSilent(other)))
    #expect(world.trunkReceived.last == "200 re-INVITE", "who holds need not send")
    world.feed(.sip(.reinviteReceived(second, sdp: Surroundings.trunkSDP())))
    world.feed(.media(.trunkSilent(other)))
    #expect(world.trunkReceived.last == "OPTIONS")
    world.feed(.sip(.pingAnswered(second, alive: false)))
    #expect(world.trunkReceived.suffix(2) == ["BYE", "BYE"])
    world.expectRecord(.trunkLost)
  }

  @Test func `SRV-7: a device that was woken and connects late gets diverted, while the call lives and after it`() throws {
    let world = world([.unreached: .init(.number(mobile, showsCaller: false), after: .seconds(10))], pushes: true)
    let (leg, call) = try world.parked([phone, tablet])
    world.pass(.seconds(10))
    #expect(world.trunkReceived == ["180", "INVITE \(mobile)"] && world.pushesOver.isEmpty)
    world.connect(phone, wake: call)
    #expect(world.gone("phone") == [.diverted] && world.welcomes[SessionID("phone")]?.calls.isEmpty == true)
    let second = try #require(world.outgoingLeg)
    world.feed(.sip(.answered(second, sdp: Surroundings.trunkSDP())))
    world.feed(.sip(.byeReceived(leg, nil)))
    world.connect(tablet, wake: call)
    #expect(world.gone("tablet") == [.diverted])
    #expect(world.reject(tablet, call) == .err(Failure(.gone, reason: .diverted, msg: "the call is over for this device")))
    world.pass(.seconds(121))
    world.expectRecord(.remoteHangup)
  }

  @Test func `a device that rings in time stops the clock of unreached`() throws {
    let world = world([.unreached: .init(.number(mobile, showsCaller: false), after: .seconds(10))])
    _ = try world.ringing()
    world.pass(.seconds(44))
    #expect(world.invites.isEmpty && world.trunkReceived == ["180"])
  }

  @Test func `the INVITE to the number waits for the journal entry on disk`() throws {
    let world = world([.unreached: toMobile])
    world.journals = false
    world.invite()
    #expect(world.trunkReceived == [])
    world.pass(.milliseconds(100))
    #expect(world.trunkReceived == ["INVITE \(mobile)"])
  }

  @Test func `no media port for the second leg: the call ends as without the rule`() throws {
    let world = world([.noAnswer: toMobile])
    _ = try world.ringing()
    world.mediaRefusal = "no port"
    world.pass(.seconds(45))
    #expect(world.received[phone] == ["call.offer", "call.cancel unanswered"] && world.invites.isEmpty)
    world.expectRecord(.unanswered)
  }

  // MARK: another user

  @Test func `another user's devices ring under the same lock, with one record; the first user's are told diverted`() throws {
    let world = world([.noAnswer: .init(.user("bob"), after: .seconds(15))])
    world.connect(bob)
    let (leg, call) = try world.ringing()
    world.pass(.seconds(15))
    #expect(world.received[phone] == ["call.offer", "call.cancel diverted"])
    #expect(world.offeredCall(bob) == call)
    let offer = world.messages[bob]?.compactMap { if case .callOffer(let offer) = $0 { offer } else { nil } }.first
    #expect(offer?.pstn?.diverted?.first?.h == "+15551230001")
    world.notify(bob, .callRinging(CallRinging()), call: call)
    // alice connects again: the call is no longer hers
    world.connect(phone, "again")
    #expect(world.welcomes[SessionID("again")]?.calls.isEmpty == true)
    world.connect(tablet)
    #expect(world.gone("tablet") == [.diverted])
    world.warm(bob, call)
    #expect(world.isOK(world.request(bob, .callAnswer(CallAnswer()), call: call)))
    #expect(world.trunkReceived == ["180", "200"])
    world.feed(.sip(.byeReceived(leg, nil)))
    world.expectRecord(.remoteHangup)
    #expect(world.records[0].user == "bob" && world.records[0].device == "desk")
    #expect(diversion(world)?.user == "bob" && diversion(world)?.why == .noAnswer)
  }

  @Test func `another user who is offline is woken; if no device connects either, that user's rule holds`() throws {
    let world = world([.unreached: toBob], pushes: true) { _, routing in
      routing.users[1].diversions = Diversions([.noAnswer: .init(.number(mobile, showsCaller: false), after: .seconds(30))])
    }
    world.register([bob])
    world.invite()
    #expect(world.pushes.map(\.key.user) == ["bob"])
    world.pushed(to: bob)
    world.pass(.seconds(30))
    #expect(world.invites.map(\.to) == [mobile] && world.invites[0].from == "+15551230009")
    world.pass(.seconds(45))
    world.expectRecord(.unanswered)
    #expect(world.records[0].diversions?.map(\.why) == [.unreached, .noAnswer])
  }

  @Test func `two users that divert to each other are a loop: 482`() throws {
    let world = world([.unreached: toBob]) { _, routing in
      routing.users[1].diversions = Diversions([.unreached: .init(.user("alice"))])
    }
    world.invite()
    #expect(world.trunkReceived == ["482 Q.850;cause=20"])
    world.expectRecord(.unanswered, sip: 482)
  }

  // MARK: a recording, a code

  @Test func `a recording is played after the 200, then BYE with the cause`() throws {
    let world = world([.declined: recording()])
    let (leg, call) = try world.ringing([phone, tablet])
    #expect(world.isOK(world.request(phone, .callReject(CallReject()), call: call)))
    #expect(world.received[phone] == ["call.offer"] && world.received[tablet] == ["call.offer", "call.cancel declinedElsewhere"])
    #expect(world.trunkReceived == ["180", "200"] && world.mediaReceived == ["play 8000"])
    world.feed(.sip(.acknowledged(leg, sdp: nil)))
    world.feed(.media(.played(try #require(world.session))))
    #expect(world.trunkReceived == ["180", "200", "BYE"])
    guard case .sip(.bye(_, let reason))? = world.actions.last(where: { if case .sip(.bye) = $0 { true } else { false } }) else {
      return
    }
    #expect(reason == .q850(21))
    world.expectRecord(.declined)
    #expect(diversion(world)?.recording == "away.wav")
  }

  @Test
  func `devices show a missed call when a recording took it: those that rang, and those that come late; diverted by setting`()
    throws
  {
    for (missed, reason) in [(true, EndReason.unanswered), (false, .diverted)] {
      let world = world([.noAnswer: recording(missed: missed)], pushes: true)
      world.register([tablet])
      let (leg, call) = try world.ringing()
      world.pushed(to: tablet)
      world.pass(.seconds(45))
      #expect(world.received[phone] == ["call.offer", "call.cancel \(reason.rawValue)"])
      world.connect(tablet, "woken", wake: call)
      #expect(world.gone("woken") == [reason], "during the recording")
      world.feed(.media(.played(try #require(world.session))))
      world.feed(.sip(.legClosed(leg)))
      let other = DeviceKey(user: "alice", device: "other")
      world.connect(other, "late", wake: call)
      #expect(world.gone("late") == [reason], "from the tombstone")
    }
  }

  @Test func `an early recording is heard before the answer, which never comes`() throws {
    let world = world([.unreached: recording(early: true)])
    world.invite()
    #expect(world.trunkReceived == ["183"] && world.mediaReceived == ["play 8000"])
    world.feed(.media(.played(try #require(world.session))))
    #expect(world.trunkReceived == ["183", "480 Q.850;cause=20"])
    world.expectRecord(.unanswered)
  }

  @Test func `a recording whose end is never reported ends all the same`() throws {
    for early in [true, false] {
      let world = world([.unreached: recording(early: early)])
      world.invite()
      world.pass(.seconds(6))
      world.expectRecord(.unanswered)
    }
  }

  @Test func `a caller who hangs up during the recording, or offers late`() throws {
    let world = world([.unreached: recording()])
    let leg = world.invite(sdp: nil)
    #expect(world.trunkReceived == ["200"] && world.mediaReceived.isEmpty)
    world.feed(.sip(.acknowledged(leg, sdp: Surroundings.trunkSDP())))
    #expect(world.mediaReceived == ["play 8000"])
    world.feed(.sip(.byeReceived(leg, nil)))
    world.expectRecord(.remoteHangup)
  }

  @Test(arguments: DiversionTrigger.allCases)
  func `a code in place of the usual one; devices get the same as without a rule`(trigger: DiversionTrigger) throws {
    let world = world([trigger: .init(.code(404))])
    var told = "unanswered"
    switch trigger {
    case .unreached: world.invite()
    case .noAnswer:
      _ = try world.ringing([phone, tablet])
      world.pass(.seconds(45))
    case .busy, .declined:
      let (_, call) = try world.ringing([phone, tablet])
      world.request(phone, .callReject(CallReject(reason: trigger == .busy ? .busy : .declined)), call: call)
      told = trigger == .busy ? "busyElsewhere" : "declinedElsewhere"
    case .mediaFailed:
      let (_, call) = try world.ringing([phone, tablet])
      _ = world.prepare(phone, call)
      world.request(phone, .callAnswer(CallAnswer()), call: call)
      world.pass(.seconds(20))
      told = "answeredElsewhere"
    }
    #expect(world.trunkReceived.last?.hasPrefix("404") == true)
    if trigger != .unreached { #expect(world.received[tablet]?.last == "call.cancel \(told)") }
    #expect(world.records.first?.end.sip == 404 && diversion(world)?.code == 404)
  }

  @Test func `a rule of the route holds for users without one of their own`() throws {
    for own in [true, false] {
      let world = Surroundings { _, routing in
        routing.inbound[0].diversions = Diversions([.unreached: .init(.code(404))])
        if own { routing.users[0].diversions = Diversions([.unreached: .init(.code(410))]) }
      }
      world.invite()
      #expect(world.trunkReceived == [own ? "410 Q.850;cause=20" : "404 Q.850;cause=20"])
    }
  }

  // MARK: faults

  @Test func `EXC-4: the push service is down for the whole ring window: the call is diverted, not lost`() throws {
    let world = world([.unreached: toMobile], pushes: true)
    _ = try world.parked([phone, tablet], accepted: false)
    for key in [phone, tablet] { world.pushed(.failed, to: key, reason: "timeout") }
    #expect(world.trunkReceived == ["INVITE \(mobile)"])
    let silent = self.world([.unreached: toMobile], pushes: true)
    _ = try silent.parked([phone], accepted: false)
    silent.pass(.seconds(20))
    #expect(silent.trunkReceived == ["INVITE \(mobile)"])
    silent.pushed(.failed)
    silent.pass(.seconds(45))
    silent.expectRecord(.unanswered)
  }

  @Test func `clock steps of an hour leave diverted and established calls alone, and every call ends with a cause`() throws {
    let world = world([.noAnswer: toMobile])
    let (leg, _) = try world.ringing()
    world.feed(.wallClock(offsetMilliseconds: 1_700_003_600_000))
    world.pass(.seconds(44))
    #expect(world.invites.isEmpty)
    world.pass(.seconds(1))
    let second = try #require(world.outgoingLeg)
    world.feed(.wallClock(offsetMilliseconds: 1_699_996_400_000))
    world.feed(.sip(.answered(second, sdp: Surroundings.trunkSDP())))
    world.feed(.sip(.acknowledged(leg, sdp: nil)))
    world.feed(.wallClock(offsetMilliseconds: 1_700_003_600_000))
    world.pass(.seconds(600))
    #expect(world.machine.summaries.first?.state == .connected)
    world.feed(.sip(.byeReceived(leg, nil)))
    world.expectRecord(.remoteHangup)
    #expect(world.records[0].connectedMs == 600_000)
  }

  @Test func `OUT-5: an outgoing call that the far side diverts stays one call: the app gets divertedPstn, once`() throws {
    let world = Surroundings()
    let call = CallID(high: 5, low: 5)
    try world.started(call)
    world.openOutgoingGate(call)
    let leg = try #require(world.outgoingLeg)
    world.feed(.sip(.progress(leg, code: 181, sdp: nil)))
    world.feed(.sip(.progress(leg, code: 181, sdp: nil)))
    #expect(world.received[phone]?.filter { $0 == "call.progress divertedPstn" }.count == 1)
  }
}
