import CallFlow
import CallModel
import Synchronization
import TrunklineAppProtocol
import TrunklinePlatform

/// The outcomes of calls for the status page, from their records: counts of the last hour by minute, and the last calls that
/// ended.
final class RecentCalls: Sendable {
  /// Counts of one minute, or of the hour.
  struct Counts: Encodable, Equatable {
    var incoming = 0
    var outgoing = 0
    var incomingConnected = 0
    var outgoingConnected = 0
    /// By end reason, or `connected` if the call was answered.
    var reasons: [String: Int] = [:]

    mutating func add(_ other: Counts) {
      incoming += other.incoming
      outgoing += other.outgoing
      incomingConnected += other.incomingConnected
      outgoingConnected += other.outgoingConnected
      reasons.merge(other.reasons, uniquingKeysWith: +)
    }
  }
  struct Hour: Encodable, Equatable {
    var total = Counts()
    /// Calls that ended in each of the last 60 minutes, the oldest first.
    var minutes: [Int] = []
  }

  /// A call that has ended.
  struct Ended: Encodable, Equatable {
    var call: CallID
    var sipCallId: String?
    var direction: CallDirection
    var trunk: String
    var from: String
    var to: String
    var user: String?
    var device: String?
    /// Milliseconds since 1970; nil: the record has none.
    var start: Int64?
    var end: Int64
    /// 0: the call was not answered.
    var connectedMs: Int64
    var reason: EndReason
    var by: CallSide
    var sip: Int?
    var detail: String?
    var fromTrunk: CallHeard?
    var fromApp: CallHeard?

    init(_ record: CallRecord, now: Int64) {
      (call, sipCallId, direction, trunk) = (record.call, record.sipCallId, record.direction, record.trunk)
      (from, to, user, device) = (record.from, record.to, record.user, record.device)
      (start, end, connectedMs) = (record.times[CallStage.start.rawValue], now, record.connectedMs)
      (reason, by, sip, detail) = (record.end.reason, record.end.by, record.end.sip, record.end.detail)
      (fromTrunk, fromApp) = (CallHeard(record.fromTrunk), CallHeard(record.fromApp))
    }
  }

  private static let minutes = 60
  /// How many ended calls are shown.
  static let kept = 50
  /// By minutes since 1970; at most 61 minutes.
  private let buckets = Mutex<[Int64: Counts]>([:])
  /// The last `kept`, the oldest first.
  private let last = Mutex<[Ended]>([])

  /// Any thread; once per call. `now`: milliseconds since 1970. Test calls belong to no user: they are neither shown nor counted.
  func note(_ record: CallRecord, now: Int64 = WallClock.nowMilliseconds()) {
    guard !record.isTest else { return }
    last.withLock { last in
      if last.count >= Self.kept { last.removeFirst() }
      last.append(Ended(record, now: now))
    }
    let minute = now / 60_000
    buckets.withLock { buckets in
      var counts = buckets[minute] ?? Counts()
      let isConnected = record.connectedMs > 0
      if record.direction == .incoming {
        counts.incoming += 1
        counts.incomingConnected += isConnected ? 1 : 0
      } else {
        counts.outgoing += 1
        counts.outgoingConnected += isConnected ? 1 : 0
      }
      counts.reasons[isConnected ? "connected" : record.end.reason.rawValue, default: 0] += 1
      buckets[minute] = counts
      buckets = buckets.filter { $0.key > minute - Int64(Self.minutes) }
    }
  }

  /// The newest first.
  var ended: [Ended] { last.withLock { $0.reversed() } }

  func hour(now: Int64 = WallClock.nowMilliseconds()) -> Hour {
    let minute = now / 60_000
    return buckets.withLock { buckets in
      var out = Hour()
      for at in (minute - Int64(Self.minutes) + 1)...minute {
        let counts = buckets[at]
        out.minutes.append(counts.map { $0.incoming + $0.outgoing } ?? 0)
        if let counts { out.total.add(counts) }
      }
      return out
    }
  }
}
