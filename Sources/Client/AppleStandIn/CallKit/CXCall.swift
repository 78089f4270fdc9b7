public import Foundation

/// A call as an observer sees it: the state at one moment, as CallKit's are.
open class CXCall: NSObject, @unchecked Sendable {  // immutable
  public let uuid: UUID
  public let isOutgoing: Bool
  public let isOnHold: Bool
  public let hasConnected: Bool
  public let hasEnded: Bool

  init(_ facts: CallFacts) {
    (uuid, isOutgoing, isOnHold) = (UUID(facts.call), facts.isOutgoing, facts.isOnHold)
    (hasConnected, hasEnded) = (facts.hasConnected, facts.hasEnded)
  }

  public func isEqual(to call: CXCall) -> Bool { call.uuid == uuid }
}
