import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineJitterBuffer

extension DelayPolicy {
  /// For streams from apps: a phone or a browser sends a packet some milliseconds late now and then, too rarely for the
  /// histogram.
  static let ofApps = {
    var policy = DelayPolicy()
    policy.shiftMarginMilliseconds = 6
    return policy
  }()
}

/// The beginning of a received stream: when its first packet is played, and how its ticks move while the packets' spread is
/// unknown.
struct StreamStart {
  private var arrival: Instant?
  /// Ticks with audio, up to `Limits.startPackets`.
  private var ticks = 0

  /// Registers a packet's arrival.
  mutating func came(at now: Instant) { if arrival == nil { arrival = now } }

  /// How long the first packet must wait for its tick, in ms, so that later ones are in time for theirs: packets of 10 and 30 ms
  /// do not end where ticks do.
  private func wait(_ grain: Int) -> Int { (160 &- grain) / 8 }

  /// Whether play-out must still wait although the first packet has arrived.
  /// - Parameter grain: the greatest common divisor of packet and tick, in 1/8 ms.
  func mustWait(at now: Instant, grain: Int) -> Bool {
    guard let arrival else { return false }
    return now - arrival < .milliseconds(wait(grain))
  }

  /// Whether no tick had audio yet.
  var isFirst: Bool { ticks == 0 }

  /// To be called at each tick with audio.
  /// - Parameters:
  ///   - shift: from the jitter buffer's decision: how much later, or earlier, ticks should come.
  ///   - delayMilliseconds: the delay of the played audio, at the first such tick.
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
