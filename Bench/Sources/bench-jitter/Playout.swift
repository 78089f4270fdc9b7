import BenchKit

/// The output of a receiver over a trace, pull by pull, and the figures computed from it.
struct Playout {
  private struct Pull {
    var at: Double
    /// The newest packet that had arrived.
    var newest: Int
    var concealed: Int
    var isSilent: Bool
    var position: Double?
  }
  private let samplesPerPull: Int
  private var output: [Int16] = []
  private var pulls: [Pull] = []
  private var last = ReceiverCounts()
  private var stretches = 0
  private var hash = ResultHash()

  init(pullMilliseconds: Int) { samplesPerPull = 8 * pullMilliseconds }

  mutating func add(_ samples: [Int16], _ counts: ReceiverCounts, at now: Double, newest: Int) {
    output += samples
    pulls.append(
      Pull(
        at: now, newest: newest, concealed: Int(counts.concealed - min(counts.concealed, last.concealed)),
        isSilent: counts.isSilent, position: counts.position))
    if counts.shrunk != last.shrunk || counts.grown != last.grown { stretches += 1 }
    last = counts
    hash.add(UInt64(bitPattern: Int64(samples[17])) &+ counts.concealed << 16)
  }

  func result(_ name: String, trace: Trace, tracer: PlayoutTracer?, fastest: Double) -> ReplayResult {
    var result = ReplayResult(name: name)
    result.packets = trace.packets.count
    result.pauses = trace.pauses.count
    result.lost = trace.packets.count { $0.arrived == nil }
    result.fastest = fastest
    result.stretches = stretches
    result.hash = hash.value
    if let tracer {
      let perPull = samplesPerPull
      let runs = tracer.runs(of: output) { (pulls[$0 / perPull].newest + 1) * trace.samplesPerPacket }
      measure(runs, trace, into: &result)
    } else {
      measureByClock(trace, into: &result)
    }
    return result
  }

  /// The time at which an output sample is played.
  private func time(_ index: Int) -> Double {
    pulls[index / samplesPerPull].at + Double(index % samplesPerPull) / 8
  }

  private func measure(_ runs: [PlayedRun], _ trace: Trace, into result: inout ReplayResult) {
    guard let first = runs.first, let final = runs.last else {
      // The trace is too short for a single tick, or gave no output.
      result.concealed = output.isEmpty && result.lost < result.packets ? 0 : 1
      result.late = output.isEmpty ? 0 : trace.packets.count { ($0.arrived ?? .infinity) < pulls[pulls.count - 1].at }
      return
    }
    let begin = first.output
    let paused = pausesHeard(runs, trace)
    let total = Double(max(1, output.count - begin - paused.reduce(0, +)))
    result.altered = max(0, 1 - Double(runs.reduce(0) { $0 + $1.count }) / total)
    var delays: [Double] = []
    for run in runs {
      for offset in stride(from: 0, to: run.count, by: 8) {
        let source = run.source + offset
        let sent = trace.packets[source / trace.samplesPerPacket].sent + Double(source % trace.samplesPerPacket) / 8
        delays.append(time(run.output + offset) - sent)
      }
    }
    summarise(&delays, into: &result)
    measureGaps(runs, from: begin, total: total, paused, into: &result)
    countLate(runs, until: final.source / trace.samplesPerPacket, trace, into: &result)
  }

  /// After each run: output samples, at most as many as the sender paused for between the audio of this run and of the next.
  private func pausesHeard(_ runs: [PlayedRun], _ trace: Trace) -> [Int] {
    let boundaries = trace.pauses.map { (at: $0.before * trace.samplesPerPacket, samples: $0.samples) }
    var next = 0
    return runs.indices.map { index in
      let follows = index + 1 < runs.count ? runs[index + 1] : nil
      var samples = 0
      while next < boundaries.count, boundaries[next].at < follows?.sourceEnd ?? .max {
        // A receiver that ignores timestamps plays on: the pause is within a run.
        if boundaries[next].at <= (follows?.source ?? .max - 16) + 16 { samples += boundaries[next].samples }
        next += 1
      }
      return max(0, min(samples, (follows?.output ?? output.count) - runs[index].outputEnd))
    }
  }

  private func summarise(_ delays: inout [Double], into result: inout ReplayResult) {
    guard !delays.isEmpty else { return }
    delays.sort()
    result.meanDelay = delays.reduce(0, +) / Double(delays.count)
    result.p95Delay = delays[min(delays.count - 1, delays.count * 95 / 100)]
  }

  /// Concealed audio as the receiver counts it, with the audio that it left silent; and the longest stretch without a sample of
  /// the source in which something was concealed.
  private func measureGaps(
    _ runs: [PlayedRun], from begin: Int, total: Double, _ paused: [Int], into result: inout ReplayResult
  ) {
    var covered = [Int](repeating: 0, count: pulls.count)
    for run in runs {
      var index = run.output
      while index < run.outputEnd {
        let end = min(run.outputEnd, (index / samplesPerPull + 1) * samplesPerPull)
        covered[index / samplesPerPull] += end - index
        index = end
      }
    }
    var concealed = 0
    for (index, pull) in pulls.enumerated() where index >= begin / samplesPerPull {
      concealed += pull.isSilent ? max(pull.concealed, samplesPerPull - covered[index]) : pull.concealed
    }
    let ends = runs.dropFirst().map(\.output) + [output.count]
    for (index, (run, end)) in zip(runs, ends).enumerated() where end > run.outputEnd {
      let among = pulls[run.outputEnd / samplesPerPull...(end - 1) / samplesPerPull]
      let made = among.reduce(0) { $0 + ($1.isSilent ? samplesPerPull : $1.concealed) }
      guard made > 0 else { continue }
      // Output that fills a sender's pause replaces no audio.
      concealed -= min(made, paused[index])
      result.maxGap = max(result.maxGap, time(end - 1) - time(run.outputEnd) + 0.125 - Double(paused[index]) / 8)
    }
    result.concealed = max(0, min(1, Double(concealed) / total))
    result.repaired = Double(last.repaired) / total
    result.stretched = Double(last.shrunk + last.grown) / total
  }

  /// A packet is late if it came after something newer had been played, or if none of it was played.
  private func countLate(_ runs: [PlayedRun], until end: Int, _ trace: Trace, into result: inout ReplayResult) {
    var passed = [Double](repeating: .infinity, count: end + 1)
    var skipped = [Bool](repeating: false, count: end + 1)
    let size = trace.samplesPerPacket
    var next = 0
    var before: PlayedRun?
    for run in runs {
      while next <= end, (next + 1) * size <= run.source {
        passed[next] = time(run.output)
        // More was dropped than a time-scale modification can remove: these packets were discarded.
        let isHeard = (before?.sourceEnd ?? 0) > next * size
        let gap = run.source - (before?.sourceEnd ?? 0)
        skipped[next] = !isHeard && (run.output - (before?.outputEnd ?? 0) < gap / 2 || isMadeUp(from: before, to: run, size))
        next += 1
      }
      // Packets that lie wholly in this run, or begin in it.
      while next <= end, (next + 1) * size <= run.sourceEnd {
        next += 1
      }
      before = run
    }
    for number in 0...end {
      guard let arrived = trace.packets[number].arrived else { continue }
      if arrived > passed[number] || skipped[number] { result.late += 1 }
    }
  }

  /// True if between the two runs at least as much was concealed as the packets without any played audio hold.
  private func isMadeUp(from before: PlayedRun?, to run: PlayedRun, _ size: Int) -> Bool {
    let (start, heard) = (before?.outputEnd ?? 0, before?.sourceEnd ?? 0)
    guard start < run.output else { return false }
    let packets = run.source / size - (heard + size - 1) / size
    let among = pulls[start / samplesPerPull...(run.output - 1) / samplesPerPull]
    return among.reduce(0) { $0 + ($1.isSilent ? samplesPerPull : $1.concealed) } >= size * packets - 20
  }

  /// For audio that cannot be recognised (Opus): measures by the receivers' own clocks and counters.
  private func measureByClock(_ trace: Trace, into result: inout ReplayResult) {
    let milliseconds = Double(samplesPerPull) / 8
    guard let begin = pulls.firstIndex(where: { $0.position != nil && $0.newest >= 0 }) else { return }
    var delays: [Double] = []
    var (concealed, gap) = (0, 0.0)
    for pull in pulls[begin...] {
      let made = pull.isSilent ? samplesPerPull : pull.concealed
      concealed += made
      gap = made > 0 ? gap + min(milliseconds, Double(made) / 8) : 0
      result.maxGap = max(result.maxGap, gap)
      guard made == 0, let position = pull.position, position >= 0 else { continue }
      guard let number = trace.packet(at: Int(position)) else { continue }
      delays.append(pull.at - trace.packets[number].sent - (position - Double(trace.timestamps[number])) / 8)
    }
    let total = Double((pulls.count - begin) * samplesPerPull)
    result.concealed = min(1, Double(concealed) / total)
    result.repaired = Double(last.repaired) / total
    result.stretched = Double(last.shrunk + last.grown) / total
    result.late = Int(last.discarded)
    summarise(&delays, into: &result)
  }
}
