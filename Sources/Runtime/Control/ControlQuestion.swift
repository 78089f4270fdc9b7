public import AppSessions
public import CallFlow
public import CallModel
public import Cluster
public import Trunking
public import TrunklineAppProtocol

/// A question or request of other threads to control: a value. It is answered by a value (`ControlAnswer`), in bounded work: a
/// question about a table is answered by a page, and reads `Limits.questionEntries` entries at most, even if none fits. The rest
/// is queried from the index that the page names. No code of the caller runs on the control thread: the caller processes the
/// answer.
public enum ControlQuestion: Sendable {
  /// Devices that fit, of users after the given one; nil: from the first.
  case devices(DeviceFilter, after: String?)
  /// The targets of pushes to a user's devices.
  case pushTargets(user: String)
  /// Live calls after the given one, oldest first; nil: from the first.
  case calls(after: CallNumber?)
  case call(CallID)
  /// How a call ended that devices may still connect for.
  case over(CallID)
  /// Trunks from this index on.
  case trunks(from: Int)
  case trunk(String)
  case cluster(ClusterPart)
  case operation(ControlOperation)
}

/// An operation that a program or an operator requests of control.
public enum ControlOperation: Sendable {
  case command(CallID, CallCommand)
  case originate(OriginateRequest)
  case revoke(user: String, device: String?)
  case allow(DeviceKey)
  /// Removes devices and grants of a user.
  case forget(user: String)
  case setTrunk(String, isDisabled: Bool)
  /// An operator's statement that a node is dead.
  case forgetNode(String)
  /// Writes the grants that the shared store has lost from this node's copy; the answer follows when they are written.
  case restoreGrants
}

/// An answer of control.
public enum ControlAnswer: Sendable {
  case devices(DevicePage)
  case pushTargets([PushRow])
  case calls(CallPage)
  /// Nil: the call does not exist.
  case call(CallRow?)
  case over(CallOver?)
  case trunks(TrunkPage)
  case trunk(TrunkStatus?)
  /// Nil: this is a single node.
  case cluster(ClusterSight?)
  case operation(OperationAnswer)
}
