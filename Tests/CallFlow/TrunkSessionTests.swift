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

/// What a trunk and its call agree on while it rings and while it runs: hold both ways, refreshes, digits by INFO, 100rel.
@Suite struct TrunkSessionTests {
  private func world(_ change: @escaping (inout Routing.Trunk) -> Void) -> Surroundings {
    Surroundings { _, routing in change(&routing.trunks[0]) }
  }

  private func hold(_ world: Surroundings, _ call: CallID, _ on: Bool) {
    #expect(world.isOK(world.request(phone, .callHold(CallHold(on: on)), call: call)))
  }

  @Test func `hold signal: a re-INVITE sendonly, and one sendrecv to resume`() throws {
    let world = world { $0.signalsHold = true }
    let (leg, call) = try world.connected()
    hold(world, call, true)
    #expect(world.trunkReceived.last == "modify" && world.received[phone]?.last == "call.held local true")
    world.feed(.sip(.offerWanted(leg)))
    #expect(world.trunkReceived.last == "re-INVITE sendonly")
    world.feed(.sip(.offerAnswered(leg, sdp: Surroundings.trunkSDP(direction: "recvonly"))))
    #expect(
      world.received[phone]?.last == "call.held local true",
      "the peer's recvonly is the answer to our hold, not a hold of its own")
    hold(world, call, false)
    world.feed(.sip(.offerWanted(leg)))
    #expect(world.trunkReceived.last == "re-INVITE sendrecv")
    world.feed(.sip(.offerAnswered(leg, sdp: Surroundings.trunkSDP())))
    #expect(world.received[phone]?.last == "call.held local false")
  }

  @Test func `a refused hold stays local and the call goes on`() throws {
    let world = world { $0.signalsHold = true }
    let (leg, call) = try world.connected()
    hold(world, call, true)
    world.feed(.sip(.offerWanted(leg)))
    world.feed(.sip(.offerRefused(leg, code: 488)))
    #expect(world.machine.summaries.count == 1 && world.received[phone]?.last == "call.held local true")
    world.feed(.sip(.byeReceived(leg, .q850(16))))
    world.expectRecord(.remoteHangup, by: .trunk)
    #expect(world.records.first?.end.detail == "Q.850;cause=16")
  }

  @Test func `an app that changes its mind while the offer is out is followed by a second one`() throws {
    let world = world { $0.signalsHold = true }
    let (leg, call) = try world.connected()
    hold(world, call, true)
    world.feed(.sip(.offerWanted(leg)))
    hold(world, call, false)
    let asked = world.trunkReceived.count { $0 == "modify" }
    world.feed(.sip(.offerAnswered(leg, sdp: Surroundings.trunkSDP(direction: "recvonly"))))
    #expect(world.trunkReceived.count { $0 == "modify" } == asked + 1)
    world.feed(.sip(.offerWanted(leg)))
    #expect(world.trunkReceived.last == "re-INVITE sendrecv")
  }

  @Test(arguments: ["sendonly", "inactive"]) func `the trunk holds, in both spellings, and resumes`(direction: String) throws {
    let world = Surroundings()
    let (leg, _) = try world.connected()
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP(direction: direction))))
    #expect(world.trunkReceived.last == "200 re-INVITE" && world.received[phone]?.last == "call.held remote true")
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP())))
    #expect(world.received[phone]?.last == "call.held remote false")
  }

  @Test func `0-0-0-0 is hold, recvonly is not`() throws {
    let world = Surroundings()
    let (leg, _) = try world.connected()
    let old = Surroundings.trunkSDP().replacing("c=IN IP4 127.0.0.1", with: "c=IN IP4 0.0.0.0")
    world.feed(.sip(.reinviteReceived(leg, sdp: old)))
    #expect(world.received[phone]?.last == "call.held remote true")
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP(direction: "recvonly"))))
    #expect(world.received[phone]?.last == "call.held remote false", "a peer that only listens still hears us")
  }

  @Test func `both hold: the answer to the trunk's hold is inactive while ours is on`() throws {
    let world = world { $0.signalsHold = true }
    let (leg, call) = try world.connected()
    hold(world, call, true)
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP(direction: "sendonly"))))
    let answers = world.actions.compactMap { if case .sip(.answerReinvite(_, let sdp)) = $0 { sdp } else { nil } }
    #expect(answers.last.map(Surroundings.direction) == "inactive")
  }

  @Test func `a re-INVITE without SDP gets our offer, held or not`() throws {
    let world = world { $0.signalsHold = true }
    let (leg, call) = try world.connected()
    hold(world, call, true)
    world.feed(.sip(.reinviteReceived(leg, sdp: nil)))
    let offers = world.actions.compactMap { if case .sip(.answerReinvite(_, let sdp)) = $0 { sdp } else { nil } }
    #expect(offers.last.map(Surroundings.direction) == "sendonly")
  }

  @Test func `a session that expires or can not be refreshed ends the call with its cause`() throws {
    for (loss, detail) in [(SessionLoss.expired, "session expired"), (.refreshFailed(481), "session refresh failed with 481")] {
      let world = Surroundings()
      let (leg, _) = try world.connected()
      world.feed(.sip(.sessionLost(leg, loss)))
      world.expectRecord(.trunkLost, by: .trunk)
      #expect(world.records.first?.end.detail == detail)
      #expect(!world.trunkReceived.contains("BYE"), "the user agent has sent it")
    }
  }

  @Test func `the refresh of an outgoing call offers the session as it is`() throws {
    let world = Surroundings()
    let (leg, _) = try world.connected()
    world.feed(.sip(.offerWanted(leg)))
    #expect(world.trunkReceived.last == "re-INVITE sendrecv")
    world.feed(.sip(.offerAnswered(leg, sdp: Surroundings.trunkSDP(port: 6_100))))
    let moved = world.actions.contains {
      if case .media(.setTrunk(_, let media)) = $0 { media.remote.port == 6_100 } else { false }
    }
    #expect(moved, "an answer may move media like any other")
  }

  // MARK: 100rel and late offers

  @Test func `a late offer with 100rel: our offer in the 180, their answer in the PRACK, media before the ACK`() throws {
    let world = Surroundings()
    world.connect(phone)
    let leg = LegID.inbound(1)
    var invite = InboundInvite(
      trunk: "carrier", source: Surroundings.peer.flow, callID: "late", from: .init(number: "+15550000042"),
      to: .init(number: "+15551230001"),
      sdp: nil)
    invite.isReliable = true
    world.feed(.sip(.inviteReceived(leg, invite)))
    let call = try #require(world.offeredCall())
    world.notify(phone, .callRinging(CallRinging()), call: call)
    let ringing = world.actions.compactMap { if case .sip(.respondProvisional(_, 180, _, let sdp)) = $0 { sdp } else { nil } }
    #expect(ringing.count == 1)
    world.warm(phone, call)
    world.request(phone, .callAnswer(CallAnswer()), call: call)
    let answers = world.actions.compactMap { action -> String?? in
      if case .sip(.answer(_, let sdp)) = action { .some(sdp) } else { nil }
    }
    #expect(answers.count == 1 && answers[0] == nil, "the 200 says nothing new")
    #expect(world.received[phone]?.contains("call.connected") == false)
    world.feed(.sip(.provisionallyAnswered(leg, sdp: Surroundings.trunkSDP())))
    #expect(world.received[phone]?.contains("call.connected") == true)
    world.feed(.sip(.acknowledged(leg, sdp: nil)))
    #expect(world.machine.summaries.count == 1)
  }

  @Test func `no PRACK: the call ends with 504 and says why`() throws {
    let world = Surroundings()
    let (leg, _) = try world.ringing()
    world.feed(.sip(.provisionalTimedOut(leg)))
    world.expectRecord(.server, by: .trunk, sip: 504)
    #expect(world.records.first?.end.detail == "no PRACK")
  }

  @Test func `late offer outwards: INVITE without SDP, our answer in the ACK`() throws {
    let world = world { $0.offersLate = true }
    let call = CallID(random: .seeded(5))
    try world.started(call)
    world.openOutgoingGate(call)
    let leg = try #require(world.outgoingLeg)
    let invites = world.actions.compactMap { if case .sip(.invite(_, let invite)) = $0 { invite } else { nil } }
    #expect(invites.count == 1 && invites[0].sdp == nil)
    world.feed(.sip(.answered(leg, sdp: Surroundings.trunkSDP())))
    #expect(world.trunkReceived.last == "ACK with SDP" && world.received[phone]?.last?.hasPrefix("call.connected") == true)
  }

  @Test func `early media of several 18x: the last one heard, the winner's after the 200`() throws {
    let world = Surroundings()
    let call = CallID(random: .seeded(5))
    try world.started(call)
    world.openOutgoingGate(call)
    let leg = try #require(world.outgoingLeg)
    for port in [6_000, 6_200] as [UInt16] { world.feed(.sip(.progress(leg, code: 183, sdp: Surroundings.trunkSDP(port: port)))) }
    world.feed(.sip(.progress(leg, code: 180, sdp: nil)))
    // the fork whose description came first wins; its 200 repeats none, and the user agent knows it
    world.feed(.sip(.answered(leg, sdp: Surroundings.trunkSDP(port: 6_000))))
    let ports = world.actions.compactMap { if case .media(.setTrunk(_, let media)) = $0 { media.remote.port } else { nil } }
    #expect(ports == [6_000, 6_200, 6_000])
    #expect(world.received[phone]?.filter { $0 == "call.progress early" }.count == 1)
  }

  @Test func `an UPDATE before the 200 moves early media, and the 200 changes nothing back`() throws {
    let world = Surroundings()
    let call = CallID(random: .seeded(5))
    try world.started(call)
    world.openOutgoingGate(call)
    let leg = try #require(world.outgoingLeg)
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP())))
    #expect(world.trunkReceived.last == "491 re-INVITE", "no answer yet, no second offer")
    world.feed(.sip(.progress(leg, code: 183, sdp: Surroundings.trunkSDP(port: 6_000))))
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP(port: 6_400))))
    #expect(world.trunkReceived.last == "200 re-INVITE")
    world.feed(.sip(.answered(leg, sdp: Surroundings.trunkSDP(port: 6_000))))
    let ports = world.actions.compactMap { if case .media(.setTrunk(_, let media)) = $0 { media.remote.port } else { nil } }
    #expect(ports == [6_000, 6_400] && world.machine.summaries.count == 1)
  }

  // MARK: digits

  @Test func `dtmf info: digits leave one by one, each after the answer to the last`() throws {
    let world = world { $0.sendsDigitsByInfo = true }
    let (leg, call) = try world.connected()
    world.request(phone, .callDTMF(CallDTMF(digits: "12#", durMs: 100, gapMs: 60)), call: call)
    #expect(world.trunkReceived.last == "INFO 1")
    world.feed(.sip(.digitSent(leg, code: 200)))
    world.feed(.sip(.digitSent(leg, code: 200)))
    #expect(world.trunkReceived.suffix(3) == ["INFO 1", "INFO 2", "INFO #"])
    world.feed(.sip(.digitSent(leg, code: 200)))
    #expect(world.trunkReceived.last == "INFO #")
    #expect(!world.actions.contains { if case .media(.sendDigits) = $0 { true } else { false } })
  }

  @Test func `a digit by INFO is told unless RFC 4733 tells it already`() throws {
    let events = Surroundings()
    let (leg, _) = try events.connected()
    events.feed(.sip(.digit(leg, "5", milliseconds: 160)))
    #expect(events.received[phone]?.contains("call.digit") == false)
    let plain = Surroundings()
    let (other, _) = try plain.ringing(sdp: Surroundings.trunkSDP(formats: "0"))
    let call = try #require(plain.offeredCall())
    plain.warm(phone, call)
    plain.request(phone, .callAnswer(CallAnswer()), call: call)
    plain.feed(.sip(.digit(other, "5", milliseconds: 160)))
    #expect(plain.messages[phone]?.last == .callDigit(CallDigit(digit: "5", durMs: 160)))
  }

  @Test func `an operator's hang-up of a ringing call is 480, not a fault of ours`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing()
    world.feed(.hangUp(call))
    #expect(world.trunkReceived.last == "480 Q.850;cause=31")
    world.expectRecord(.server, by: .gateway, sip: 480)
  }

  @Test func `a diverted call says so in the offer`() throws {
    let world = Surroundings()
    world.connect(phone)
    var invite = InboundInvite(
      trunk: "carrier", source: Surroundings.peer.flow, callID: "d", from: .init(number: "+15550000042"),
      to: .init(number: "+15551230001"),
      sdp: Surroundings.trunkSDP(), diversions: 1)
    invite.divertedFrom = [.init(number: "+15550009999", displayName: "Boss")]
    world.feed(.sip(.inviteReceived(.inbound(1), invite)))
    guard case .callOffer(let offer) = world.messages[phone]?.last else { throw Surroundings.Wrong(nil) }
    #expect(offer.pstn?.diverted == [Handle(k: .phone, h: "+15550009999", n: "Boss")])
  }
}
