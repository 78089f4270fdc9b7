import BenchKit
import JitterPeers
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineMediaSession
import TrunklineRTP

/// The result of one receiver on a trace. README.md defines every figure.
struct ReplayResult {
  var name: String
  var packets = 0
  var pauses = 0
  var lost = 0
  var late = 0
  /// Shares of the output.
  var concealed = 0.0
  var repaired = 0.0
  var stretched = 0.0
  var altered = 0.0
  var stretches = 0
  var meanDelay = 0.0
  var p95Delay = 0.0
  var maxGap = 0.0
  var fastest = 0.0
  /// The best constant delay, chosen with hindsight, at the same share of missing audio.
  var fixedDelay = 0.0
  var hash: UInt64 = 0

  /// 0 if no audio was played.
  var aboveFastest: Double { p95Delay == 0 ? 0 : meanDelay - fastest }
  var ratioToFixed: Double { fixedDelay > fastest ? aboveFastest / (fixedDelay - fastest) : 0 }
}

/// One trace with its speech and its ticks, to be replayed through several receivers.
struct Replay {
  let trace: Trace
  let encoding: AudioEncoding
  private let speech: TracedSpeech
  private let tracer: PlayoutTracer?
  private let opus: [[UInt8]]
  private let arrivals: [(at: Double, number: Int)]
  private let fastest: Double
  /// Added to the trace's times: virtual time begins here.
  private let origin: Double

  init(_ trace: Trace, encoding: AudioEncoding) throws {
    self.trace = trace
    self.encoding = encoding
    if encoding == .opus, trace.frameMilliseconds != 20 {
      throw BenchError(text: "\(trace.name): packets of \(trace.frameMilliseconds) ms; --opus-fec sends 20 ms")
    }
    speech = TracedSpeech(packets: encoding == .opus ? 0 : trace.packets.count, samplesPerPacket: trace.samplesPerPacket)
    tracer = encoding == .opus ? nil : PlayoutTracer(source: speech.samples)
    opus = encoding == .opus ? try Speech.packets(.opus, count: 400) : []
    var arrivals = trace.packets.enumerated().compactMap { number, packet in packet.arrived.map { (at: $0, number: number) } }
    arrivals.sort { ($0.at, $0.number) < ($1.at, $1.number) }
    fastest = arrivals.map { $0.at - trace.packets[$0.number].sent }.min() ?? 0
    origin = 1000 - (arrivals.first?.at ?? 0).rounded(.down)
    self.arrivals = arrivals
  }

  private static func instant(_ milliseconds: Double) -> Instant { Instant(nanoseconds: Int64(milliseconds * 1_000_000)) }

  private func payload(_ number: Int) -> [UInt8] {
    encoding == .opus ? opus[number % opus.count] : speech.payload(number)
  }

  func run(_ receiver: some ReplayReceiver) -> ReplayResult {
    var played = Playout(pullMilliseconds: receiver.pullMilliseconds)
    var samples = [Int16](repeating: 0, count: 8 * receiver.pullMilliseconds)
    var (next, newest) = (0, -1)
    // From 7 ms after the first packet until the fastest network had delivered the last one.
    let end = (trace.packets.last?.sent ?? 0) + fastest + origin
    var now = ((arrivals.first?.at ?? end) + origin).rounded(.down) + 7
    while now <= end {
      while next < arrivals.count, arrivals[next].at + origin <= now {
        let number = arrivals[next].number
        receiver.insert(trace.sent(number), payload(number), at: Self.instant(arrivals[next].at + origin))
        newest = max(newest, number)
        next += 1
      }
      receiver.pull(into: &samples, at: Self.instant(now))
      played.add(samples, receiver.counts, at: now - origin, newest: newest)
      now += receiver.millisecondsToNextPull(after: Self.instant(now))
    }
    var result = played.result(receiver.name, trace: trace, tracer: tracer, fastest: fastest)
    let reached = arrivals.map { $0.at - trace.packets[$0.number].sent }.sorted()
    let wanted = Int((Double(trace.packets.count) * (1 - result.concealed)).rounded(.up))
    if wanted > 0, !reached.isEmpty { result.fixedDelay = reached[min(wanted, reached.count) - 1] }
    return result
  }

  /// Share of the packets that were lost and whose successor was lost as well or carries no copy of them (Opus sends none of
  /// pauses): the unavoidable loss.
  var unrepairable: Double {
    let packets = trace.packets
    let count = packets.indices.count { index in
      guard packets[index].arrived == nil else { return false }
      guard index + 1 < packets.count, packets[index + 1].arrived != nil else { return true }
      return !OpusPacket.carriesRepair(payload(index + 1).span)
    }
    return Double(count) / Double(max(1, packets.count))
  }

  func ours(_ policy: DelayPolicy) throws -> ReplayResult {
    run(try OurReceiver(encoding, policy: policy, pathMilliseconds: fastest + RFactor.restOfPathMilliseconds))
  }

  func oursAndNetEQ(policy: DelayPolicy, peers: Bool) throws -> [ReplayResult] {
    var results = [try ours(policy)]
    if peers, let receiver = NetEQReceiver(encoding) { results.append(run(receiver)) }
    return results
  }

  /// Ours, then those of the installed peers.
  func all(policy: DelayPolicy, peers: Bool) throws -> [ReplayResult] {
    var results = try oursAndNetEQ(policy: policy, peers: peers)
    guard peers else { return results }
    guard encoding != .opus else { return results }
    // speexdsp prints a line for every packet that it considers odd.
    let frame = trace.frameMilliseconds
    if let buffer = SpeexJitterBuffer(frameMilliseconds: frame) {
      let receiver = PacketReceiver("speexdsp", buffer, frameMilliseconds: frame)
      results.append(withoutStandardError { run(receiver) })
    }
    if let buffer = LibreJitterBuffer() { results.append(run(PacketReceiver("libre", buffer, frameMilliseconds: frame))) }
    return results
  }

  /// Constant delays, each with the percentage of packets that arrive too late for it.
  func fixedCurve() -> [(Double, Double)] {
    let delays = arrivals.map { $0.at - trace.packets[$0.number].sent }.sorted()
    guard let highest = delays.last else { return [] }
    return (0...60).map { step in
      let delay = fastest + (highest - fastest) * Double(step) / 60
      let missing = delays.count { $0 > delay }
      return (delay, 100 * Double(missing) / Double(trace.packets.count))
    }
  }
}
