/// A stretch of output that is an exact copy of the source.
struct PlayedRun {
  /// First sample in the output and in the source, and the number of samples.
  var output: Int
  var source: Int
  var count: Int
  var outputEnd: Int { output + count }
  var sourceEnd: Int { source + count }
}

/// Finds which source sample each output sample is, for any implementation: it compares samples and uses no statement of the
/// implementation. Concealed, stretched or blended audio is a copy of nothing and belongs to no run.
///
/// Two rules keep repetition by concealment from counting as playing: the source only moves forward, and nothing is played before
/// it has arrived.
struct PlayoutTracer {
  private static let window = 24
  private static let stride = 8
  /// A run may start this many samples before the end of the last one, as the start of a blend is not sharp.
  private static let overlap = 15

  private let source: [Int16]
  // Open addressing over windows at multiples of `stride`; 0 is empty, else window number + 1.
  private var table: [UInt32]
  private let mask: Int

  init(source: [Int16]) {
    self.source = source
    let windows = max(0, (source.count - Self.window) / Self.stride + 1)
    var size = 16
    while size < windows * 2 { size *= 2 }
    mask = size - 1
    table = [UInt32](repeating: 0, count: size)
    source.withUnsafeBufferPointer { source in
      for number in 0..<windows {
        guard let hash = Self.hash(source, at: number * Self.stride) else { continue }
        var slot = hash & mask
        while table[slot] != 0 { slot = (slot + 1) & mask }
        table[slot] = UInt32(number + 1)
      }
    }
  }

  /// nil for windows with too little content to distinguish them.
  private static func hash(_ samples: UnsafeBufferPointer<Int16>, at start: Int) -> Int? {
    var (value, changes, last): (UInt64, Int, Int16) = (0xcbf2_9ce4_8422_2325, 0, samples[start])
    for index in start..<start + window {
      let sample = samples[index]
      value = (value ^ UInt64(UInt16(bitPattern: sample))) &* 0x0000_0100_0000_01b3
      if sample != last { changes += 1 }
      last = sample
    }
    value ^= value >> 29
    return changes >= 8 ? Int(value & 0x7fff_ffff_ffff_ffff) : nil
  }

  /// - Parameter arrivedEnd: for an output sample's index, the end of the newest packet that had arrived when it was played.
  func runs(of output: [Int16], arrivedEnd: (Int) -> Int) -> [PlayedRun] {
    var runs: [PlayedRun] = []
    output.withUnsafeBufferPointer { output in
      source.withUnsafeBufferPointer { source in
        var index = 0
        while index + Self.window <= output.count {
          guard let run = find(output, source, at: index, after: runs.last, limit: arrivedEnd(index)) else {
            index += 1
            continue
          }
          runs.append(run)
          index = run.outputEnd
        }
      }
    }
    return runs
  }

  private func find(
    _ output: UnsafeBufferPointer<Int16>, _ source: UnsafeBufferPointer<Int16>, at start: Int, after last: PlayedRun?, limit: Int
  ) -> PlayedRun? {
    guard let hash = Self.hash(output, at: start) else { return nil }
    let earliest = (last?.sourceEnd ?? 0) - Self.overlap
    var best: Int?
    var slot = hash & mask
    while table[slot] != 0 {
      let position = (Int(table[slot]) - 1) * Self.stride
      slot = (slot + 1) & mask
      guard position >= earliest, position < limit, position < best ?? .max else { continue }
      if (0..<Self.window).allSatisfy({ source[position + $0] == output[start + $0] }) { best = position }
    }
    guard var position = best else { return nil }
    var begin = start
    while begin > last?.outputEnd ?? 0, position > max(0, earliest), output[begin - 1] == source[position - 1] {
      (begin, position) = (begin - 1, position - 1)
    }
    var count = start - begin
    while begin + count < output.count, position + count < source.count, output[begin + count] == source[position + count] {
      count += 1
    }
    return PlayedRun(output: begin, source: position, count: count)
  }
}
