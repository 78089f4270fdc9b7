import Foundation
import Synchronization
import Testing

/// What gateways and peers have counted of the calls since this value was made. Loopback loses nothing, so a missing packet was
/// lost by the gateway, or by a peer that was late. A recording alone would not show it, because concealment is made to be
/// inaudible.
struct JudgedCalls {
  /// Gateways and peers that exist; while calls are judged, they are retained until the judgement.
  private struct Known {
    var gateways: [Weak<GatewayUnderTest>] = []
    var peers: [Weak<Spawned>] = []
    var kept: [AnyObject & Sendable] = []
    var isJudging = false
  }
  private static let known = Mutex(Known())

  /// What a jitter buffer conceals without a lost packet when a stream stops: 200 ms and the rest of a packet (205 to 225
  /// measured), once for a side that left first and once for a pause.
  static let concealedMilliseconds = 450
  /// Limit from the moment at which media can flow to the app's `call.connected`, by the machine's clock.
  static let connectedMilliseconds = 100.0

  /// The number of lines that each had when this value was made.
  private var recordsBefore: [ObjectIdentifier: Int] = [:]
  private var eventsBefore: [ObjectIdentifier: Int] = [:]

  init() {
    let (gateways, peers) = Self.known.withLock { known in
      known.isJudging = true
      let alive = (known.gateways.compactMap(\.value), known.peers.compactMap(\.value))
      known.kept = alive.0 + alive.1
      return alive
    }
    for gateway in gateways { recordsBefore[ObjectIdentifier(gateway)] = gateway.records.count }
    for peer in peers { eventsBefore[ObjectIdentifier(peer)] = peer.events.count }
  }

  static func add(_ gateway: GatewayUnderTest) {
    known.withLock { known in
      known.gateways = known.gateways.filter { $0.value != nil } + [Weak(gateway)]
      if known.isJudging { known.kept.append(gateway) }
    }
  }
  static func add(_ peer: Spawned) {
    known.withLock { known in
      known.peers = known.peers.filter { $0.value != nil } + [Weak(peer)]
      if known.isJudging { known.kept.append(peer) }
    }
  }

  /// The number of connected calls, and a line for each wrong count. `delay`: what the test adds between gateway and app.
  func judge(delay: Duration) -> (calls: Int, faults: [String]) {
    let kept = Self.known.withLock { known in
      defer { (known.kept, known.isJudging) = ([], false) }
      return known.kept
    }
    let records = kept.compactMap { $0 as? GatewayUnderTest }.flatMap {
      $0.records.dropFirst(recordsBefore[ObjectIdentifier($0)] ?? 0)
    }
    .filter { ($0["times"] as? [String: Int])?["connected"] != nil }
    var faults = records.flatMap(Self.lost)
    for peer in kept.compactMap({ $0 as? Spawned }) {
      for event in peer.events.dropFirst(eventsBefore[ObjectIdentifier(peer)] ?? 0) {
        faults += Self.lost(event, by: peer.name)
        faults += Self.late(event, records, by: peer.name, delay)
      }
    }
    return (records.count, faults)
  }

  /// Faults of one record: packets lost, and audio made up.
  private static func lost(_ record: [String: Any]) -> [String] {
    ["fromTrunk", "fromApp"].compactMap { side in
      guard let stream = record[side] as? [String: Any], let lost = stream["lost"] as? Int,
        let concealed = stream["concealedMs"] as? Int, lost > 0 || concealed > concealedMilliseconds
      else { return nil }
      return "\(side) of \(record["call"] ?? ""): \(lost) packets lost, \(concealed) ms made up, of \(stream["packets"] ?? "")"
    }
  }

  /// Faults of one event of a peer: aiortc and the carrier report numbers, `trunkline-lab` text.
  private static func lost(_ event: [String: Any], by peer: String) -> [String] {
    let fields = event["fields"] as? [String: String]
    let lost = event["lost"] as? Int ?? fields?["lost"].flatMap { Int($0) } ?? 0
    return lost > 0 ? ["\(peer): \(lost) packets lost on the way from the gateway"] : []
  }

  /// The fault of a `call.connected`, at aiortc or our own phone, that came too long after its call's media could flow.
  private static func late(_ event: [String: Any], _ records: [[String: Any]], by peer: String, _ delay: Duration) -> [String] {
    guard let came = event["receivedAt"] as? Double ?? (event["event"] as? String == "connected" ? event["at"] as? Double : nil)
    else { return [] }
    let possible = records.compactMap { record -> Double? in
      guard let times = record["times"] as? [String: Int],
        event["call"] == nil || event["call"] as? String == record["call"] as? String
      else { return nil }
      return ["connected", "gateOpen", "ice", "dtls", "mediaReady"].compactMap { times[$0] }.max().map(Double.init)
    }
    guard let waited = possible.map({ came - $0 }).min(by: { abs($0) < abs($1) }) else { return [] }
    let most = connectedMilliseconds + delay / .milliseconds(1)
    return waited > most ? ["\(peer): call.connected came \(Int(waited)) ms after media could flow"] : []
  }
}

private struct Weak<Object: AnyObject & Sendable>: Sendable {
  private final class Box: @unchecked Sendable {  // a weak reference is read whole
    weak var value: Object?
    init(_ value: Object) { self.value = value }
  }
  private let box: Box
  init(_ value: Object) { box = Box(value) }
  var value: Object? { box.value }
}
