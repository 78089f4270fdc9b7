import TrunklineBytes

/// Controls an Opus encoder by its receiver's reports (RFC 3550 §6.4): how much loss its packets cover, whether they carry
/// repair (FEC) at all, and the bitrate. Follows bad reports at once and good ones slowly, so that it does not oscillate.
///
/// | report | effect |
/// |---|---|
/// | loss ≥ 1 % | FEC on, at the bitrate it needs; expected loss at least the reported one, in steps of 5 % |
/// | loss below 0.5 % for 10 s | FEC off, the bitrate as before |
/// | loss falls | the expectation follows by a quarter of the difference per report |
/// | two reports in a row with ≥ 15 % loss, or ≥ 5 % while the round trip is 150 ms above its least | bitrate a step down |
/// | loss below 3 % for 15 s | bitrate a step up |
///
/// FEC is off until a receiver loses a packet: without loss it costs PESQ at the same bitrate
/// (docs/design/codecs-and-concealment.md). False reports change all this within its bounds and no further.
public struct EncoderControl: Sendable, Equatable {
  public private(set) var expectedLossPercent: Int
  /// Packets carry a copy of the frame before.
  public private(set) var repairs: Bool
  /// Target in bit/s.
  public var bitrate: Int {
    let (whole, least) = repairs ? (repairBitrate, Self.leastRepairBitrate) : (plainBitrate, Self.leastPlainBitrate)
    return max(min(whole, least), whole - stepsDown * (whole / Self.steps))
  }

  private let mayRepair: Bool
  private let plainBitrate: Int
  private let repairBitrate: Int
  /// Number of steps by which congestion has lowered the bitrate.
  private var stepsDown = 0
  private var loss: Double
  private var lastLossy: Instant?
  private var lastHeavy: Instant?
  private var heavyInARow = 0
  private var leastRoundTrip: Double?

  /// The least loss that packets with repair must cover: below it libopus omits the copy.
  public static let leastExpectedLoss = 5
  static let mostExpectedLoss = 30
  /// In bit/s. Narrow-band speech does not improve above it; `repairBitrate` gives the same quality with a copy of the previous
  /// frame.
  public static let plainBitrate = 24_000
  /// For wideband; with a copy it has the same rate as narrow-band speech.
  public static let plainWideBitrate = 32_000
  public static let repairBitrate = 40_000
  private static let lossy = 0.01
  private static let clean = 0.005
  private static let cleanTime = Duration.seconds(10)
  private static let heavy = 0.15
  private static let congested = 0.05
  private static let congestionMilliseconds = 150.0
  private static let light = 0.03
  private static let lightTime = Duration.seconds(15)
  private static let steps = 6
  /// Narrow-band speech has full quality at 12 kbit/s; below 20, libopus drops the copies.
  private static let leastPlainBitrate = 12_000
  private static let leastRepairBitrate = 20_000

  /// - Parameters:
  ///   - bitrate: without FEC and congestion.
  ///   - repairBitrate: the same with FEC; also the upper limit.
  ///   - expectedLossPercent: above 0 the control begins with FEC.
  ///   - mayRepair: false for a receiver that cannot use FEC.
  public init(
    bitrate: Int = plainBitrate, repairBitrate: Int = repairBitrate, expectedLossPercent: Int = 0, mayRepair: Bool = true
  ) {
    (self.mayRepair, repairs) = (mayRepair, mayRepair && expectedLossPercent > 0)
    (plainBitrate, self.repairBitrate) = (bitrate, max(bitrate, repairBitrate))
    self.expectedLossPercent = expectedLossPercent
    loss = Double(expectedLossPercent) / 100
  }

  /// One report block about our stream.
  public mutating func reported(lossFraction: Double, roundTripMilliseconds: Double?, at now: Instant) {
    guard lossFraction.isFinite, lossFraction >= 0 else { return }
    followLoss(min(1, lossFraction), at: now)
    followCongestion(min(1, lossFraction), roundTrip: roundTripMilliseconds.flatMap { $0.isFinite ? max(0, $0) : nil }, at: now)
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

  private mutating func followCongestion(_ reported: Double, roundTrip: Double?, at now: Instant) {
    if let roundTrip { leastRoundTrip = min(leastRoundTrip ?? roundTrip, roundTrip) }
    let risen = (roundTrip ?? 0) - (leastRoundTrip ?? 0) >= Self.congestionMilliseconds
    let isHeavy = reported >= Self.heavy || (reported >= Self.congested && risen)
    heavyInARow = isHeavy ? heavyInARow + 1 : 0
    if reported >= Self.light || lastHeavy == nil { lastHeavy = now }
    if heavyInARow >= 2 {
      heavyInARow = 0
      stepsDown = min(Self.steps, stepsDown + 1)
    } else if stepsDown > 0, let lastHeavy, now - lastHeavy >= Self.lightTime {
      stepsDown -= 1
      self.lastHeavy = now
    }
  }
}
