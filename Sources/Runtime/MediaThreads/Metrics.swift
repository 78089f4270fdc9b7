import Synchronization
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineMediaSession
import TrunklinePlatform

/// The counts of the media threads, readable from any thread.
public final class MediaMetrics: Sendable {
  enum HandshakeOutcome: String, CaseIterable, Sendable {
    case completed, failed
    case timedOut = "timed_out"
    /// Begun and given up before a certificate was received: the leg waits for the next attempt.
    case abandoned
    /// Not begun: too many at once.
    case refused
  }
  enum Way: String, CaseIterable, Sendable {
    case trunkReceived = "trunk_received"
    case appReceived = "app_received"
    case sent
    case sendRefused = "send_refused"
    case stranger
  }
  enum Stream: String, CaseIterable, Sendable { case trunk, app }

  let packets = LabelledCounters<Way>()
  let lost = LabelledCounters<Stream>()
  let late = LabelledCounters<Stream>()
  let concealedMilliseconds = LabelledCounters<Stream>()
  let repairedMilliseconds = LabelledCounters<Stream>()
  /// One counter per decision of play-out.
  let playout = CounterTable(labelNames: ["leg", "decision"])
  /// One counter per `MediaDrop`.
  let drops = CounterTable(labelNames: ["reason"])
  let retiredSources = Counter()
  let sourceTakeovers = Counter()
  let jitterBufferDelay = Histogram(bounds: [0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 1])
  let jitter = Histogram(bounds: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5])
  let legs = LegMetrics()
  let tickLateness = Histogram(bounds: Histogram.tickBounds)
  let ticksLeftOut = Counter()
  let sessions = Gauge()
  let appAddresses = Gauge()
  let appAddressesRefused = Counter()
  let associations = Gauge()
  let handshakes = LabelledCounters<HandshakeOutcome>()
  let handshakeSeconds = Histogram(bounds: Histogram.secondsBounds)
  let unknownSession = Counter()
  public let undelivered = Counter()
  /// CPU nanoseconds by thread, `media-0`…, then `dtls-0`.
  let threadCPU: [(name: String, nanoseconds: Gauge)]
  /// By media thread; set once, before the threads start.
  private let loads = Mutex<[(name: String, load: ThreadLoad)]>([])

  init(threads: Int) {
    threadCPU = (0..<threads).map { ("media-\($0)", Gauge()) } + [("dtls-0", Gauge())]
    // A counter that appears with its first drop has no rate for it: each begins at 0.
    for reason in MediaDrop.allCases { _ = drops.counter(reason.name) }
  }

  private let ports = Mutex<(pairs: TrunkPorts, limit: Int)?>(nil)
  let listening = Gauge()

  func watch(_ threads: [(name: String, load: ThreadLoad)]) { loads.withLock { $0 = threads } }
  func watch(_ pairs: TrunkPorts, limit: Int) { ports.withLock { $0 = (pairs, limit) } }

  /// All families, for `Telemetry`.
  public var families: [MetricFamily] {
    [
      .counters("trunkline_media_packets_total", help: "Datagrams by path; stranger: of an unknown leg.", label: "way", packets),
      .counters("trunkline_media_lost_total", help: "RTP packets that were never received, by leg.", label: "leg", lost),
      .counters("trunkline_media_late_total", help: "RTP packets too late for play-out, by leg.", label: "leg", late),
      seconds(
        "trunkline_media_concealed_seconds_total", help: "Audio concealed for lost packets, by leg.", concealedMilliseconds),
      seconds("trunkline_media_repaired_seconds_total", help: "Audio repaired by Opus FEC, by leg.", repairedMilliseconds),
      .counters("trunkline_media_playout_total", help: "What play-out decided, by leg; _ms in milliseconds of audio.", playout),
      .counters("trunkline_media_drops_total", help: "Packets dropped by reason.", drops),
      .counter(
        "trunkline_media_srtp_sources_retired_total", help: "SSRCs that SRTP keeps the highest index of only.",
        retiredSources),
      .counter(
        "trunkline_media_trunk_source_takeovers_total",
        help: "RTP sources of trunks that were replaced by one closer to the trunk.",
        sourceTakeovers),
      .histogram(
        "trunkline_media_jitter_buffer_seconds", help: "Mean delay of the jitter buffer, once per call and 5 s.",
        jitterBufferDelay),
      .histogram("trunkline_media_jitter_seconds", help: "Interarrival jitter, once per call and 5 s.", jitter),
      .histogram("trunkline_media_tick_lateness_seconds", help: "How long after its due time a 20 ms tick ran.", tickLateness),
      .counter("trunkline_media_ticks_left_out_total", help: "Ticks left out because a thread was far behind.", ticksLeftOut),
      .gauge("trunkline_media_sessions", help: "Media sessions that exist now.", sessions),
      .gauge("trunkline_media_port_pairs", help: "Port pairs of media.trunk_ports in use.") { [self] in
        Int64(ports.withLock { $0?.pairs.inUse ?? 0 })
      },
      .gauge("trunkline_media_port_pairs_limit", help: "Port pairs of media.trunk_ports, over all addresses.") { [self] in
        Int64(ports.withLock { $0?.limit ?? 0 })
      },
      .gauge("trunkline_media_own_addresses", help: "Addresses of this machine that media is offered at now.", listening),
      .gauge("trunkline_media_app_addresses", help: "Remote addresses bound to app legs.", appAddresses),
      .counter(
        "trunkline_media_app_addresses_refused_total", help: "Validated addresses that found the table full.", appAddressesRefused
      ),
      .gauge("trunkline_dtls_associations", help: "DTLS associations in memory.", associations),
      .counters("trunkline_dtls_handshakes_total", help: "DTLS handshakes by result.", label: "result", handshakes),
      .histogram("trunkline_dtls_handshake_seconds", help: "First datagram to keys.", handshakeSeconds),
      .counter("trunkline_media_unknown_session_total", help: "Commands for a session that does not exist.", unknownSession),
      .counter("trunkline_media_undelivered_total", help: "Commands refused by a full mailbox.", undelivered),
      MetricFamily(
        name: "trunkline_media_thread_cpu_seconds_total", help: "CPU time of each media thread.", kind: .counter,
        labelNames: ["thread"]
      ) { [threadCPU] in threadCPU.map { MetricSample([$0.name], .number(Double($0.nanoseconds.value) / 1e9)) } },
      thread("trunkline_media_load", help: "Share of a core that a media thread uses for calls, smoothed.") {
        .number(Double($0.permille.value) / 1_000)
      },
      thread("trunkline_media_complexity_ceiling", help: "Opus complexity that no encoder of a thread exceeds.") {
        .integer($0.ceiling.value)
      },
      thread("trunkline_media_refusing", help: "1 while a media thread accepts no further calls.") {
        .integer($0.isRefusing.value)
      },
    ] + legs.families
  }

  private func thread(_ name: String, help: String, _ value: @escaping @Sendable (ThreadLoad) -> MetricSample.Value)
    -> MetricFamily
  {
    MetricFamily(name: name, help: help, kind: .gauge, labelNames: ["thread"]) { [self] in
      loads.withLock { $0 }.map { MetricSample([$0.name], value($0.load)) }
    }
  }

  private func seconds(_ name: String, help: String, _ milliseconds: LabelledCounters<Stream>) -> MetricFamily {
    MetricFamily(name: name, help: help, kind: .counter, labelNames: ["leg"]) {
      Stream.allCases.map { MetricSample([$0.rawValue], .number(Double(milliseconds[$0].value) / 1_000)) }
    }
  }

  /// Adds the growth of a session's counts since the last check.
  func add(_ now: MediaStatistics, since before: MediaStatistics) {
    func add(_ a: StreamStatistics, _ b: StreamStatistics, _ stream: Stream) {
      func grown(_ x: UInt64, _ y: UInt64) -> UInt64 { x > y ? x - y : 0 }
      let (x, y) = (a.playout, b.playout)
      lost[stream].increment(by: grown(a.lost, b.lost))
      late[stream].increment(by: grown(x.late, y.late))
      concealedMilliseconds[stream].increment(by: grown(x.concealedMilliseconds, y.concealedMilliseconds))
      repairedMilliseconds[stream].increment(by: grown(x.repairedMilliseconds, y.repairedMilliseconds))
      for (now, before) in zip(x.decisions, y.decisions) where now.count > before.count {
        playout.counter(stream.rawValue, now.name).increment(by: now.count - before.count)
      }
      guard a.packets > b.packets else { return }
      jitter.record(a.jitterMilliseconds / 1_000)
      if x.bufferDelayMilliseconds > 0 { jitterBufferDelay.record(x.bufferDelayMilliseconds / 1_000) }
    }
    legs.record(now)
    add(now.fromTrunk, before.fromTrunk, .trunk)
    add(now.fromApp, before.fromApp, .app)
  }
}

extension PlayoutStatistics {
  /// Values of the label `decision` of `trunkline_media_playout_total`.
  var decisions: [(name: String, count: UInt64)] {
    [
      ("fetched", fetched), ("missing", missing), ("left_out", leftOut), ("waits", waits), ("shrinks", shrinks), ("grows", grows),
      ("shortened_ms", removedSamplesForAcceleration / 8), ("lengthened_ms", insertedSamplesForDeceleration / 8),
      ("noise_ms", noiseSamples / 8), ("out_of_range", outOfRange), ("resynchronised", resynchronised),
      ("overflowed", overflowed),
      ("refused", refused), ("damaged", damaged),
    ]
  }
}
