public import TrunklineBytes

/// The state of a call as an observer gets it.
public struct CallFacts: Codable, Sendable, Equatable {
  public var call: Identifier
  public var isOutgoing = false
  public var isOnHold = false
  public var hasConnected = false
  public var hasEnded = false

  init(_ id: Identifier, _ call: SystemMachine.Call) {
    (self.call, isOutgoing, isOnHold) = (id, call.isOutgoing, call.isHeld)
    (hasConnected, hasEnded) = (call.phase == .active, call.phase == .ended)
  }
}
