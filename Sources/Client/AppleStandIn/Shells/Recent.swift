public import Foundation
public import TrunklineBytes

/// An entry of Recents.
public struct Recent: Sendable, Equatable {
  public enum Direction: String, Sendable { case incoming, outgoing }
  public enum Outcome: String, Sendable { case answered, missed, declined, answeredElsewhere, cancelled, failed }

  public var call: Identifier
  public var direction: Direction
  public var caller: SystemMachine.Caller
  public var outcome: Outcome
  /// Seconds between the dates that the app gave, or the phone's where it gave none; 0 for a call that was not answered.
  public var duration: TimeInterval

  init(_ id: Identifier, _ call: SystemMachine.Call, isDeclined: Bool, dates: (connected: Date?, ended: Date)) {
    (self.call, caller, direction) = (id, call.caller, call.isOutgoing ? .outgoing : .incoming)
    duration = dates.connected.map { max(0, dates.ended.timeIntervalSince($0)) } ?? 0
    if dates.connected != nil {
      outcome = .answered
    } else if call.ended == .answeredElsewhere {
      outcome = .answeredElsewhere
    } else if isDeclined || call.ended == .declinedElsewhere {
      outcome = call.isOutgoing ? .cancelled : .declined
    } else if call.ended == .failed {
      outcome = .failed
    } else {
      outcome = call.isOutgoing ? .cancelled : .missed
    }
  }
}
