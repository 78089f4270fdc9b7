import AppSessions
import CallFlow
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession

private let phone = Surroundings.phone

@Suite struct DuringTheCallTests {
  @Test func `the snapshot says to the device that has the call whether it is muted, by whomever`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    func told(_ session: String) -> Bool? {
      world.connect(Surroundings.phone, session)
      return world.welcomes[SessionID(session)]?.calls.first?.muted
    }
    #expect(told("first") == false)
    #expect(world.command(call, .mute(true)) == nil)
    #expect(told("second") == true)
    #expect(world.isOK(world.request(Surroundings.phone, .callMute(CallMute(on: false)), call: call)))
    #expect(told("third") == false)
  }

  @Test func `a device that rings is told nothing of a mute`() throws {
    let world = Surroundings()
    _ = try world.ringing()
    world.connect(Surroundings.phone, "again")
    let row = try #require(world.welcomes[SessionID("again")]?.calls.first)
    #expect(row.muted == nil)
  }

  private func media(_ world: Surroundings) -> (MediaSessionID, AppLegID)? {
    guard let session = world.session, let leg = world.legs[phone]?.0 else { return nil }
    return (session, leg)
  }

  @Test func `the app hangs up: ok, then call-ended, BYE`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    #expect(world.isOK(world.request(phone, .callEnd(CallEnd()), call: call)))
    #expect(world.received[phone]?.last == "call.ended localEnd")
    #expect(world.trunkReceived.last == "BYE")
    #expect(world.isOK(world.request(phone, .callEnd(CallEnd()), call: call)))
    world.expectRecord(.localEnd, by: .app, sip: 200)
  }

  @Test func `an app that was killed in the call gives it up: call-ended appRestart, BYE`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    #expect(world.isOK(world.request(phone, .callEnd(CallEnd(reason: .appRestart)), call: call)))
    #expect(world.received[phone]?.last == "call.ended appRestart")
    #expect(world.trunkReceived.last == "BYE")
    world.expectRecord(.appRestart, by: .app, sip: 200)
  }

  @Test(arguments: [true, false]) func `offer and snapshot say what the app may offer, and of which trunk the call is`(
    transfers: Bool
  ) throws {
    let world = Surroundings { _, routing in routing.trunks[0].rules.allowsTransfer = transfers }
    world.connect(phone)
    world.invite()
    let offers = world.messages[phone, default: []].compactMap { if case .callOffer(let offer) = $0 { offer } else { nil } }
    let offer = try #require(offers.first)
    #expect(offer.caps == CallCapabilities(hold: true, group: true, dtmf: true, transfer: transfers ? true : nil))
    world.connect(phone, "again")
    let snapshot = try #require(world.welcomes[SessionID("again")]?.calls.first)
    #expect(snapshot.caps == offer.caps && snapshot.pstn == offer.pstn && offer.pstn != nil)
  }

  @Test func `after the lock call-reject is badState`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    #expect(world.code(world.request(phone, .callReject(CallReject()), call: call)) == .badState)
  }

  @Test func `hold is local, ok at once and followed by call-held (MID-2)`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    #expect(world.isOK(world.request(phone, .callHold(CallHold(on: true)), call: call)))
    #expect(world.received[phone]?.last == "call.held local true")
    world.connect(phone, "again")
    #expect(world.welcomes[SessionID("again")]?.calls.map(\.state) == [.held])
    // the trunk's silence does not count while held
    world.feed(.media(.trunkSilent(try #require(world.session))))
    #expect(world.trunkReceived.last == "200")
    world.request(phone, .callHold(CallHold(on: false)), call: call, on: "again")
    #expect(world.received[phone]?.last == "call.held local false")
  }

  @Test func `mute and digits reach the media thread (MID-1, MID-2)`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    world.request(phone, .callMute(CallMute(on: true)), call: call)
    world.request(phone, .callDTMF(CallDTMF(digits: "12#", durMs: 100, gapMs: 60)), call: call)
    let mutes = world.actions.compactMap { if case .media(.mute(_, let on)) = $0 { on } else { nil } }
    let digits = world.actions.compactMap { if case .media(.sendDigits(_, let request)) = $0 { request } else { nil } }
    #expect(mutes == [true])
    #expect(digits.map(\.digits) == ["12#"] && digits.first?.durationMilliseconds == 100 && digits.first?.gapMilliseconds == 60)
  }

  @Test func `a soft pause waits 2 s, a hard pause for continue`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    func played() -> [String] {
      world.actions.compactMap { if case .media(.sendDigits(_, let request)) = $0 { request.digits } else { nil } }
    }
    world.request(phone, .callDTMF(CallDTMF(digits: "1", kind: .softPause)), call: call)
    world.request(phone, .callDTMF(CallDTMF(digits: "2", kind: .hardPause)), call: call)
    world.request(phone, .callDTMF(CallDTMF(digits: "3")), call: call)
    #expect(played() == [])
    world.pass(.seconds(2))
    #expect(played() == ["1"])
    world.pass(.seconds(60))
    #expect(played() == ["1"])
    var resume = CallDTMF(digits: "")
    resume.continue = true
    #expect(world.isOK(world.request(phone, .callDTMF(resume), call: call)))
    #expect(played() == ["1", "2", "3"])
    // a bound on what waits
    let long = String(repeating: "5", count: 64)
    world.request(phone, .callDTMF(CallDTMF(digits: "9", kind: .hardPause)), call: call)
    for _ in 0..<3 { #expect(world.isOK(world.request(phone, .callDTMF(CallDTMF(digits: long)), call: call))) }
    #expect(world.code(world.request(phone, .callDTMF(CallDTMF(digits: long)), call: call)) == .tooMany)
  }

  @Test func `a digit from the trunk is told`() throws {
    let world = Surroundings()
    _ = try world.connected()
    world.feed(.media(.digit(try #require(world.session), from: .trunkToApp, digit: "7", durationMilliseconds: 120)))
    #expect(world.messages[phone]?.last == .callDigit(CallDigit(digit: "7", durMs: 120)))
  }

  @Test func `re-INVITE keeps, moves or holds; what does not fit is refused`() throws {
    let world = Surroundings()
    let (leg, _) = try world.connected()
    func trunks() -> [TrunkLegParameters] {
      world.actions.compactMap { if case .media(.setTrunk(_, let parameters)) = $0 { parameters } else { nil } }
    }
    #expect(trunks().count == 1)
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP())))
    #expect(world.trunkReceived.last == "200 re-INVITE" && trunks().count == 1)
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP(port: 7_000))))
    #expect(trunks().last?.remote.port == 7_000)
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP(port: 7_000, direction: "sendonly"))))
    #expect(world.received[phone]?.last == "call.held remote true" && trunks().last?.receives == true)
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP(port: 7_000, direction: "inactive"))))
    #expect(world.received[phone]?.count { $0 == "call.held remote true" } == 1)
    #expect(trunks().last?.sends == false && trunks().last?.receives == false)
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP(port: 7_000))))
    #expect(world.received[phone]?.last == "call.held remote false")
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP(formats: "18"))))
    #expect(world.trunkReceived.last == "488 re-INVITE")
    // without an offer: ours, and the ACK brings the answer
    world.feed(.sip(.reinviteReceived(leg, sdp: nil)))
    #expect(world.trunkReceived.last == "200 re-INVITE")
    world.feed(.sip(.acknowledged(leg, sdp: Surroundings.trunkSDP(port: 8_000))))
    #expect(trunks().last?.remote.port == 8_000)
    #expect(world.records.isEmpty)
  }

  @Test func `media is told whose RTP is the trunk's: its peers, and where the call's own SIP comes from`() throws {
    let network = try #require(IPNetwork("192.0.2.0/24"))
    let world = Surroundings { _, routing in
      for index in routing.trunks.indices { routing.trunks[index].peers = [network] }
    }
    _ = try world.connected()
    let trunk = world.actions.compactMap { if case .media(.setTrunk(_, let parameters)) = $0 { parameters } else { nil } }.last
    #expect(trunk?.peers == [network] && trunk?.signalling == [Surroundings.peer.flow.remote.ip])
  }

  @Test func `a call that begins on hold says so, and when it ends`() throws {
    let world = Surroundings()
    let (leg, call) = try world.ringing(sdp: Surroundings.trunkSDP(direction: "sendonly"))
    world.warm(phone, call)
    world.request(phone, .callAnswer(CallAnswer()), call: call)
    world.feed(.sip(.acknowledged(leg, sdp: nil)))
    #expect(world.received[phone] == ["call.offer", "call.connected", "call.held remote true"])
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP())))
    #expect(world.received[phone]?.last == "call.held remote false")
  }

  @Test func `one way only: the app is asked for a restart, once for each generation`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    let (session, leg) = try #require(media(world))
    func asked() -> Int { (world.messages[phone] ?? []).count { if case .mediaRestart = $0 { true } else { false } } }
    for _ in 0..<3 { world.feed(.media(.appOneWay(session, leg, .trunkToApp))) }
    #expect(asked() == 1 && world.messages[phone]?.last == .mediaRestart(MediaRestart(gen: 2, cause: .timeout)))
    let restart = MediaRestart(sdp: Surroundings.appSDP(setup: "actpass"), gen: 2, cause: .timeout)
    guard case .mediaAnswer = world.request(phone, .mediaRestart(restart), call: call) else {
      Issue.record("the restart was not answered")
      return
    }
    for _ in 0..<3 { world.feed(.media(.appOneWay(session, leg, .appToTrunk))) }
    #expect(asked() == 2 && world.messages[phone]?.last == .mediaRestart(MediaRestart(gen: 3, cause: .timeout)))
    world.feed(.media(.appOneWay(session, AppLegID(raw: leg.raw + 1), .appToTrunk)))
    #expect(asked() == 2, "another device's")
  }

  @Test func `a vanished app: 30 s grace, then networkLost`() throws {
    for returns in [true, false] {
      let world = Surroundings()
      _ = try world.connected()
      let (session, leg) = try #require(media(world))
      world.feed(.media(.appLegSilent(session, leg)))
      #expect(world.received[phone]?.last == "media.restart")
      world.pass(.milliseconds(29_999))
      if returns {
        world.feed(.media(.appLegBack(session, leg)))
        world.pass(.seconds(60))
        #expect(world.records.isEmpty)
      } else {
        world.pass(.milliseconds(1))
        #expect(world.trunkReceived.last == "BYE" && world.received[phone]?.last == "call.ended networkLost")
        world.pass(.seconds(1))
        world.expectRecord(.networkLost, by: .app)
      }
    }
  }

  @Test func `a silent trunk is asked; no answer is trunkLost`() throws {
    let world = Surroundings()
    let (leg, _) = try world.connected()
    let session = try #require(world.session)
    world.feed(.media(.trunkSilent(session)))
    #expect(world.trunkReceived.last == "OPTIONS")
    world.feed(.sip(.pingAnswered(leg, alive: true)))
    // alive and still silent: asked again
    world.pass(.seconds(20))
    #expect(world.trunkReceived.count { $0 == "OPTIONS" } == 2)
    world.feed(.media(.trunkBack(session)))
    world.pass(.seconds(100))
    #expect(world.records.isEmpty && world.trunkReceived.count { $0 == "OPTIONS" } == 2)
    world.feed(.media(.trunkSilent(session)))
    world.pass(.seconds(20))
    #expect(world.trunkReceived.last == "BYE" && world.received[phone]?.last == "call.ended trunkLost")
    world.expectRecord(.trunkLost, by: .trunk)
  }

  @Test func `481 to the ping is trunkLost at once`() throws {
    let world = Surroundings()
    let (leg, _) = try world.connected()
    world.feed(.media(.trunkSilent(try #require(world.session))))
    world.feed(.sip(.pingAnswered(leg, alive: false)))
    world.expectRecord(.trunkLost, by: .trunk)
  }

  @Test func `4 hours are enough`() throws {
    let world = Surroundings()
    _ = try world.connected()
    world.pass(.seconds(4 * 3600))
    #expect(world.trunkReceived.last == "BYE" && world.received[phone]?.last == "call.ended server")
    world.expectRecord(.server, by: .gateway)
  }

  @Test func `media-restart: same fingerprint keeps the association, another makes a new one`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    func restarts() -> [(AppLegLocal?, Bool)] {
      world.actions.compactMap { if case .media(.setAppRemote(_, _, _, let local, let new)) = $0 { (local, new) } else { nil } }
    }
    func restart(_ gen: Int, _ fingerprint: UInt8) -> RequestAnswer? {
      let sdp = Surroundings.appSDP(setup: "actpass", fingerprint: fingerprint)
      return world.request(phone, .mediaRestart(MediaRestart(sdp: sdp, gen: gen, cause: .net)), call: call)
    }
    #expect(world.code(restart(1, 1)) == .staleGen)
    #expect(world.code(restart(3, 1)) == .staleGen)
    guard case .mediaAnswer(let first) = restart(2, 1) else { return #expect(Bool(false)) }
    #expect(restarts().count == 2 && restarts().last?.1 == false)
    #expect(first.sdp.contains(try #require(restarts().last?.0).ufrag))
    guard case .mediaAnswer = restart(3, 2) else { return #expect(Bool(false)) }
    #expect(restarts().last?.1 == true)
    // another DTLS role is another association, too (RFC 8842 §4)
    let passive = MediaRestart(sdp: Surroundings.appSDP(setup: "passive", fingerprint: 2), gen: 4, cause: .net)
    guard case .mediaAnswer(let third) = world.request(phone, .mediaRestart(passive), call: call) else {
      return #expect(Bool(false))
    }
    #expect(restarts().last?.1 == true && third.sdp.contains("a=setup:active\r\n"))
    let kept = MediaRestart(sdp: Surroundings.appSDP(setup: "actpass", fingerprint: 2), gen: 5, cause: .net)
    guard case .mediaAnswer(let fourth) = world.request(phone, .mediaRestart(kept), call: call) else {
      return #expect(Bool(false))
    }
    #expect(restarts().last?.1 == false && fourth.sdp.contains("a=setup:active\r\n"))
    #expect(world.trunkReceived.last == "200")
    #expect(world.code(world.request(phone, .mediaRestart(MediaRestart(gen: 6)), call: call)) == .badRequest)
  }

  @Test func `quality is told and its totals come with the end`() throws {
    let world = Surroundings()
    let (leg, _) = try world.connected()
    var statistics = MediaStatistics()
    statistics.fromTrunk.packets = 980
    statistics.fromTrunk.lost = 20
    statistics.fromTrunk.meanOpinionScore = 3.2
    world.statistics = statistics
    world.feed(.media(.quality(try #require(world.session), statistics)))
    #expect(world.messages[phone]?.last == .quality(Quality(level: "fair", cause: "loss")))
    world.feed(.sip(.byeReceived(leg, nil)))
    guard case .callEnded(let over) = world.messages[phone]?.last else { return #expect(Bool(false)) }
    #expect(over.stats?.loss == 0.02 && over.stats?.mos == 3.2)
    #expect(world.records.first?.fromTrunk?.loss == 0.02 && world.records.first?.fromTrunk?.mos == 3.2)
  }

  @Test func `answer to audio counts from the tap's receipt, less what others took`() throws {
    let world = Surroundings()
    let (leg, call) = try world.ringing()
    world.warm(phone, call)
    world.request(phone, .callAnswer(CallAnswer()), call: call)
    let start = world.now
    world.pass(.milliseconds(40))
    world.feed(.sip(.acknowledged(leg, sdp: nil)))
    world.pass(.milliseconds(60))
    world.notify(phone, .mediaActive(MediaActive(capture: true, playout: true)), call: call)
    let session = try #require(world.session)
    world.feed(.media(.firstAudio(session, .trunkToApp, at: start + .milliseconds(120))))
    world.feed(.media(.firstAudio(session, .appToTrunk, at: start + .milliseconds(30))))
    #expect(world.measurements.contains(.answerToAudio(.trunkToApp, .milliseconds(20))))
    #expect(world.measurements.contains(.answerToAudio(.appToTrunk, .zero)))
    #expect(world.measurements.contains(.answerToACK(.milliseconds(40))))
    #expect(world.measurements.contains(.connectedToActive(.milliseconds(100))))
  }

  @Test func `the record waits for the media thread, but not for ever`() throws {
    let world = Surroundings()
    world.closesMedia = false
    let (leg, _) = try world.connected()
    world.feed(.sip(.byeReceived(leg, nil)))
    #expect(world.records.isEmpty)
    world.pass(.milliseconds(800))
    world.expectRecord(.remoteHangup)
    #expect(world.machine.statistics.recordsWithoutMedia == 1)
    world.feed(.media(.closed(try #require(world.session), MediaStatistics())))
    #expect(world.records.count == 1)
  }

  @Test func `media that dies by itself ends the call with a cause`() throws {
    let world = Surroundings()
    _ = try world.connected()
    world.feed(.media(.closed(try #require(world.session), MediaStatistics())))
    #expect(world.trunkReceived.last == "BYE")
    world.expectRecord(.server, by: .gateway)
  }

  @Test func `an operator hangs up; drain leaves the live call alone; routes change under it`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    world.feed(.draining)
    world.feed(.routing(Routing()))
    #expect(world.machine.summaries.map(\.state) == [.connected])
    world.feed(.hangUp(call))
    world.expectRecord(.server, by: .gateway)
  }
}
