import TrunklineRTP

#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// Writes one frame of a DTMF tone (ITU-T Q.23), `offset` frames after its beginning: two sines, each −9 dB of full scale with 2
/// dB of twist.
func writeTone(_ code: UInt8, at offset: Int, into frame: UnsafeMutablePointer<Int16>, _ band: AudioBand = .narrowband) {
  let rows: [Double] = [697, 770, 852, 941]
  let columns: [Double] = [1_209, 1_336, 1_477, 1_633]
  // Events 0–9, *, #, A–D on the keypad (RFC 4733 table 3).
  let keys: [(row: Int, column: Int)] = [
    (3, 1), (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2), (3, 0), (3, 2), (0, 3), (1, 3), (2, 3),
    (3, 3),
  ]
  guard Int(code) < keys.count else { return }
  let (low, high) = (rows[keys[Int(code)].row], columns[keys[Int(code)].column])
  for k in 0..<band.samplesPerTick {
    let time = Double(offset * band.samplesPerTick + k) * 2 * .pi / Double(band.sampleRateHz)
    frame[k] = Int16(9_000 * sin(low * time) + 11_300 * sin(high * time))
  }
}
