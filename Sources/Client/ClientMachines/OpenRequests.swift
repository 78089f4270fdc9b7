import TrunklineAppProtocol
import TrunklineBytes

/// Requests of the phone to its gateways that have no answer yet, each with its purpose. The number is limited by the sessions,
/// which refuse further requests (`Limits.openRequests`).
///
/// | event | effect |
/// |---|---|
/// | `answered` | its purpose, once; nil: no request of this table, or no longer |
/// | `mediaAnswered` | the request of a call's machine is closed; another request stays open |
/// | `callEnded` | its holds and groups: their system actions, which fail; answers to its other requests are still received |
/// | `timedOut` | the purposes of the system's action, which the system has given up |
/// | `systemReset` | no system action is completed |
/// | `sessionEnded` | requests and probes of calls that the session had, or that are unknown, are not answered any more |
/// | `ownSessionEnded` | the numbers of the reads, which fail |
struct OpenRequests: Sendable {
  enum Purpose: Sendable {
    /// A request of a call's own machine, or of the test call's.
    case message(of: Identifier, ClientCall.RequestTag)
    /// The answer shows that no further message about a pushed call follows.
    case probe(Identifier)
    case hold(Identifier, isOn: Bool, SystemActionID)
    /// `with`: nil: the call leaves its group.
    case group(Identifier, with: Identifier?, SystemActionID)
    /// A request of the app that only reads, by its number.
    case read(Int)

    fileprivate var action: SystemActionID? {
      switch self {
      case .hold(_, _, let action), .group(_, _, let action): action
      case .message, .probe, .read: nil
      }
    }
    fileprivate var call: Identifier? {
      switch self {
      case .message(let call, _), .probe(let call), .hold(let call, _, _), .group(let call, _, _): call
      case .read: nil
      }
    }
  }

  private var purposes: [Identifier: Purpose] = [:]

  mutating func add(_ question: Identifier, _ purpose: Purpose) { purposes[question] = purpose }

  mutating func answered(_ question: Identifier) -> Purpose? { purposes.removeValue(forKey: question) }

  mutating func mediaAnswered(_ question: Identifier) {
    if case .message = purposes[question] { purposes[question] = nil }
  }

  func isOpen(_ tag: ClientCall.RequestTag, of call: Identifier) -> Bool {
    purposes.values.contains { if case .message(let its, let kind) = $0 { its == call && kind == tag } else { false } }
  }

  // MARK: the system's actions

  mutating func callEnded(_ call: Identifier) -> [SystemActionID] {
    removeActions { $0.call == call }.compactMap(\.action)
  }

  mutating func timedOut(_ action: SystemActionID) -> [Purpose] { removeActions { $0.action == action } }

  mutating func systemReset() { _ = removeActions { _ in true } }

  /// In the order of the actions: the same events cause the same actions.
  private mutating func removeActions(where isRemoved: (Purpose) -> Bool) -> [Purpose] {
    let removed = purposes.filter { $0.value.action != nil && isRemoved($0.value) }
    for question in removed.keys { purposes[question] = nil }
    return removed.values.sorted { $0.action?.raw ?? 0 < $1.action?.raw ?? 0 }
  }

  // MARK: the end of a session

  /// - Parameter keeps: true for a call that another session has.
  mutating func sessionEnded(keeps: (Identifier) -> Bool) {
    purposes = purposes.filter { _, purpose in
      switch purpose {
      case .message(let call, _), .probe(let call): keeps(call)
      case .hold, .group, .read: true
      }
    }
  }

  mutating func ownSessionEnded() -> [Int] {
    var reads: [Int] = []
    for (question, purpose) in purposes {
      guard case .read(let number) = purpose else { continue }
      purposes[question] = nil
      reads.append(number)
    }
    return reads.sorted()
  }
}
