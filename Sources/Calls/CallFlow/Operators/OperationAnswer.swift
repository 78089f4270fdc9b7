public import CallModel
public import Devices
public import TrunklineAppProtocol
public import TrunklineBytes

/// The number of a query or an operation, which its answer carries. The caller chooses it and uses each number once.
public struct QuestionID: Hashable, Sendable {
  public let number: UInt64
  public init(_ number: UInt64) { self.number = number }
}

/// The result of an operation that a program or an operator requested.
public enum OperationAnswer: Hashable, Sendable {
  /// Done, or under way.
  case done
  case refused(Failure)
  /// The call that was made.
  case originated(CallID)
  case deviceRefused(DeviceError)
  /// How many devices and grants of a user were removed.
  case forgotten(devices: Int, grants: Int)
  /// All grants that the shared store had lost were written from this node's copy: those of so many users.
  case restored(users: Int)
  /// An earlier request is writing them; so many users' so far.
  case restoring(users: Int)
  /// The shared store did not answer or refused a write: the grants of so many users were written, and no others are.
  case restoreFailed(users: Int)
}
