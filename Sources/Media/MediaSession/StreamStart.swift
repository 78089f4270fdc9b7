import AudioCodecs
import Bytes
import JitterBuffer

extension DelayPolicy {
  /// For what comes from apps: a phone or a browser sends a packet some milliseconds late now and then, too seldom for the histogram.
  static let ofApps = {
    var policy = DelayPolicy()
    policy.shiftMarginMilliseconds = 6
    return policy
  }()
}

/// The beginning of a received stream: when its first packet is played, and what its ticks return while it is unknown how packets
/// wander.
struct StreamStart {
  private var arrival: Instant?
  /// Ticks with audio, up to `Limits.startPackets`.
  private var ticks = 0

  /// A packet came.
  mutating func came(at now: Instant) { if arrival == nil { arrival = now } }

  /// How long the first packet must wait for its tick, or what follows would come too late for theirs: packets of 10 and 30 ms do not
  /// end where ticks do.
  private func wait(_ grain: Int) -> Int { (160 &- grain) / 8 }

  /// Nothing is to be played yet, though the first packet is there.
  /// - Parameter grain: the greatest common divisor of packet and tick, in 1/8 ms.
  func mustWait(at now: Instant, grain: Int) -> Bool {
    guard let arrival else { return false }
    return now - arrival < .milliseconds(wait(grain))
  }

  /// No tick had audio yet.
  var isFirst: Bool { ticks == 0 }

  /// Asked at each tick with audio.
  /// - Parameters:
  ///   - shift: of the jitter buffer's decision: how much later, or earlier, ticks had better come.
  ///   - delayMilliseconds: of what is played, at the first of them.
  mutating func preference(_ shift: Int64, delayMilliseconds: Double, grain: Int) -> TickPreference {
    guard ticks < Limits.startPackets else { return shift > 0 ? .later : shift < 0 ? .earlier : .stay }
    ticks &+= 1
    if ticks == 1 {
      let missing = Double(wait(grain) &+ Limits.startMarginMilliseconds) - delayMilliseconds
      if missing > 0 { return .laterAtOnce(Int(missing.rounded(.up))) }
    }
    return shift > 0 ? .later : .stay
  }
}
