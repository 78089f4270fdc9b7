public import AppProtocol
public import Bytes
public import Devices

/// Whose question or operation it is: the number under which the answer comes back. Chosen by who asks, each once.
public struct QuestionID: Hashable, Sendable {
  public let number: UInt64
  public init(_ number: UInt64) { self.number = number }
}

/// What became of an operation that a program or an operator wanted.
public enum OperationAnswer: Hashable, Sendable {
  /// Done, or under way.
  case done
  case refused(Failure)
  /// The call that was made.
  case originated(CallID)
  case deviceRefused(DeviceError)
  /// How many devices and grants of a user there were.
  case forgotten(devices: Int, grants: Int)
}
