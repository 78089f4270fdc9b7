import CallFlow
import Platform
import Synchronization

/// How calls came out in the last hour, for the status page: counts by minute, from their records.
final class RecentCalls: Sendable {
  /// Counts of one minute, or of the hour.
  struct Counts: Encodable, Equatable {
    var incoming = 0
    var outgoing = 0
    var incomingConnected = 0
    var outgoingConnected = 0
    /// By the reason of their end, or `connected` if somebody spoke.
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

  private static let minutes = 60
  /// By minutes since 1970, at most an hour's and one more.
  private let buckets = Mutex<[Int64: Counts]>([:])

  /// Any thread; once a call. `now`: milliseconds since 1970.
  func note(_ record: CallRecord, now: Int64 = WallClock.nowMilliseconds()) {
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
