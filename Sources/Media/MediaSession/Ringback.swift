import TrunklineAudioCodecs

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

extension Announcement {
  /// The tone for a called number that waits for a user: 425 Hz, 1 s of tone and 4 s of silence, as in most of Europe (ITU-T
  /// E.180, supplement 2). To be played again at its end. 240 kB, made at the first call that needs it.
  public static let ringback = Announcement(Recording(ringbackSamples))

  private static var ringbackSamples: [Int16] {
    let (rate, ramp) = (8_000, 80)
    return (0..<5 * rate).map { k in
      guard k < rate else { return 0 }
      let edge = Double(min(k, rate - k, ramp)) / Double(ramp)
      return Int16(4_000 * edge * sin(2 * .pi * 425 * Double(k) / Double(rate)))
    }
  }
}
