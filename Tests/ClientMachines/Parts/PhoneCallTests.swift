import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import TrunklineClientMachines

@Suite struct PhoneCallTests {
  private let action = SystemActionID(1)
  private let peer = Handle(k: .phone, h: "+15550001")

  private func offered() -> PhoneCall {
    var call = PhoneCall(from: peer, isReported: true)
    call.offered(id(1), (sdp: "v=0", generation: 1), audio: .idle)
    return call
  }
  private func dialled() -> PhoneCall {
    var call = PhoneCall(to: peer, CallOptions())
    holds(call.screen.dialled(action))
    _ = call.dial(id(1), audio: .idle)
    return call
  }

  @Test func `an offer waits for the screen, is claimed once, and not after the end`() {
    var call = offered()
    holds(call.claimOffer() == nil && call.answering.hasOffer)
    _ = call.screen.confirmed(at: seconds(1))
    holds(call.claimOffer()?.generation == 1 && call.claimOffer() == nil)
    call.offered(id(1), (sdp: "v=0", generation: 2), audio: .idle)
    holds(call.end(isSilent: false) && call.claimOffer() == nil)
    call.offered(id(1), (sdp: "v=0", generation: 3), audio: .idle)
    holds(!call.answering.hasOffer)
  }

  @Test func `its own machine begins with the first offer or with the dialling, once`() {
    var call = PhoneCall(from: peer)
    holds(!call.hasMachine && call.handle(.hangUp()).isEmpty && call.state == nil && call.dial(id(1), audio: .idle).isEmpty)
    call = offered()
    #expect(call.state == .ringing && call.ringsHere && !call.isYetToStart)
    var other = PhoneCall(to: peer, CallOptions())
    holds(other.dial(id(1), audio: .idle).isEmpty, "the system has not started it")
    #expect(other.isYetToStart && !other.waitsForLogin && other.info(id(1), group: nil).state == .starting)
    other = dialled()
    holds(other.isYetToStart && !other.waitsForLogin && other.dial(id(1), audio: .idle).isEmpty, "repeated")
  }

  @Test func `a tap counts once, with its age and the time that is left, and none is sent without a tap`() {
    var call = PhoneCall(from: peer, isReported: true)
    call.pushed(push(1), isMeasured: true, at: seconds(1))
    #expect(call.answering.input(at: seconds(1)) == nil && call.pushedAt == seconds(1))
    holds(call.tap(action, timeout: .seconds(20), at: seconds(2)) && !call.tap(SystemActionID(2), timeout: nil, at: seconds(3)))
    #expect(call.answering.deadline == seconds(17) && call.link.deadline == seconds(22))
    guard case .answer(1_500, 18_500)? = call.answering.input(at: seconds(3.5)) else {
      return #expect(Bool(false), "another input")
    }
    holds(call.screen.complete() == action)
    call.answering.settled()
    #expect(call.answering.deadline == nil && call.info(id(1), group: nil).state == .answering)
    var outgoing = dialled()
    holds(!outgoing.tap(action, timeout: nil, at: seconds(2)))
  }

  @Test func `it ends once, and the first reason stays unless the gateway gives one`() {
    var call = offered()
    holds(call.info(id(1), group: 3).reason == nil && call.info(id(1), group: 3).group == 3)
    call.ends(atLeastBecause: .auth)
    call.ends(atLeastBecause: .busy)
    holds(call.end(isSilent: true) && !call.end(isSilent: false) && call.deadlines.isEmpty)
    #expect(call.info(id(1), group: 3).reason == .auth && call.info(id(1), group: 3).group == nil)
    for (isSilent, reason) in [(true, EndReason.localEnd), (false, .unknown)] {
      var other = offered()
      _ = other.end(isSilent: isSilent)
      #expect(other.info(id(1), group: nil).reason == reason)
    }
    var named = offered()
    _ = named.handle(.message(.callCancel(CallOver(.answeredElsewhere))))
    named.ends(because: .busy)
    _ = named.end(isSilent: true)
    #expect(named.info(id(1), group: nil).reason == .answeredElsewhere && named.handle(.hangUp()).isEmpty)
  }

  @Test
  func `a wake that no screen shows and no node has offered holds no line, and only an unreachable ringing call gives its up`() {
    #expect(!PhoneCall(from: peer).holdsLine && PhoneCall(from: peer, isReported: true).holdsLine)
    #expect(PhoneCall(to: peer, CallOptions()).holdsLine && offered().holdsLine && !offered().givesUpLine)
    var call = offered()
    call.loseSession(at: seconds(1))
    #expect(call.givesUpLine)
    holds(call.tap(action, timeout: nil, at: seconds(2)) && !call.givesUpLine)
    var over = offered()
    _ = over.end(isSilent: false)
    over.loseSession(at: seconds(1))
    #expect(!over.link.hasNoSession)
  }

  @Test func `a caller, capabilities or a dialled number that is the same is no news`() {
    var call = PhoneCall(from: peer)
    holds(!call.describe(from: peer, account: "a", nil, CallDetails()))
    holds(call.describe(from: peer, account: "a", CallCapabilities(group: true), CallDetails()))
    var update = CallUpdate()
    call.update(update)
    update.from = Handle(k: .phone, h: "+15550002")
    call.update(update)
    #expect(call.peer.h == "+15550002" && call.capabilities?.group == true)
    holds(!call.dialled(as: Handle(k: .phone, h: "+15550002")) && call.dialled(as: Handle(k: .phone, h: "+15550003", n: "Ann")))
    holds(call.peer.n == "Ann" && call.end(isSilent: true) && !call.dialled(as: peer))
  }

  @Test func `audio is configured once, and a device that cannot show the call has no machine for it`() {
    var call = offered()
    holds(call.configureAudio() && !call.configureAudio() && call.isConfigured)
    call.discard()
    holds(!call.hasMachine && call.handle(.hangUp()).isEmpty && call.end(isSilent: false))
  }
}

/// A call's switches, its media's restarts, and the answer.
@Suite struct PhoneCallPartTests {
  @Test func `a change while a request is open is requested after it, and the system's own action causes none`() {
    var hold = CallSwitch()
    holds(hold.want(true) == true && hold.want(false) == nil && hold.isAsked)
    hold.begin(true)
    holds(hold.finish(true, isDone: true) == false && hold.isOn)
    hold.begin(false)
    holds(hold.finish(false, isDone: true) == nil && !hold.isOn)
    hold.begin(true)
    holds(hold.finish(true, isDone: true) == nil && hold.isOn && !hold.isAsked)
    holds(hold.want(true) == nil)
  }

  @Test func `a failed or refused change is not requested again`() {
    var hold = CallSwitch()
    holds(hold.want(true) == true)
    hold.begin(true)
    holds(hold.finish(true, isDone: false) == nil && !hold.isOn)
    holds(hold.want(true) == true)
    hold.refused()
    hold.refused()
    holds(!hold.isAsked && hold.want(false) == nil && hold.want(true) == true)
  }

  @Test func `of a burst of mutes the gateway gets the last, 300 ms after the first`() {
    var mute = MuteSwitch()
    holds(!mute.isUnsent && mute.perform(true, at: seconds(1)) == nil && mute.isOn)
    holds(mute.perform(false, at: seconds(1.2)) == nil && mute.dueAt == seconds(1.3) && mute.isUnsent && !mute.isOn)
    mute.sent()
    mute.sent()
    holds(!mute.isUnsent && mute.want(true) == true && mute.isUnsent)
    mute.refused()
    holds(!mute.isUnsent && !mute.isOn)
  }

  @Test func `media restarts once before the answer, while there is time, and not before the tap`() {
    var media = MediaRecovery()
    holds(!media.failsBeforeAnswer(tappedAt: nil, at: seconds(1)))
    holds(!media.failsBeforeAnswer(tappedAt: seconds(1), at: seconds(8.5)), "too late")
    holds(
      media.failsBeforeAnswer(tappedAt: seconds(1), at: seconds(8))
        && !media.failsBeforeAnswer(tappedAt: seconds(1), at: seconds(8)))
  }

  @Test func `a restart waits for the session once, and not after media has recovered or the path has changed`() {
    var media = MediaRecovery()
    holds(!media.claimRestart())
    for _ in 0..<2 { media.waitForSession() }
    holds(media.claimRestart() && !media.claimRestart())
    media.waitForSession()
    media.stayedSilent()
    #expect(media.isReconnecting && media.waitsForSession)
    media.pathChanged()
    holds(media.isReconnecting && !media.claimRestart())
    media.waitForSession()
    media.recovered()
    holds(!media.isReconnecting && !media.claimRestart())
  }
}
