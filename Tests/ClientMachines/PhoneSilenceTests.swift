import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

/// A connected call in which the gateway's packets stop, and no event states the reason.
@Suite struct PhoneSilenceTests {
  private static let call = PhoneRig.call(1)

  private func connected() -> PhoneRig {
    var rig = PhoneRig()
    rig.logIn()
    rig.ring(Self.call)
    rig.give(.media(Self.call, .connected(generation: 1, pair: nil, roundTripMilliseconds: nil, profile: "AEAD_AES_128_GCM")))
    rig.perform(.answer(Self.call))
    rig.answer("call.answer")
    rig.receive(.callConnected(CallConnected(at: 0, codec: "opus")), Self.call)
    return rig
  }

  private func offers(_ actions: [PhoneMachine.Action]) -> Int {
    actions.count { if case .media(Self.call, .offer) = $0 { true } else { false } }
  }
  private func connects(_ actions: [PhoneMachine.Action]) -> Int {
    actions.count { if case .socket(.connect) = $0 { true } else { false } }
  }

  private func alternates(_ actions: [PhoneMachine.Action]) -> Int {
    actions.count { if case .socket(.connectAlternate) = $0 { true } else { false } }
  }

  @Test func `silence makes the phone ping at once, and restart media if it lasts`() {
    var rig = connected()
    #expect(rig.give(.media(Self.call, .silence(.began))).written == ["ping"])
    rig.receive(.pong)
    let stays = rig.give(.media(Self.call, .silence(.stays)))
    #expect(offers(stays) == 1 && stays.states.last?.isReconnecting == true)
    let ended = rig.give(.media(Self.call, .silence(.ended)))
    #expect(ended.states.last?.isReconnecting == false && ended.states.last?.state == .connected)
  }

  @Test func `a socket that is silent too is given up, and the next one restarts media`() {
    var rig = connected()
    rig.give(.media(Self.call, .silence(.began)))
    let second = rig.wait(.seconds(1))
    #expect(connects(second) == 1 && alternates(second) == 1, "the default route is not trusted alone any more")
    #expect(offers(rig.give(.media(Self.call, .silence(.stays)))) == 0, "nobody could be told")
    rig.give(.socket(.socketOpened))
    let welcome = Welcome(sid: "s", resumeToken: "r", resumed: true, replayFrom: 1, time: 0, hb: 15_000, ice: [], calls: nil)
    let back = rig.give(.socket(.frame(ServerFrame(.welcome(welcome), re: PhoneRig.call(0)).encoded())))
    #expect(offers(back) == 1)
  }

  @Test func `media that is back before the next socket needs no restart`() {
    var rig = connected()
    rig.give(.media(Self.call, .silence(.began)))
    _ = rig.wait(.seconds(1))
    rig.give(.media(Self.call, .silence(.stays)))
    rig.give(.media(Self.call, .silence(.ended)))
    rig.give(.socket(.socketOpened))
    let welcome = Welcome(sid: "s", resumeToken: "r", resumed: true, replayFrom: 1, time: 0, hb: 15_000, ice: [], calls: nil)
    #expect(offers(rig.give(.socket(.frame(ServerFrame(.welcome(welcome), re: PhoneRig.call(0)).encoded())))) == 0)
  }

  @Test func `silence of a call that is over, or was never connected, causes no action`() {
    var rig = PhoneRig()
    rig.logIn()
    rig.ring(Self.call)
    for silence in [ClientCall.Silence.began, .stays, .ended] {
      let actions = rig.give(.media(Self.call, .silence(silence)))
      #expect(actions.written.isEmpty && actions.states.isEmpty && offers(actions) == 0)
    }
    rig.receive(.callCancel(CallOver(.callerCancelled)), Self.call)
    for silence in [ClientCall.Silence.began, .stays, .ended] {
      #expect(rig.give(.media(Self.call, .silence(silence))).isEmpty)
    }
  }
}
