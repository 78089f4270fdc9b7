import CallModel
import TrunklineBytes

/// How far this node has compared its state with what the shared store may lack, after a connection or a loss of data: section by
/// section, and within each by the last element that was seen. A node has 20,000 devices and remembers 100,000 users, so that a
/// step looks at some of them only. It reads nothing: the machine reads the section's next page.
///
/// | state | input | next |
/// |---|---|---|
/// | any | `begin` | calls, from the first; all sections follow |
/// | none, only unstarted | `beginUnstarted` | only unstarted, from the first |
/// | all sections | `beginUnstarted` | calls, from the first: the walk may have passed them |
/// | a section | `advance` to a position | the same section, from there |
/// | a section | `advance`, the section is over | the next section; none, and true, after the last one of all sections |
/// | none | `advance` | none |
///
/// What changes behind the walk is written by whoever changes it.
struct StateReview: Sendable {
  enum Position: Equatable, Sendable {
    case calls(after: CallID?)
    /// Calls without an entry: their locations.
    case unstarted(after: CallID?)
    case shares
    /// Removals that a failover may have lost.
    case recent(from: Int)
    case devices(after: UInt64)
    /// Registrations, if data was lost.
    case users(below: Int?)

    var isOfCalls: Bool {
      switch self {
      case .calls, .unstarted, .shares: true
      case .recent, .devices, .users: false
      }
    }
  }

  /// Where the walk goes on; nil: there is none.
  private(set) var position: Position?
  private var isWhole = false

  mutating func begin() { (position, isWhole) = (.calls(after: nil), true) }

  mutating func beginUnstarted() {
    if position != nil, isWhole { return begin() }
    (position, isWhole) = (.unstarted(after: nil), false)
  }

  /// - Parameter next: where the section goes on; nil: it is over.
  /// - Returns: whether a walk through all sections has ended.
  mutating func advance(to next: Position?) -> Bool {
    guard let position else { return false }
    self.position = next ?? (isWhole ? Self.section(after: position) : nil)
    return isWhole && self.position == nil
  }

  private static func section(after position: Position) -> Position? {
    switch position {
    case .calls: .unstarted(after: nil)
    case .unstarted: .shares
    case .shares: .recent(from: 0)
    case .recent: .devices(after: 0)
    case .devices: .users(below: nil)
    case .users: nil
    }
  }
}
