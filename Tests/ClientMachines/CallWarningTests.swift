import Testing
import TrunklineClientMachines

/// What a call's statistics of each second say of its audio.
@Suite struct CallWarningTests {
  /// A call whose seconds are good, but for what `change` makes of them.
  private struct Rig {
    var warnings = CallWarnings()
    var statistics = ClientMedia.Statistics()

    init() { (statistics.microphoneLevel, statistics.roundTripMilliseconds, statistics.reportedLossFraction) = (-30, 60, 0) }

    mutating func after(
      _ seconds: Int, _ situation: CallWarnings.Situation = .init(expectsAudio: true, sendsAudio: true),
      _ change: (inout ClientMedia.Statistics) -> Void = { _ in }
    ) -> [CallWarning] {
      for _ in 0..<seconds {
        statistics.receivedPackets += 50
        change(&statistics)
        warnings.judge(statistics, situation)
      }
      return warnings.current
    }
  }

  @Test func `a good call has none, nor one on hold, muted or in which the other side is silent`() {
    var rig = Rig()
    #expect(rig.after(60).isEmpty)
    let held = CallWarnings.Situation(expectsAudio: false, sendsAudio: false)
    let silent = rig.after(60, held) {
      $0.receivedPackets -= 50
      ($0.microphoneLevel, $0.reportedLossFraction) = (-127, 1)
    }
    #expect(silent.isEmpty)
    // two and a half packets a second: a pause
    rig.statistics.reportedLossFraction = 0
    rig.statistics.microphoneLevel = -30
    #expect(rig.after(60) { $0.receivedPackets -= 48 }.isEmpty)
  }

  @Test func `loss either way is told after seconds and taken back after seconds`() {
    var rig = Rig()
    #expect(rig.after(2) { $0.reportedLossFraction = 0.08 }.isEmpty)
    #expect(rig.after(2) { $0.reportedLossFraction = 0.08 } == [CallWarning(.loss)])
    #expect(rig.after(4) { $0.reportedLossFraction = 0 } == [CallWarning(.loss)])
    #expect(rig.after(2).isEmpty)
    let lossy = rig.after(10) {
      $0.receivedPackets -= 5
      $0.lostPackets += 5
    }
    #expect(lossy == [CallWarning(.loss)])
  }

  @Test func `a long way, a direction without anything and a quiet microphone`() {
    var rig = Rig()
    #expect(rig.after(5) { $0.roundTripMilliseconds = 450 } == [CallWarning(.roundTrip)])
    #expect(rig.after(5) { $0.roundTripMilliseconds = 100 }.isEmpty)
    #expect(rig.after(5) { $0.receivedPackets -= 50 } == [CallWarning(.oneWay, .incoming)])
    #expect(rig.after(1).isEmpty)
    #expect(rig.after(6) { $0.reportedLossFraction = 1 } == [CallWarning(.oneWay, .outgoing)])
    #expect(rig.after(3) { $0.reportedLossFraction = 0 }.isEmpty)
    #expect(rig.after(29) { $0.microphoneLevel = -70 }.isEmpty)
    #expect(rig.after(1) == [CallWarning(.microphoneLow)])
    #expect(rig.after(1) { $0.microphoneLevel = -30 }.isEmpty)
  }

  @Test func `numbers that go back, as of media that began anew, are no loss`() {
    var rig = Rig()
    _ = rig.after(5) { $0.lostPackets += 1 }
    (rig.statistics.receivedPackets, rig.statistics.lostPackets) = (0, 0)
    #expect(rig.after(10).isEmpty)
  }

  @Test(arguments: CallWarning.Cause.allCases) func `each has a sentence`(cause: CallWarning.Cause) {
    #expect(CallWarning(cause).text.hasSuffix(".") && CallWarning(cause, .outgoing).text.hasSuffix("."))
  }
}
