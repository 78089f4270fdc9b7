import Bytes

/// What an Opus encoder does about its receiver's reports (RFC 3550 §6.4): how much loss its packets are to cover, whether they
/// carry repair (FEC) at all, and at what bitrate. Follows bad news at once and good news slowly, so that it does not swing.
///
/// | report | effect |
/// |---|---|
/// | loss ≥ 1 % | FEC on; expected loss at least the reported one, in steps of 5 % |
/// | loss below 0.5 % for 30 s | FEC off |
/// | loss falls | the expectation follows by a quarter of the difference per report |
/// | two reports in a row with ≥ 15 % loss, or ≥ 5 % while the round trip is 150 ms above its least | bitrate a step down |
/// | loss below 3 % for 15 s | bitrate a step up |
///
/// FEC is on before the first report, because nothing is known of the network yet.
public struct EncoderControl: Sendable, Equatable {
  public private(set) var expectedLossPercent: Int
  /// Packets carry a copy of the frame before.
  public private(set) var repairs: Bool
  /// Target in bit/s.
  public private(set) var bitrate: Int

  private let mayRepair: Bool
  private let fullBitrate: Int
  private let leastBitrate: Int
  private var loss: Double
  private var lastLossy: Instant?
  private var lastHeavy: Instant?
  private var heavyInARow = 0
  private var leastRoundTrip: Double?

  /// What packets must cover at least while they carry repair: with less libopus leaves the copy out.
  public static let leastExpectedLoss = 5
  static let mostExpectedLoss = 30
  private static let lossy = 0.01
  private static let clean = 0.005
  private static let cleanTime = Duration.seconds(30)
  private static let heavy = 0.15
  private static let congested = 0.05
  private static let congestionMilliseconds = 150.0
  private static let light = 0.03
  private static let lightTime = Duration.seconds(15)
  /// Narrow-band speech with FEC is whole at 12 kbit/s; below, libopus drops the copies.
  private static let leastSensibleBitrate = 12_000

  /// - Parameters:
  ///   - bitrate: with nothing in the way; also the most there will ever be.
  ///   - mayRepair: false for a receiver that has no use for FEC.
  public init(bitrate: Int, expectedLossPercent: Int = leastExpectedLoss, mayRepair: Bool = true) {
    (self.mayRepair, repairs) = (mayRepair, mayRepair)
    (fullBitrate, self.bitrate) = (bitrate, bitrate)
    leastBitrate = min(bitrate, Self.leastSensibleBitrate)
    self.expectedLossPercent = expectedLossPercent
    loss = Double(expectedLossPercent) / 100
  }

  /// One report block about our stream.
  public mutating func reported(lossFraction: Double, roundTripMilliseconds: Double?, at now: Instant) {
    guard lossFraction.isFinite, lossFraction >= 0 else { return }
    followLoss(min(1, lossFraction), at: now)
    followCongestion(min(1, lossFraction), roundTripMilliseconds, at: now)
  }

  private mutating func followLoss(_ reported: Double, at now: Instant) {
    loss = reported > loss ? reported : loss + (reported - loss) / 4
    if reported >= Self.clean || lastLossy == nil { lastLossy = now }
    if reported >= Self.lossy {
      repairs = mayRepair
    } else if let lastLossy, now - lastLossy >= Self.cleanTime {
      repairs = false
    }
    let steps = Int((loss * 20).rounded(.up))
    expectedLossPercent = max(Self.leastExpectedLoss, min(Self.mostExpectedLoss, steps * 5))
  }

  private mutating func followCongestion(_ reported: Double, _ roundTrip: Double?, at now: Instant) {
    if let roundTrip { leastRoundTrip = min(leastRoundTrip ?? roundTrip, roundTrip) }
    let risen = (roundTrip ?? 0) - (leastRoundTrip ?? 0) >= Self.congestionMilliseconds
    let isHeavy = reported >= Self.heavy || (reported >= Self.congested && risen)
    heavyInARow = isHeavy ? heavyInARow + 1 : 0
    if reported >= Self.light || lastHeavy == nil { lastHeavy = now }
    if heavyInARow >= 2 {
      heavyInARow = 0
      bitrate = max(leastBitrate, bitrate - fullBitrate / 6)
    } else if bitrate < fullBitrate, let lastHeavy, now - lastHeavy >= Self.lightTime {
      bitrate = min(fullBitrate, bitrate + fullBitrate / 6)
      self.lastHeavy = now
    }
  }
}
