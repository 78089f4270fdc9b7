import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession

@testable import CallFlow
@testable import CallModel

@Suite struct MidCallPartTests {
  private func request(_ digits: String, _ kind: CallDTMF.Kind = .tone) -> CallDTMF { CallDTMF(digits: digits, kind: kind) }

  @Test func `digits are due in their order; a soft pause ends by time, a hard one by its user`() {
    var (digits, step) = (DigitQueue(), Step.at(1))
    #expect(digits.add(request("1"), step)?.map(\.digits) == ["1"] && digits.next == nil)
    #expect(digits.add(request("2", .softPause), step)?.isEmpty == true)
    #expect(digits.add(request("3"), step)?.isEmpty == true && digits.add(request("4", .hardPause), step)?.isEmpty == true)
    #expect(digits.resume(step).isEmpty, "the first is no hard pause")
    #expect(digits.next == DueTimer(.softPause, step.now + step.configuration.timers.softPause))
    step = .at(9)
    #expect(digits.softPauseExpired(step).map(\.digits) == ["2", "3"] && digits.next == nil)
    #expect(digits.add(request("5", .softPause), step)?.isEmpty == true && digits.next == nil)
    #expect(digits.resume(step).map(\.digits) == ["4"] && digits.next?.timer == .softPause)
    digits.removeAll()
    #expect(digits.next == nil && digits.resume(step).isEmpty && digits.softPauseExpired(step).isEmpty)
  }

  @Test func `more digits than the limit are refused, and those before them stay`() {
    var (digits, step) = (DigitQueue(), Step.at(1))
    let most = String(repeating: "1", count: Limits.pendingDigits)
    #expect(digits.add(request(most, .hardPause), step)?.isEmpty == true)
    #expect(digits.add(request("1"), step) == nil)
    #expect(digits.resume(step).map(\.digits.count) == [Limits.pendingDigits])
    step = .at(2)
    #expect(digits.add(request("1"), step)?.count == 1)
  }

  @Test func `hold, translation and file report what changed; a mute is the device's own while it translates`() {
    var audio = AppAudio()
    #expect(!audio.hold(false) && audio.hold(true) && !audio.hold(true) && audio.isHeld && audio.hold(false))
    #expect(audio.mute(true) && audio.isMuted)
    #expect(audio.translate(CallTranslate(on: true)) && !audio.translate(CallTranslate(on: true)) && audio.translation != nil)
    #expect(!audio.mute(false) && !audio.isMuted)
    #expect(audio.translate(CallTranslate(on: false)) && !audio.translate(CallTranslate(on: false)) && audio.mute(true))
    #expect(!audio.play(nil) && audio.play(.ringback) && audio.play(.ringback) && audio.play(nil) && !audio.play(nil))
    holds(audio.play(.ringback))
    audio.fileEnded()
    holds(!audio.play(nil), "it has ended itself")
  }

  @Test func `a call is in one group at a time`() {
    var audio = AppAudio()
    let (first, second) = (MediaGroupID(raw: 1), MediaGroupID(raw: 2))
    #expect(!audio.leave() && audio.enter(first) == true && audio.enter(first) == nil && audio.enter(second) == false)
    #expect(audio.group == second && audio.leave() && !audio.leave() && audio.enter(second) == true)
  }

  @Test func `quality is reported when it changes; a silent app is waited for once`() {
    var watch = AudioWatch()
    #expect(!watch.becomes(poor: false) && watch.becomes(poor: true) && !watch.becomes(poor: true) && watch.becomes(poor: false))
    #expect(!watch.appBack() && watch.next == nil)
    watch.appSilent(until: seconds(5))
    #expect(watch.isAppSilent && watch.next == DueTimer(.appGrace, seconds(5)))
    #expect(watch.appBack() && !watch.appBack() && watch.next == nil)
    watch.appSilent(until: seconds(5))
    watch.stop()
    holds(!watch.appBack())
  }

  @Test func `a silent app's wait moves, and neither quality nor a silent side ends it`() {
    var watch = AudioWatch()
    watch.stop()
    #expect(!watch.isAppSilent && watch.next == nil && watch.silentSide == nil, "none was silent")
    for deadline in [5.0, 9] { watch.appSilent(until: seconds(deadline)) }
    holds(watch.becomes(poor: true))
    watch.measured(silentSide: .app)
    #expect(watch.isAppSilent && watch.next == DueTimer(.appGrace, seconds(9)))
    for _ in 0..<2 { watch.stop() }
    #expect(!watch.isAppSilent && watch.next == nil)
    holds(!watch.becomes(poor: true) && watch.silentSide == .app, "quality and side stay as they were")
  }

  @Test func `the silent side is that of the last measurement`() {
    var watch = AudioWatch()
    for side in [CallSide.app, .trunk, .trunk, nil] {
      watch.measured(silentSide: side)
      #expect(watch.silentSide == side && !watch.isAppSilent)
    }
  }

  @Test func `recordings run one at a time, and up to the limit`() {
    var recordings = Recordings()
    let call = CallID(random: .seeded(1))
    #expect(recordings.stop() == nil && !recordings.closed("x"))
    let file = recordings.start(call, suffix: "wav")
    #expect(file == "\(call)-1.wav" && recordings.start(call, suffix: "wav") == nil && recordings.isRunning)
    #expect(
      !recordings.closed("another") && recordings.closed(file ?? "") && !recordings.closed(file ?? "") && recordings.stop() == nil
    )
    for _ in 1..<Limits.recordingsPerCall {
      #expect(recordings.start(call, suffix: "wav") != nil && recordings.stop() != nil)
    }
    #expect(recordings.start(call, suffix: "wav") == nil && recordings.files.count == Limits.recordingsPerCall)
  }
}
