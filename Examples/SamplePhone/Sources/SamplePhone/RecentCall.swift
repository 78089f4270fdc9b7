public import Foundation
import TrunklineCallKit

/// A call that is over.
public struct RecentCall: Codable, Hashable, Sendable, Identifiable {
  public var id: UUID
  /// The name, else the number.
  public var title: String
  public var number: String
  public var isOutgoing: Bool
  public var startedAt: Date
  /// Nil: never connected.
  public var seconds: Int?
  /// "ended", "busy", "answered on another device".
  public var reason: String
  /// In red: it rang here, and nobody took it anywhere.
  public var isMissed: Bool

  @MainActor init(_ call: Call) {
    (id, title, number) = (call.id, call.peer.description, call.peer.handle.h)
    (isOutgoing, startedAt) = (call.direction == .outgoing, call.startedAt)
    seconds = call.connectedAt.map { max(0, Int((call.endedAt ?? Date()).timeIntervalSince($0))) }
    reason = call.endReason?.text ?? ""
    isMissed = !isOutgoing && [.callerCancelled, .unanswered].contains(call.endReason)
  }
}
