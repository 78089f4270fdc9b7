import BenchKit
import CBenchNet
import MediaThreads
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineDTLS
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineRTP
import TrunklineSRTP
import TrunklineSTUN

/// Our media threads in this process: one media thread and the DTLS thread, on a separate core if there are two.
///
/// Unchecked: one thread at a time reserves; `plane` may be used from any.
final class PlaneUnderTest: @unchecked Sendable {
  let plane: MediaPlane
  private let identity: DTLSIdentity
  private var next: UInt64 = 1
  private var calls: [MediaSessionID] = []

  init(_ cores: Cores) throws {
    identity = try DTLSIdentity()
    var configuration = MediaPlaneConfiguration(
      addresses: [.init(bind: .loopback)], threads: 1, appPort: 0, trunkPorts: 20_000...31_999)
    // No call is refused and no encoder is limited, so that the cost of a call is measured.
    configuration.loadLimit = 1_000
    // A thread starts on the core of the thread that creates it.
    if let cpu = cores.measured { _ = bn_pin(0, cpu) }
    plane = try MediaPlane(configuration: configuration, identity: try DTLSIdentity()) { _ in }
    if let cpu = cores.generator { _ = bn_pin(0, cpu) }
  }

  deinit { plane.stop() }

  func endCalls() {
    for id in calls { plane.send(.close(id)) }
    calls = []
  }

  /// Connects calls, many at a time, as apps do: a check that nominates, a handshake, then the connect.
  func connect(_ pairs: [CallPair], app encoding: AudioEncoding) throws {
    let dialling = try pairs.map { try Dialling(self, $0, encoding) }
    let end = MonotonicClock.now() + .seconds(30)
    while dialling.contains(where: { !$0.isDone }) {
      for call in dialling { try call.advance() }
      guard MonotonicClock.now() < end else { throw BenchError(text: "calls were not connected within 30 s") }
      bn_pause(200_000)
    }
    for call in dialling { call.open() }
    calls += dialling.map(\.session)
  }

  /// A new call's reservation and identity.
  func reserve() throws -> (MediaSessionID, MediaReservation) {
    let id = MediaSessionID(raw: next)
    next += 1
    return (id, try plane.reserve(session: id, user: "user\(id.raw)", toward: nil))
  }

  var client: DTLSIdentity { identity }

  /// Sets the trunk leg of the call that was connected as the `index`th again, after `adjust`.
  func setTrunk(_ pair: CallPair, at index: Int, _ adjust: (inout TrunkLegParameters) -> Void) {
    var trunk = TrunkLegParameters(remote: SocketAddress(.loopback, pair.trunkPort), encoding: .pcmu, payloadType: 0)
    adjust(&trunk)
    plane.send(.setTrunk(calls[index], trunk))
  }

  // MARK: counters of the plane

  /// Datagrams of all kinds.
  var received: Int {
    count("trunkline_media_packets_total", "trunk_received") + count("trunkline_media_packets_total", "app_received")
  }

  private func family(_ name: String) -> [MetricSample] { plane.metrics.families.first { $0.name == name }?.snapshot() ?? [] }

  /// CPU seconds of a thread, as it last measured itself (every 100 ms).
  func cpuSeconds(of thread: String) -> Double {
    for sample in family("trunkline_media_thread_cpu_seconds_total") where sample.labels == [thread] {
      if case .number(let value) = sample.value { return value }
    }
    return 0
  }

  func count(_ name: String, _ label: String) -> Int {
    for sample in family(name) where sample.labels == [label] { if case .integer(let value) = sample.value { return Int(value) } }
    return 0
  }

  var tickLateness: HistogramSnapshot? {
    for sample in family("trunkline_media_tick_lateness_seconds") {
      if case .histogram(let snapshot) = sample.value { return snapshot }
    }
    return nil
  }
}

extension HistogramSnapshot {
  /// The quantile of the values recorded after `before`, interpolated in its bucket, in µs.
  func quantileMicroseconds(_ share: Double, since before: HistogramSnapshot) -> Double {
    let grown = zip(counts, before.counts).map { Double($0 &- $1) }
    let wanted = grown.reduce(0, +) * share
    var sum = 0.0
    for (index, count) in grown.enumerated() where count > 0 {
      if sum + count >= wanted {
        let low = index > 0 ? bounds[index - 1] : 0
        let high = index < bounds.count ? bounds[index] : bounds[bounds.count - 1] * 2
        return (low + (high - low) * (wanted - sum) / count) * 1e6
      }
      sum += count
    }
    return 0
  }
}
