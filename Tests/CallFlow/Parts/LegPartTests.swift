import AppSessions
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone
private let tablet = Surroundings.tablet

@Suite struct LegPartTests {
  private func leg(_ number: UInt64, session: UInt64? = nil) -> TrunkLeg {
    TrunkLeg(.outbound(number), over: Surroundings.routing.trunks[0], session: session.map { MediaSessionID(raw: $0) })
  }
  private func added(_ keys: [DeviceKey]) throws -> DeviceLegs {
    var legs = DeviceLegs()
    for key in keys { #expect(try legs.add(presence(key), negotiation(), offers: true) != nil) }
    return legs
  }
  private func presence(_ key: DeviceKey, _ session: String = "s") -> DevicePresence {
    DevicePresence(key: key, session: SessionID(session), info: DeviceInfo())
  }
  private func negotiation() throws -> AppNegotiation {
    let fingerprint = try #require(FingerprintAttribute(.sha256, [UInt8](repeating: 1, count: 32)))
    let endpoint = SecureEndpoint(
      ufrag: "abcd", password: "abcdefghijklmnopqrstuv", fingerprint: fingerprint,
      candidates: [SocketAddress(.loopback, 40_000)], ssrc: 1)
    return AppNegotiation(.gateway, endpoint: endpoint, sessionID: 1)
  }

  // MARK: devices

  @Test func `the first device that answers has the call, and a second lock changes nothing`() throws {
    var legs = try added([phone, tablet])
    #expect(legs.winner == nil && legs.winnerIndex == nil && Set(legs.map(\.id)).count == 2)
    #expect(legs.lock(1).map(\.key) == [phone] && legs.winner == tablet && legs.map(\.phase) == [.winner])
    #expect(legs.lock(0).isEmpty && legs.winner == tablet && legs.index(of: phone) == nil)
    #expect(legs.removeAll().map(\.key) == [tablet] && legs.winner == nil && legs.removeAll().isEmpty)
  }

  @Test func `a device has one leg, ids are not used twice, and a call has as many legs as it may`() throws {
    var legs = try added([phone])
    #expect(try legs.add(presence(phone), negotiation(), offers: true) == nil)
    let first = legs[0].id
    legs.remove(at: 0)
    for number in 0..<Limits.devicesPerCall {
      #expect(try legs.add(presence(DeviceKey(user: "a", device: "\(number)")), negotiation(), offers: false) == number)
    }
    #expect(try legs.add(presence(phone), negotiation(), offers: false) == nil && legs.index(of: first) == nil)
  }

  @Test func `a device rings once, again after its session has ended, and not any more when it has the call`() throws {
    var leg = try #require(added([phone]).first)
    leg.stopsRinging()
    #expect(leg.phase == .offered)
    for _ in 0..<2 { leg.rings() }
    #expect(leg.phase == .ringing)
    leg.disconnected(until: seconds(5))
    leg.stopsRinging()
    #expect(leg.phase == .offered && !leg.isConnected && leg.awaitedUntil == seconds(5))
    leg.wins()
    leg.rings()
    leg.stopsRinging()
    #expect(leg.phase == .winner)
  }

  @Test func `a device is warm only on the session on which it acked the offer`() throws {
    var leg = try #require(added([phone]).first)
    leg.acked(on: SessionID("s"))
    #expect(leg.ackedOn == SessionID("s"))
    leg.resumed(SessionID("s"))
    #expect(leg.ackedOn == nil && leg.isConnected)
    leg.acked(on: SessionID("s"))
    leg.connected(presence(phone, "t"))
    #expect(leg.ackedOn == nil && leg.session == SessionID("t"))
  }

  @Test func `what a device measured, plays, is sent and hears one way counts once`() throws {
    var leg = try #require(added([phone]).first)
    holds(!leg.measured(CallRinging()))
    holds(leg.measured(CallRinging(pushMs: 1)))
    holds(!leg.measured(CallRinging(pushMs: 2)))
    #expect(leg.rang?.pushMs == 1)
    let capabilities = CallCapabilities(hold: true)
    #expect(leg.sends(capabilities) && !leg.sends(capabilities) && leg.sends(CallCapabilities()))
    #expect(leg.plays() && !leg.plays() && leg.flowsOneWay() && !leg.flowsOneWay())
    leg.connects(keepingFirstWords: true)
    #expect(!leg.isPlaying && leg.plays())
  }

  @Test func `a description that cannot be used changes nothing; events of an older one do not count`() throws {
    var leg = try #require(added([phone]).first)
    let before = leg.sdp
    #expect(throws: NegotiationError.self) { try leg.apply(answer: "v=0", on: SessionID("s")) }
    #expect(throws: NegotiationError.self) {
      try leg.restart(gen: 2, "v=0", on: SessionID("s"), opus: OpusLimits(), RandomSource.seeded(1))
    }
    #expect(!leg.isDescribed && leg.gen == 1 && leg.sdp == before)
    _ = try leg.apply(answer: Surroundings.appSDP(), on: SessionID("s"))
    leg.nominated(epoch: leg.epoch, at: seconds(1))
    leg.keysInstalled(epoch: leg.epoch, profile: "p", at: seconds(1))
    leg.ready(gen: 2, at: seconds(1))
    #expect(!leg.hasMedia && MediaGate.proof(leg, at: 0) == nil, "not ready in this generation")
    leg.ready(gen: 1, at: seconds(1))
    #expect(MediaGate.proof(leg, at: 0)?.winner == 0)
    _ = try leg.apply(answer: Surroundings.appSDP(), on: SessionID("t"))
    leg.nominated(epoch: leg.epoch - 1, at: seconds(2))
    #expect(MediaGate.proof(leg, at: 0) == nil)
  }

  // MARK: the trunk

  @Test func `a call has one leg or two; the second leaves once`() {
    var legs = TrunkLegs(leg(1, session: 7))
    #expect(legs.second == nil && legs.removeSecond() == nil && legs.index(of: .outbound(2)) == nil)
    legs.add(leg(2))
    #expect(legs.second == 1 && legs.index(of: .outbound(2)) == 1 && legs.index(of: MediaSessionID(raw: 7)) == 0)
    #expect(legs.removeSecond()?.id == .outbound(2) && legs.removeSecond() == nil)
    legs.add(leg(3))
    legs.replace(with: leg(4))
    #expect(legs.map(\.id) == [.outbound(4)])
  }

  @Test func `a silent peer is pinged until it answers, and as long as another leg is silent`() {
    var (legs, step) = (TrunkLegs(leg(1)), Step.at(1))
    legs.add(leg(2))
    holds(!legs[0].pingAnswered(), "no ping is open")
    for index in 0..<2 {
      legs[index].ping(&step)
      legs.pinged(until: seconds(5))
    }
    #expect(legs[0].pingAnswered() && !legs[0].pingAnswered() && legs[0].isSilent, "alive, and still silent")
    legs[0].stopPinging()
    legs.pingStopped()
    #expect(legs.next == DueTimer(.trunkPing, seconds(5)))
    legs[1].stopPinging()
    legs.pingStopped()
    legs.stop()
    #expect(legs.next == nil)
  }

  @Test func `an ACK confirms a 200 once, and a closed leg keeps its first final status without another`() {
    var leg = TrunkLeg(.inbound(1), over: Surroundings.routing.trunks[0], session: nil, phase: .invited)
    holds(!leg.acknowledged())
    #expect(leg.answerCall() == nil && leg.phase == .invited, "there is no description")
    leg.close(487)
    leg.close()
    #expect(leg.phase == .over && leg.finalStatus == 487 && !leg.acknowledged() && !leg.provisionallyAnswered())
  }

  @Test func `digits by INFO are sent one after the other; a refusal drops those that wait`() {
    var digits = InfoDigits()
    #expect(digits.next() == nil)
    digits.add("12", milliseconds: 100)
    #expect(digits.next()?.digit == "1" && digits.next() == nil)
    digits.sent(isAccepted: true)
    digits.add("3", milliseconds: 100)
    #expect(digits.next()?.digit == "2")
    digits.sent(isAccepted: false)
    digits.sent(isAccepted: true)
    #expect(digits.next() == nil)
    digits.add(String(repeating: "1", count: Limits.pendingDigits + 5), milliseconds: 1)
    var count = 0
    while digits.next() != nil {
      count += 1
      digits.sent(isAccepted: true)
    }
    #expect(count == Limits.pendingDigits)
  }

  @Test func `a refused offer with our new address is remembered until an offer is answered`() {
    var offers = OwnOffers()
    #expect(offers.answered() == nil)
    offers.refused(500)
    #expect(offers.moveRefusal == nil && offers.move() && !offers.move())
    offers.send(.sendReceive)
    holds(offers.move(), "moved again")
    offers.refused(488)
    offers.refused(500)
    #expect(offers.moveRefusal == 488)
    offers.send(.sendOnly)
    #expect(offers.answered() == .sendOnly && offers.moveRefusal == nil && offers.answered() == nil)
  }
}
