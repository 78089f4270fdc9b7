import Glibc

/// The distance of two spectra in dB: the root mean square of the differences of their levels in 16 bands of 250 Hz, in windows
/// of 20 ms every 10 ms, as a mean over the windows. Levels below −70 dBov count as equal. It is a measure independent of PESQ,
/// and it works on 100 ms of audio.
enum SpectralDistance {
  private static let window = 160
  private static let bands = 16

  static func between(_ left: ArraySlice<Int16>, _ right: ArraySlice<Int16>) -> Double {
    let count = min(left.count, right.count)
    let distances = stride(from: 0, through: count - window, by: window / 2).map { start in
      let (a, b) = (levels(left, left.startIndex + start), levels(right, right.startIndex + start))
      return (zip(a, b).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) } / Double(bands)).squareRoot()
    }
    return distances.reduce(0, +) / Double(max(1, distances.count))
  }

  private static func levels(_ samples: ArraySlice<Int16>, _ start: Int) -> [Double] {
    let shaped = (0..<window).map {
      Double(samples[start + $0]) / 32_768 * (0.5 - 0.5 * cos(2 * .pi * Double($0) / Double(window)))
    }
    let bins = window / 2 / bands
    return (0..<bands).map { band in
      let power = (band * bins..<(band + 1) * bins).reduce(1e-7) { sum, bin in
        var (real, imaginary) = (0.0, 0.0)
        for (index, value) in shaped.enumerated() {
          let angle = 2 * .pi * Double(bin * index % window) / Double(window)
          real += value * cos(angle)
          imaginary += value * sin(angle)
        }
        return sum + (real * real + imaginary * imaginary) / Double(window)
      }
      return 10 * log10(power)
    }
  }
}
