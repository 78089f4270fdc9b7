import AudioCodecs
import BenchKit
import Glibc

/// Rows of what was judged, for `Bench/fit_noise.py`: 48 numbers of 32 bits each, of which the last 42 are `SuddenSound`'s.
final class RowFile {
  private let file: UnsafeMutablePointer<FILE>

  init(_ path: String) throws {
    guard let file = fopen(path, "w") else { throw BenchError(text: "\(path): \(String(cString: strerror(errno)))") }
    self.file = file
  }
  deinit { fclose(file) }

  /// - Parameter loudest: mean square and highest sample of the source in the 200 ms before.
  func write(_ rise: JudgedRise, _ talker: Int, ticksSinceHit: Int, _ loudest: (power: Double, peak: Double)) {
    let power = Double(rise.power) / loudest.power
    let peak = Double(rise.peak * rise.peak) / (loudest.peak * loudest.peak)
    let excess = 10 * log10(max(power, peak))
    // Wrong, right, and what may be either.
    let label: Float = ticksSinceHit > 8 ? 0 : ticksSinceHit <= 3 && excess > 3 ? 1 : 2
    var row: [Float] = [label, Float(talker), Float(excess), Float(rise.source.rawValue)]
    row += [rise.isDistrusted ? 1 : 0, rise.evidence]
    for index in 0..<42 { row.append(rise.values[index]) }
    fwrite(row, 4, row.count, file)
  }
}
