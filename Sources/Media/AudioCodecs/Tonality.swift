/// Distinguishes tones from noise by linear prediction: the last samples predict the next one almost completely for a few steady
/// tones, but not for noise. 12 poles over 20 ms below 4 kHz, about 2,500 multiplications, no allocation.
///
/// The frame is emphasised by 1 − 0.95 z⁻¹ before, so that the fall of a room's noise towards high frequencies does not count as
/// prediction. Measured on 8 s each (5th to 99th percentile): chords and tones at −48 dBov in G.711 gain 7 to 23 dB; white, pink
/// and brown noise, with and without a telephone's band, 0 to 7.
enum Tonality {
  private static let order = 12
  private static let count = 160

  /// The energy of the frame divided by its prediction error, at least 1; `samples` are 20 ms of either band.
  static func predictionGain(_ samples: Span<Int16>) -> Float {
    let isWide = samples.count >= 2 * count
    let length = isWide ? count : min(count, samples.count)
    guard length > 2 * order else { return 1 }
    func sample(_ index: Int) -> Float {
      isWide ? (Float(samples[2 &* index]) + Float(samples[2 &* index &+ 1])) * 0.5 : Float(samples[index])
    }
    return withUnsafeTemporaryAllocation(of: Float.self, capacity: length &+ 2 * (order + 1)) { memory in
      // the frame, its correlations, and the predictor
      guard let room = memory.baseAddress else { return 1 }
      let lags = room + length
      var last = sample(0)
      let middle = Float(length &- 1) * 0.5
      room[0] = 0
      for index in 1..<length {
        let next = sample(index)
        let position = (Float(index) - middle) / Float(length) * 2
        let window = 1 - position * position
        room[index] = (next - 0.95 * last) * window * window
        last = next
      }
      for lag in 0...order {
        var sum: Float = 0
        for index in lag..<length { sum += room[index] * room[index &- lag] }
        lags[lag] = sum
      }
      return levinson(lags, predictor: lags + (order + 1))
    }
  }

  /// The Levinson–Durbin recursion, as far as the error is needed. `lags` and `predictor` have room for one more than the order.
  private static func levinson(_ lags: UnsafeMutablePointer<Float>, predictor: UnsafeMutablePointer<Float>) -> Float {
    guard lags[0] > 0 else { return 1 }
    // Below this, 24-bit sums are rounding errors.
    lags[0] *= 1.0001
    var error = lags[0]
    for step in 1...order {
      var sum = lags[step]
      for index in 1..<step { sum += predictor[index] * lags[step &- index] }
      let reflection = -sum / error
      predictor[step] = reflection
      // In pairs from both ends, so that no copy is needed.
      var (low, high) = (1, step &- 1)
      while low <= high {
        let (first, second) = (predictor[low], predictor[high])
        predictor[low] = first + reflection * second
        if low != high { predictor[high] = second + reflection * first }
        low = low &+ 1
        high = high &- 1
      }
      error *= 1 - reflection * reflection
      guard error > 0 else { return .greatestFiniteMagnitude }
    }
    return max(1, lags[0] / error)
  }
}
