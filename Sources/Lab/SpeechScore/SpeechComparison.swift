/// Compares received speech with the spoken one: 8 kHz mono samples on both sides, any silence before, between and after.
///
/// The received audio may be delayed, louder, coded and slightly stretched by a jitter buffer; alignment is found once for the
/// whole (correlation of log envelopes, then of samples) and then followed frame by frame. Cost: about 40 ms for 10 s of speech, half
/// a second where it is hard to follow.
public struct SpeechComparison: Sendable, Equatable {
  /// From the first sample played to the first sample received, both counted from the start of their arrays; negative if the
  /// received audio starts later in the speech than the played.
  public var delayMilliseconds: Double
  /// Level of the received speech minus that of the played, over active frames, in dB.
  public var levelDifferenceDecibels: Double
  /// Share of the played active 20 ms frames that are received within 12 dB of their level, 0…1.
  public var heardShare: Double
  /// Active speech missing at the start, in milliseconds.
  public var clippedStartMilliseconds: Int
  /// Longest run of active frames that are missing, in milliseconds.
  public var longestGapMilliseconds: Int
  /// Mean normalised correlation of active frames with the audio received instead of them, 0…1: 1 is the same waveform.
  public var similarity: Double
  /// Active frames of the played speech, 20 ms each.
  public var activeFrames: Int

  /// True if the speech arrived by a person's judgement: nearly all of it, recognisably, at about its level.
  public var heardSpeech: Bool {
    activeFrames >= 25 && heardShare >= 0.9 && similarity >= 0.5 && abs(levelDifferenceDecibels) < 6
  }
}

private let frame = 160

extension SpeechComparison {
  /// Compares `heard` with `played`; nil when the played side has no speech (nothing above −50 dBov) or the heard side is empty.
  /// - Parameter searchMilliseconds: the range of delays considered, from minus to plus this value.
  public init?(played: [Int16], heard: [Int16], searchMilliseconds: Int = 4000) {
    let reference = Self.levels(played)
    let result = Self.levels(heard)
    let peak = reference.max() ?? -90
    guard peak > -50, !result.isEmpty else { return nil }
    let active = reference.indices.filter { reference[$0] > max(-50, peak - 30) }
    guard let first = active.first else { return nil }

    let coarse = Self.coarseLag(reference, result: result, active: active, limit: searchMilliseconds / 10)
    var tracked = Self.track(played, received: heard, active: active, startLag: coarse * frame / 2)
    if tracked.similarity < 0.85 {
      let anchored = Self.anchored(played, received: heard, active: active, startLag: coarse * frame / 2)
      if anchored.similarity > tracked.similarity { tracked = anchored }
    }
    let present = active.map { index -> Bool in
      let lag = tracked.lags[index] ?? coarse * frame / 2
      let centre = index + Int((Double(lag) / Double(frame / 2)).rounded())
      let best = (centre - 2...centre + 2).compactMap { result.indices.contains($0) ? result[$0] : nil }.max() ?? -90
      return best >= reference[index] - 12
    }
    var gap = 0
    var longest = 0
    for (position, here) in present.enumerated() {
      let contiguous = position > 0 && active[position] - active[position - 1] == 1
      gap = here ? 0 : (contiguous ? gap + 10 : 10)
      longest = max(longest, gap)
    }
    let firstHeard = zip(active, present).first { $0.1 }?.0
    delayMilliseconds = Double(tracked.typicalLag) / 8
    levelDifferenceDecibels = tracked.levelDifference
    heardShare = Double(present.count { $0 }) / Double(active.count)
    clippedStartMilliseconds = ((firstHeard ?? reference.count) - first) * 10
    longestGapMilliseconds = longest
    similarity = tracked.similarity
    activeFrames = active.count / 2
  }

  /// RMS level in dBov of overlapping 20 ms frames, one each 10 ms.
  static func levels(_ samples: [Int16]) -> [Double] {
    stride(from: 0, to: max(0, samples.count - frame + 1), by: frame / 2).map { start in
      let power = samples[start..<start + frame].reduce(0.0) { $0 + Double($1) * Double($1) } / Double(frame)
      return power > 0 ? decibels(power / (32768 * 32768)) : -90
    }
  }

  /// The lag in 10 ms steps at which the envelopes agree best.
  static func coarseLag(_ reference: [Double], result: [Double], active: [Int], limit: Int) -> Int {
    func shape(_ levels: [Double]) -> [Double] { levels.map { max(0, $0 + 60) } }
    let (a, b) = (shape(reference), shape(result))
    var best = (score: -Double.infinity, lag: 0)
    for lag in -limit...max(limit, result.count - reference.count + limit) {
      var (ab, bb, aa) = (0.0, 0.0, 0.0)
      for index in a.indices where b.indices.contains(index + lag) {
        ab += a[index] * b[index + lag]
        bb += b[index + lag] * b[index + lag]
        aa += a[index] * a[index]
      }
      let whole = a.reduce(0) { $0 + $1 * $1 }
      guard aa > whole * 0.3, bb > 0 else { continue }
      let score = ab / (bb * whole).squareRoot()
      if score > best.score { best = (score, lag) }
    }
    return best.lag
  }

  struct Track {
    var lags: [Int: Int] = [:]
    var similarity = 0.0
    var levelDifference = 0.0
    var typicalLag = 0
  }

  /// Follows the delay in samples frame by frame: each active frame searches ±10 ms around the last lag, the first ±40 ms. If
  /// that fails for 50 ms the delay may have jumped, as when a listener's pauses are dropped: the envelopes then give the new
  /// lag.
  static func track(_ played: [Int16], received heard: [Int16], active: [Int], startLag: Int) -> Track {
    let envelopes = (played: levels(played), heard: levels(heard))
    var matches = [Match?](repeating: nil, count: active.count)
    var lost: [Int] = []
    var lag = startLag
    var radius = 320
    for (position, index) in active.enumerated() {
      let start = index * frame / 2
      var found = bestLag(played, received: heard, from: start, around: lag, radius: radius)
      if found.map({ $0.correlation <= 0.6 }) ?? true {
        lost.append(position)
        if lost.count % 5 == 0, let jump = jump(envelopes.played, envelopes.heard, from: active[lost[0]], lag: lag),
          let there = bestLag(played, received: heard, from: start, around: jump, radius: 160), there.correlation > 0.6
        {
          for missed in lost {
            let other = bestLag(played, received: heard, from: active[missed] * frame / 2, around: there.lag, radius: 80)
            if let other, other.correlation > matches[missed]?.correlation ?? -1 { matches[missed] = other }
          }
          found = there
        }
      }
      matches[position] = found
      if let found, found.correlation > 0.6 { (lag, radius, lost) = (found.lag, 80, []) }
    }
    return summary(matches, active, startLag)
  }

  private static func summary(_ matches: [Match?], _ active: [Int], _ startLag: Int) -> Track {
    var out = Track()
    var lag = startLag
    var (sum, powerPlayed, powerHeard) = (0.0, 0.0, 0.0)
    for (index, match) in zip(active, matches) {
      guard let match else { continue }
      if match.correlation > 0.6 { lag = match.lag }
      out.lags[index] = lag
      sum += max(0, match.correlation)
      powerPlayed += match.powerPlayed
      powerHeard += match.powerHeard
    }
    out.similarity = active.isEmpty ? 0 : sum / Double(active.count)
    out.levelDifference = powerPlayed > 0 && powerHeard > 0 ? decibels(powerHeard / powerPlayed) : -90
    let sorted = out.lags.values.sorted()
    out.typicalLag = sorted.isEmpty ? startLag : sorted[sorted.count / 2]
    return out
  }

  /// The lag in samples, at most 1.5 s (the limit of kept first words) from the last, at which the envelopes of the next 400 ms
  /// agree best.
  private static func jump(_ a: [Double], _ b: [Double], from start: Int, lag: Int) -> Int? {
    let window = start..<min(a.count, start + 40)
    let around = lag / (frame / 2)
    var best: (difference: Double, lag: Int)?
    for step in around - 150...around + 150 where start + step >= 0 && window.upperBound + step <= b.count {
      let difference = window.reduce(0.0) { $0 + abs(max(-60, a[$1]) - max(-60, b[$1 + step])) }
      if difference < best?.difference ?? .infinity { best = (difference, step) }
    }
    return best.map { $0.lag * frame / 2 }
  }

  /// Where following frame by frame loses the speech, as while a listener catches up by seconds: the waveform of 150 ms from each tenth
  /// active frame on gives a lag, at most 1.75 s from `startLag`, and a frame takes the best of those around it. A single vowel, or an
  /// envelope, correlates with many others. Cost: some 600 million multiplications for 10 s of speech.
  private static func anchored(_ played: [Int16], received heard: [Int16], active: [Int], startLag: Int) -> Track {
    let (halfPlayed, halfHeard) = (halved(played), halved(heard))
    let starts = Array(stride(from: 0, to: active.count, by: 10))
    let anchors = starts.map { anchor(halfPlayed, received: halfHeard, from: active[$0] * frame / 4, around: startLag / 2) }
    var matches = [Match?](repeating: nil, count: active.count)
    for (window, first) in starts.enumerated() {
      let lags = Set(anchors[max(0, window - 3)..<min(anchors.count, window + 4)].compactMap { $0.map { $0 * 2 } })
      for position in first..<min(first + 10, active.count) {
        let start = active[position] * frame / 2
        let found = lags.compactMap { bestLag(played, received: heard, from: start, around: $0, radius: 160) }
          .max { ($0.correlation, $1.lag) < ($1.correlation, $0.lag) }
        matches[position] = found ?? bestLag(played, received: heard, from: start, around: startLag, radius: 320)
      }
    }
    return summary(matches, active, startLag)
  }

  /// Every other sample, the mean of two: 4 kHz tell where 150 ms of speech are, at a quarter of the cost.
  private static func halved(_ samples: [Int16]) -> [Float] {
    (0..<samples.count / 2).map { Float(Int32(samples[2 * $0]) + Int32(samples[2 * $0 + 1])) / 2 }
  }

  /// The lag at which 600 samples from `start` on are heard with the highest correlation; nil: nowhere with more than 0.5.
  private static func anchor(_ played: [Float], received heard: [Float], from start: Int, around lag: Int) -> Int? {
    let (length, reach) = (600, 7_000)
    let (low, high) = (max(lag - reach, -start), min(lag + reach, heard.count - length - start))
    guard low <= high, start + length <= played.count else { return nil }
    let power = played[start..<start + length].reduce(0) { $0 + $1 * $1 }
    var heardPower = heard[start + low..<start + low + length].reduce(0) { $0 + $1 * $1 }
    var best = (correlation: Float(0.5), lag: Int?.none)
    played.withUnsafeBufferPointer { a in
      heard.withUnsafeBufferPointer { b in
        for lag in low...high {
          // silence, or what is left of it by rounding, is not the speech
          if heardPower > power / 50 {
            var product: Float = 0
            for offset in 0..<length { product += a[start + offset] * b[start + lag + offset] }
            let correlation = product / (power * heardPower).squareRoot()
            if correlation > best.correlation { best = (correlation, lag) }
          }
          guard lag < high else { break }
          let (first, next) = (b[start + lag], b[start + lag + length])
          heardPower = max(0, heardPower + next * next - first * first)
        }
      }
    }
    return best.lag
  }

  struct Match { var lag = 0, correlation = -1.0, powerPlayed = 0.0, powerHeard = 0.0 }

  static func bestLag(_ played: [Int16], received heard: [Int16], from start: Int, around: Int, radius: Int) -> Match? {
    let low = max(around - radius, -start)
    let high = min(around + radius, heard.count - frame - start)
    guard low <= high else { return nil }
    var best = Match()
    let power = (0..<frame).reduce(0.0) { $0 + Double(played[start + $1]) * Double(played[start + $1]) }
    played.withUnsafeBufferPointer { a in
      heard.withUnsafeBufferPointer { b in
        for lag in low...high {
          var (ab, bb) = (0.0, 0.0)
          for offset in 0..<frame {
            let x = Double(a[start + offset])
            let y = Double(b[start + lag + offset])
            ab += x * y
            bb += y * y
          }
          let correlation = bb > 0 && power > 0 ? ab / (bb * power).squareRoot() : 0
          if correlation > best.correlation {
            best = Match(lag: lag, correlation: correlation, powerPlayed: power, powerHeard: bb)
          }
        }
      }
    }
    return best
  }
}
