/// The two halves of the quadrature mirror filter of ITU-T G.722 (§3.1, §4.4): samples at 16 kHz to two bands at 8 kHz, and back.
/// An object is used in one direction. 24 taps, so 0.7 ms of delay each way; about 100 bytes, no allocation after `init`.
struct QuadratureMirror: ~Copyable {
  // 24 past values; freed in deinit.
  private let past: UnsafeMutablePointer<Int32>

  init() {
    past = .allocate(capacity: 24)
    past.initialize(repeating: 0, count: 24)
  }
  deinit { past.deallocate() }

  func reset() { past.update(repeating: 0, count: 24) }

  /// The transmit filter: two samples to both bands at 15 bits.
  @inline(__always) func split(_ first: Int32, _ second: Int32) -> (low: Int32, high: Int32) {
    past.update(from: past + 2, count: 22)
    (past[22], past[23]) = (first, second)
    var (odd, even): (Int32, Int32) = (0, 0)
    for tap in 0..<12 {
      odd &+= past[2 &* tap] &* G722Tables.qmf[tap]
      even &+= past[2 &* tap &+ 1] &* G722Tables.qmf[11 &- tap]
    }
    return ((even &+ odd) >> 14, (even &- odd) >> 14)
  }

  /// The receive filter: both bands at 15 bits to two samples.
  @inline(__always) func join(low: Int32, high: Int32) -> (Int32, Int32) {
    past.update(from: past + 2, count: 22)
    (past[22], past[23]) = (low &+ high, low &- high)
    var (first, second): (Int32, Int32) = (0, 0)
    for tap in 0..<12 {
      second &+= past[2 &* tap] &* G722Tables.qmf[tap]
      first &+= past[2 &* tap &+ 1] &* G722Tables.qmf[11 &- tap]
    }
    return (G722Band.saturate(first >> 11), G722Band.saturate(second >> 11))
  }
}
