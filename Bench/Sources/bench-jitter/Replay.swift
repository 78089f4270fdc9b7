import AudioCodecs
import BenchKit
import Bytes
import JitterBuffer
import MediaSession
import RTP

/// What a receive path made of a trace.
struct ReplayResult {
  var packets = 0
  var lost = 0
  /// Came, but were not played.
  var late = 0
  var concealedShare = 0.0
  var repairedShare = 0.0
  /// Of play-out behind the fastest packet of the whole trace, in milliseconds.
  var meanDelay = 0.0
  var delay95 = 0.0
  var stretchedShare = 0.0
  var nanosecondsPerTick = 0.0
  var hash: UInt64 = 0
  /// The best constant play-out delay chosen with hindsight at the same share of missing audio, without repair.
  var fixedDelay = 0.0
}

enum Replay {
  /// - Parameter phase: milliseconds of the ticks after the send times' grid.
  static func run(_ trace: Trace, encoding: AudioEncoding, phase: Double = 7, policy: DelayPolicy = DelayPolicy()) throws
    -> ReplayResult
  {
    let payloads = try Speech.packets(encoding, count: 400)
    let units = Int(encoding.clockRateHz) / 50
    let arrivals = trace.packets.enumerated().compactMap { number, packet in
      packet.arrived.map { (at: $0, number: number, sent: packet.sent) }
    }
    .sorted { ($0.at, $0.number) < ($1.at, $1.number) }
    let fastest = arrivals.map { $0.at - $0.sent }.min() ?? 0
    var receiver = try AudioReceiver(encoding: encoding, policy: policy)
    var output = [Int16](repeating: 0, count: 160)
    var delays: [Double] = []
    var hash = ResultHash()
    var next = 0
    var now = (arrivals.first?.at ?? 0) + phase
    let end = (trace.packets.last?.sent ?? 0) + fastest
    let start = cpuNanoseconds()
    var ticks = 0
    while now < end {
      while next < arrivals.count, arrivals[next].at <= now {
        let packet = arrivals[next]
        let header = RTPHeader(
          payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: packet.number)),
          timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: packet.number * units)), ssrc: SSRC(raw: 1))
        let payload = payloads[packet.number % payloads.count]
        _ = receiver.insert(header, payload: payload.span, at: instant(packet.at))
        next += 1
      }
      var span = output.mutableSpan
      let result = receiver.pull(into: &span, at: instant(now))
      hash.add(UInt64(result.rawValue) &+ UInt64(bitPattern: Int64(output[17])))
      // The tick just played began 160 samples before what comes next.
      let played = Double(Int32(bitPattern: receiver.nextTimestamp.raw)) / Double(units) * 20 - 20
      delays.append(now - played - fastest)
      now += 20
      ticks += 1
    }
    let spent = cpuNanoseconds() - start
    let statistics = receiver.statistics
    let total = Double(max(1, ticks * 160))
    var summary = ReplayResult()
    summary.packets = trace.packets.count
    summary.lost = trace.packets.count - arrivals.count
    summary.late = Int(statistics.packets.late + statistics.packets.overflowed)
    summary.concealedShare = Double(statistics.concealedSamples) / total
    summary.repairedShare = Double(statistics.repairedSamples) / total
    summary.stretchedShare = Double(statistics.shrunkSamples + statistics.grownSamples) / total
    summary.meanDelay = delays.reduce(0, +) / Double(max(1, delays.count))
    summary.delay95 = delays.sorted().dropFirst(delays.count * 95 / 100).first ?? 0
    summary.nanosecondsPerTick = Double(spent) / Double(max(1, ticks))
    summary.hash = hash.value
    summary.fixedDelay = fixedDelay(
      arrivals.map { $0.at - $0.sent - fastest }, packets: trace.packets.count, missing: summary.concealedShare)
    return summary
  }

  private static func instant(_ milliseconds: Double) -> Instant { Instant(nanoseconds: Int64(milliseconds * 1_000_000)) }

  /// The delay that leaves no more than the given share of packets missing, lost ones included.
  private static func fixedDelay(_ delays: [Double], packets: Int, missing: Double) -> Double {
    let sorted = delays.sorted()
    let wanted = Int((Double(packets) * (1 - missing)).rounded(.up))
    guard wanted > 0, !sorted.isEmpty else { return 0 }
    return sorted[min(wanted, sorted.count) - 1]
  }
}
