import TrunklineAppProtocol
import TrunklineBytes

/// A call on the system's call screen, and the system's action that the call has yet to complete.
///
/// | state | `report` | `confirmed` | `refused` | `dialled` | `end` | `remove` | `forget` |
/// |---|---|---|---|---|---|---|---|
/// | unreported | → reporting | – | – | – | same | → gone | same |
/// | reporting | – | → shown | → refused | → shown | same | → gone | same |
/// | reporting, ended | – | → gone, with the reason of the end | → refused | → shown | – | → gone | same |
/// | shown | – | – | – | – | → gone, with the reason | → gone | → gone |
/// | refused, gone | – | – | – | – | same | → gone | same |
///
/// | action | `begin` | `complete` | `dropped` | `timedOut` |
/// |---|---|---|---|---|
/// | none | open | none | – | false |
/// | open | the newer one is open | once, → none | → none, not completed | for this action: true, → none, gone |
struct CallScreen: Sendable {
  enum State: Sendable {
    /// A push that need not be reported, before the gateway has confirmed that the call exists.
    case unreported
    case reporting, shown, refused, gone
  }

  private(set) var state: State
  private(set) var reportedAt: Instant?
  private var action: SystemActionID?
  /// The reason to report when the open report is answered.
  private var ending: CallEndedReason?
  private var isConnecting = false

  init(_ state: State) { self.state = state }

  /// The system was notified of the call.
  var isReported: Bool { state != .unreported }

  /// True: the call is reported now.
  mutating func report() -> Bool {
    guard state == .unreported else { return false }
    state = .reporting
    return true
  }

  /// The system shows the call.
  /// - Returns: the reason, if the call has ended meanwhile: it is removed again.
  mutating func confirmed(at now: Instant) -> CallEndedReason? {
    guard state == .reporting else { return nil }
    state = ending == nil ? .shown : .gone
    reportedAt = now
    return ending
  }

  /// The system does not show the call.
  mutating func refused() { if state == .reporting { state = .refused } }

  /// The system performs the start of an outgoing call. False: it has begun already.
  mutating func dialled(_ action: SystemActionID) -> Bool {
    guard state == .reporting else { return false }
    (state, self.action) = (.shown, action)
    return true
  }

  /// The call has been reported as connecting by now. True: for the first time.
  mutating func connects() -> Bool {
    defer { isConnecting = true }
    return !isConnecting
  }

  // MARK: the end

  /// The call has ended. True: the screen is notified.
  mutating func end(_ reason: CallEndedReason) -> Bool {
    ending = reason
    guard state == .shown else { return false }
    state = .gone
    return true
  }

  /// The system has removed the call, or never gets it.
  mutating func remove() { state = .gone }

  /// The call ends without notice to the screen. An open report is still answered, and the call then removed.
  mutating func forget() { if state == .shown { state = .gone } }

  // MARK: the action

  mutating func begin(_ action: SystemActionID) { self.action = action }

  /// The action to complete.
  mutating func complete() -> SystemActionID? {
    defer { action = nil }
    return action
  }

  /// The system has dropped its actions.
  mutating func dropped() { action = nil }

  /// True: the system has ended the call by itself, so that neither completion nor report follows.
  mutating func timedOut(_ given: SystemActionID) -> Bool {
    guard action == given else { return false }
    action = nil
    state = .gone
    return true
  }
}
