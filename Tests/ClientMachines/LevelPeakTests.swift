import Testing

@testable import TrunklineClientMachines

/// The level that an app's meter shows.
@Suite struct LevelPeakTests {
  private static let loud = (0..<320).map { $0 % 2 == 0 ? Int16(32_767) : -32_767 }
  private static let quiet = (0..<320).map { $0 % 2 == 0 ? Int16(327) : -327 }
  private static let silence = [Int16](repeating: 0, count: 320)

  @Test func `a level is the loudest 20 ms lately: up at once, down by 11 dB a second, and nothing is -127`() {
    var peak = LevelPeak()
    #expect(peak.measure(Self.silence.span) == -127)
    #expect(abs(peak.measure(Self.quiet.span) + 40) < 0.1)
    #expect(abs(peak.measure(Self.loud.span)) < 0.1, "0 is the loudest there is")
    var level = 0.0
    for _ in 0..<50 { level = peak.measure(Self.silence.span) }
    #expect(abs(level + 11.1) < 0.2, "\(level)")
    // a level below the decaying peak is not shown
    #expect(peak.measure(Self.quiet.span) > -12)
    for _ in 0..<1_000 { level = peak.measure(Self.silence.span) }
    #expect(level == -127, "\(level)")
  }
}
