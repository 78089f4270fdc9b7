public import HTTP
public import TrunklineBytes

/// One push of one call to one device: at most one attempt is ever accepted.
public struct PushKey: Hashable, Sendable {
  public var call: Identifier
  public var user: String
  public var device: String
  public init(call: Identifier, user: String, device: String) { (self.call, self.user, self.device) = (call, user, device) }
}

/// Numbers the sends of this process; an answer to one that has ended is ignored.
public struct AttemptID: Hashable, Sendable {
  public var raw: UInt64
  public init(raw: UInt64) { self.raw = raw }
}

extension PushMachine {
  public enum Input: Sendable {
    /// - Parameters:
    ///   - deadline: the end of the ring window; no attempt starts less than two seconds before it.
    ///   - since: when the INVITE arrived, if the time from there to the push service is to be measured.
    case wake(PushKey, PushTarget, CallPush, deadline: Instant, since: Instant? = nil)
    case answered(AttemptID, HTTPClientResponse)
    /// No answer: the connection broke, could not be made, or took too long.
    /// `isOfOld`: the connection had worked before, so that this proves nothing about the service.
    case broke(AttemptID, reason: String, isOfOld: Bool = false)
    /// The call is over: no retry. A push that was sent cannot be cancelled.
    case callOver(Identifier)
    /// The newest keys; open pushes keep their connection.
    case providers(PushProviders)
    case timer
  }

  public enum Action: Sendable {
    /// `since`: when the INVITE arrived, on a first attempt whose time from there is to be measured.
    case send(AttemptID, HTTPClientRequest, since: Instant? = nil)
    /// The connection's keys are no longer valid, or it is broken: it gets no further request.
    case retire(connection: String)
    case finished(PushReport)
  }
}

/// How a push ended; exactly one for each `wake`, but none for a second `wake` of a key that is under way. A key that is
/// woken again after its report is pushed again; a call wakes a device once.
public struct PushReport: Sendable, Hashable {
  public enum Outcome: Sendable, Hashable {
    case accepted
    /// The registration is to be deleted, if it is older than `before` (milliseconds since 1970).
    case unregistered(before: Int64?)
    /// No push to this registration until the app renews it.
    case tokenMismatch
    case failed
  }
  public var key: PushKey
  public var target: PushTarget
  public var outcome: Outcome
  /// The service's reason, or ours: `noProvider`, `circuitOpen`, `tooMany`, `unusable`, `callOver`, `tooLate`, `broke: …`.
  public var reason: String
  /// The configuration or the program is wrong: an operator must act.
  public var isFault: Bool
  public var attempts: Int
  /// From `wake` to this report.
  public var elapsed: Duration
  /// The service's last status, if it answered.
  public var status: Int?

  public init(
    key: PushKey, target: PushTarget, outcome: Outcome, reason: String = "", isFault: Bool = false, attempts: Int = 1,
    elapsed: Duration = .zero, status: Int? = nil
  ) {
    (self.key, self.target, self.outcome, self.reason) = (key, target, outcome, reason)
    (self.isFault, self.attempts, self.elapsed) = (isFault, attempts, elapsed)
    self.status = status
  }
}
