public import TrunklineSIP

/// Counts of a user agent since it was made. Counters only grow; the gauges are the present sizes of its tables.
public struct Statistics: Sendable {
  public struct Response: Hashable, Sendable {
    public let method: Method
    public let code: Int
    public let trunk: String
  }

  public internal(set) var requestsReceived: [Method: UInt64] = [:]
  public internal(set) var requestsSent: [Method: UInt64] = [:]
  /// By the method of CSeq, the status code and the trunk.
  public internal(set) var responsesReceived: [Response: UInt64] = [:]
  public internal(set) var responsesSent: [Response: UInt64] = [:]
  /// Requests received again that a transaction absorbed.
  public internal(set) var retransmissionsReceived: UInt64 = 0
  /// Requests and responses that we sent again.
  public internal(set) var retransmissionsSent: UInt64 = 0
  /// As in `Event.refused`.
  public internal(set) var refused: [RefusalReason: UInt64] = [:]
  /// Messages that were dropped without an answer.
  public internal(set) var dropped: [DropReason: UInt64] = [:]
  /// Requests inside a dialog without an answer.
  public internal(set) var unanswered: [Method: UInt64] = [:]
  /// 401s and 407s left unanswered because of their realm.
  public internal(set) var foreignChallenges: UInt64 = 0
  /// Requests that name a trunk and do not come from an edge: the name was ignored.
  public internal(set) var foreignTrunkNames: UInt64 = 0
  /// Legs of a dead process, by their phase.
  public internal(set) var orphansClosed: [OrphanedLeg.Phase: UInt64] = [:]
  /// Gauges.
  public internal(set) var serverTransactions = 0
  public internal(set) var clientTransactions = 0
  public internal(set) var legs = 0

  public init() {}

  /// Why a message was dropped without an answer; the raw value is the metric label.
  public enum DropReason: String, Sendable, CaseIterable {
    /// No start line, no end, or no Via to answer to.
    case unreadable
    /// A response that no client transaction waits for, or from another trunk than the request went to.
    case strayResponse
    /// An ACK that belongs to no INVITE of ours.
    case strayAcknowledgement
    /// A request without credentials from a source that has used up its share of challenges.
    case challengeLimit
    /// A malformed response.
    case malformedResponse
  }

  mutating func sent(_ method: Method, _ code: Int, trunk: String) {
    responsesSent[Response(method: method, code: code, trunk: trunk), default: 0] += 1
  }
  mutating func received(_ method: Method, _ code: Int, trunk: String) {
    responsesReceived[Response(method: method, code: code, trunk: trunk), default: 0] += 1
  }
  mutating func drop(_ reason: DropReason) { dropped[reason, default: 0] += 1 }
}
