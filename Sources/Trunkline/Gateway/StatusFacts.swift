import CallFlow
import CallModel
import CommandSupport
import Synchronization
import Trunking
import TrunklineAppProtocol
import TrunklineBytes
import TrunklinePlatform

/// The quality of one side of a call on the status page, from the stream in its record.
struct CallHeard: Encodable, Sendable, Equatable {
  var mos: Double?
  var loss: Double
  /// Nil: nothing was received yet.
  init?(_ stream: CallRecord.Stream?) {
    guard let stream, stream.packets > 0 else { return nil }
    (mos, loss) = (stream.mos, stream.loss)
  }
}

/// One live call of the status page: the fields that show its health and identify it. `/v1/calls/{call}` has all of them.
struct StatusCall: Encodable, Sendable {
  /// The audio quality: the worse of both directions.
  enum Quality: String, Encodable, Sendable, CaseIterable { case poor, fair, good, unknown }

  var call: CallID
  var sipCallId: String?
  var direction: CallDirection
  var state: CallState
  var trunk: String
  var from: String
  var to: String
  var user: String
  /// Milliseconds since 1970; `connected` is nil until the answer.
  var start: Int64
  var connected: Int64?
  var held: Bool
  var quality: Quality
  /// The side from which nothing is received, as in `/v1/calls`.
  var silent: CallSide?
  var fromTrunk: CallHeard?
  var fromApp: CallHeard?

  /// MOS below which users are "nearly all dissatisfied" and "some dissatisfied" (ITU-T G.107 Annex B: R of 60 and 80).
  static let poorScore = 3.1
  static let fairScore = 4.0
  static let poorLoss = 0.05

  init(_ summary: CallSummary) {
    (call, sipCallId, direction, state) = (summary.call, summary.sipCallId, summary.direction, summary.state)
    (trunk, from, to, user) = (summary.trunk, summary.from, summary.to, summary.user)
    start = summary.times[CallStage.start.rawValue] ?? 0
    connected = summary.times[CallStage.connected.rawValue]
    held = summary.held || summary.heldByTrunk
    (fromTrunk, fromApp) = (CallHeard(summary.fromTrunk), CallHeard(summary.fromApp))
    silent = summary.silent
    quality = silent == nil ? Self.quality([fromTrunk, fromApp].compactMap(\.self)) : .poor
  }

  static func quality(_ heard: [CallHeard]) -> Quality {
    guard !heard.isEmpty else { return .unknown }
    let worst = heard.compactMap(\.mos).min()
    if heard.contains(where: { $0.loss >= poorLoss }) || (worst ?? 5) < poorScore { return .poor }
    guard let worst else { return .unknown }
    return worst < fairScore ? .fair : .good
  }

  /// The worse quality first, then the older call. By the quality and not by the score, so that rows do not move all the time.
  func isBefore(_ other: StatusCall) -> Bool {
    let order = Quality.allCases
    guard quality == other.quality else { return order.firstIndex(of: quality)! < order.firstIndex(of: other.quality)! }
    return (start, call.high, call.low) < (other.start, other.call.high, other.call.low)
  }

  func contains(_ text: FoundText) -> Bool {
    text.isIn(from) || text.isIn(to) || text.isIn(user) || text.isIn(trunk) || text.isIn(call.description)
      || sipCallId.map { text.isIn($0) } ?? false
  }
}

/// The text of `find`: octets, without regard to the case of ASCII letters.
struct FoundText {
  private let wanted: [UInt8]
  init(_ text: String) { wanted = text.utf8.map(Self.lower) }

  private static func lower(_ octet: UInt8) -> UInt8 { (65...90).contains(octet) ? octet | 32 : octet }

  func isIn(_ text: String) -> Bool {
    var text = text
    return text.withUTF8 { octets in
      guard octets.count >= wanted.count else { return false }
      return (0...(octets.count - wanted.count)).contains { at in
        wanted.indices.allSatisfy { Self.lower(octets[at + $0]) == wanted[$0] }
      }
    }
  }
}

/// The answer of `/v1/status`.
struct Status: Encodable {
  struct Component: Encodable {
    var name: String
    var ready: Bool
    var reason: String?
    var note: String?
  }
  struct Trunk: Encodable {
    var status: TrunkStatus
    /// Since when it is up, or down for this reason: milliseconds since 1970.
    var since: Int64
    private enum Key: CodingKey { case since }
    func encode(to encoder: any Encoder) throws {
      try status.encode(to: encoder)
      var own = encoder.container(keyedBy: Key.self)
      try own.encode(since, forKey: .since)
    }
  }
  struct Trunks: Encodable {
    var count: Int
    var down: Int
    var rows: [Trunk]
  }
  struct Calls: Encodable {
    var count: Int
    var found: Int
    var poor: Int
    /// When they were read; nil: never yet.
    var at: Int64?
    var complete: Bool
    var rows: [StatusCall]
  }
  var version: String
  var node: String
  /// Differs for each process, so that two processes behind one address are distinguished.
  var instance: String
  var started: Int64
  var now: Int64
  var ready: Bool
  var components: [Component]
  var trunks: Trunks
  var calls: Calls
  var ended: [RecentCalls.Ended]
  var hour: RecentCalls.Hour
}

/// The data of the status page except live calls, from components that hold it already: no thread is queried. Any thread.
final class StatusFacts: Sendable {
  private struct Since {
    var why: TrunkStatus.Trouble?
    var at: Instant
  }
  private struct Trunks {
    var all: [TrunkStatus] = []
    var since: [String: Since] = [:]
  }

  private let node: String
  private let instance = String(UInt64.random(in: .min ... .max), radix: 36)
  private let readiness: Readiness
  private let hung: @Sendable () -> [ThreadWatch.Hung]
  private let recent: RecentCalls
  private let started = MonotonicClock.now()
  private let trunks = Mutex(Trunks())

  init(node: String, readiness: Readiness, recent: RecentCalls, hung: @escaping @Sendable () -> [ThreadWatch.Hung]) {
    (self.node, self.readiness, self.recent, self.hung) = (node, readiness, recent, hung)
  }

  /// Called on control's thread, once a second, with all trunks.
  func note(_ statuses: [TrunkStatus], now: Instant = MonotonicClock.now()) {
    trunks.withLock { trunks in
      let before = trunks.since
      trunks.since = [:]
      for status in statuses {
        let known = before[status.trunk]
        trunks.since[status.trunk] = known.flatMap { $0.why == status.why ? $0 : nil } ?? Since(why: status.why, at: now)
      }
      trunks.all = statuses
    }
  }

  /// - Parameters:
  ///   - calls: in display order.
  ///   - at: when they were read.
  func status(_ calls: [StatusCall], at: Instant?, isComplete: Bool, find: String?) -> Status {
    let (now, wall) = (MonotonicClock.now(), WallClock.nowMilliseconds())
    func time(_ instant: Instant) -> Int64 { wall - (now - instant).nanoseconds / 1_000_000 }
    let text = find.map { FoundText($0) }
    let components = self.components
    let found = text.map { text in calls.filter { $0.contains(text) } } ?? calls
    let ended = recent.ended.filter { call in
      guard let text else { return true }
      return [call.from, call.to, call.user ?? "", call.trunk, call.call.description, call.sipCallId ?? ""].contains {
        text.isIn($0)
      }
    }
    return Status(
      version: Version.number, node: node, instance: instance, started: time(started), now: wall,
      ready: !components.isEmpty && components.allSatisfy(\.ready), components: components,
      trunks: trunkRows(text, time),
      calls: .init(
        count: calls.count, found: found.count, poor: calls.count { $0.quality == .poor }, at: at.map(time),
        complete: isComplete, rows: Array(found.prefix(StatusLimits.rows))),
      ended: ended, hour: recent.hour(now: wall))
  }

  private var components: [Status.Component] {
    readiness.report.map { .init(name: $0.component, ready: $0.reason == nil, reason: $0.reason, note: $0.note) }
      + hung().map { thread in
        .init(
          name: "thread \(thread.thread)", ready: false,
          reason: "has been in one step for \(thread.age.nanoseconds / 1_000_000) ms")
      }
  }

  /// Trunks that are down first, so that none of them is among the omitted rows.
  private func trunkRows(_ text: FoundText?, _ time: (Instant) -> Int64) -> Status.Trunks {
    let (all, since) = trunks.withLock { ($0.all, $0.since) }
    let found = all.filter { text?.isIn($0.trunk) ?? true }
    let rows = (found.filter { !$0.up } + found.filter(\.up)).prefix(StatusLimits.rows)
    return .init(
      count: all.count, down: all.count { !$0.up },
      rows: rows.map { .init(status: $0, since: time(since[$0.trunk]?.at ?? started)) })
  }
}
