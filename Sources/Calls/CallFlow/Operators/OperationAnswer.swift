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
  /// The number of users whose grants are being written to the shared store.
  case restoring(users: Int)
}
