/// Comfort noise as the far end described it (RFC 3389): a level, and a spectrum if it sent one, as an all-pole lattice over
/// white noise. The level changes over 100 ms, so that a new description makes no audible step. 60 octets of state, no
/// allocation; about 10 instructions per sample and pole.
public struct ReceivedNoise: Sendable {
  /// Poles used; a payload may describe more.
  private static let order = 8
  /// Levels in dBov. Above `loudest` a level is not background noise and is bounded. Above `meant` it is an error (some peers
  /// send 0): `usual`, the level of a quiet room, is played instead.
  private static let loudest = -30.0
  private static let meant = -15.0
  private static let usual = -60.0
  private var generator = NoiseGenerator()
  private var reflections = SIMD8<Float>(repeating: 0)
  private var state = SIMD8<Float>(repeating: 0)
  private var poles = 0
  private var amplitude: Float = 0
  private var wanted: Float = 0

  public init() {}

  /// Applies one payload; an empty one is ignored. The level is bounded to −30 dBov; above −15 dBov it is ignored and −60 is
  /// used.
  public mutating func describe(_ payload: Span<UInt8>) {
    guard let level = ComfortNoise.level(payload) else { return }
    poles = min(Self.order, payload.count - 1)
    // White noise through the lattice grows by 1/Π(1 − k²).
    var share: Float = 1
    reflections = SIMD8(repeating: 0)
    for index in 0..<poles {
      // §3.1: 127 is 0, a step is 258/32768; the bound keeps the filter stable.
      let value = max(-0.98, min(0.98, Float(Int(payload[index + 1]) - 127) * 258 / 32_768))
      reflections[index] = value
      share *= 1 - value * value
    }
    wanted =
      32_768 * Float(ComfortNoise.amplitude(level: level > Self.meant ? Self.usual : min(level, Self.loudest)))
      * share.squareRoot()
    if amplitude == 0 { amplitude = wanted }
  }

  // HOT
  public mutating func fill(_ samples: UnsafeMutableBufferPointer<Int16>) {
    for index in 0..<samples.count {
      amplitude += (wanted - amplitude) / 800
      var forward = generator.next() * amplitude
      for pole in stride(from: poles - 1, through: 0, by: -1) {
        forward -= reflections[pole] * state[pole]
        if pole + 1 < poles { state[pole + 1] = state[pole] + reflections[pole] * forward }
      }
      if poles > 0 { state[0] = forward }
      samples[index] = Int16(clamping: Int(forward))
    }
  }
}
