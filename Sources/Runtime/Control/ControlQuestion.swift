public import AppProtocol
public import AppSessions
public import CallFlow
public import Cluster
public import Trunking

/// What others want to know of control, or have it do: a value. It is answered by a value (`ControlAnswer`), in bounded work: a question about a
/// table is answered by a page of it, and looks at `Limits.questionEntries` entries at most, also where none fits. The rest is requested from the position
/// that the page names. No code of who asks runs on the control thread: what an answer is made into is the asker's work.
public enum ControlQuestion: Sendable {
  /// Devices that fit, of users behind one; nil: from the first.
  case devices(DeviceFilter, after: String?)
  /// What pushes of a user's devices would go to.
  case pushTargets(user: String)
  /// Live calls behind one, oldest first; nil: from the first.
  case calls(after: CallNumber?)
  case call(CallID)
  /// How a call ended that devices may still come late for.
  case over(CallID)
  /// Trunks from this position on.
  case trunks(from: Int)
  case trunk(String)
  case cluster(ClusterPart)
  case operation(ControlOperation)
}

/// What a program or an operator has control do.
public enum ControlOperation: Sendable {
  case command(CallID, CallCommand)
  case originate(OriginateRequest)
  case revoke(user: String, device: String?)
  case allow(DeviceKey)
  /// Devices and grants of a user go.
  case forget(user: String)
  case setTrunk(String, isDisabled: Bool)
  /// An operator's word that a node is dead.
  case forgetNode(String)
}

/// What control answers.
public enum ControlAnswer: Sendable {
  case devices(DevicePage)
  case pushTargets([PushRow])
  case calls(CallPage)
  /// Nil: there is none.
  case call(CallRow?)
  case over(CallOver?)
  case trunks(TrunkPage)
  case trunk(TrunkStatus?)
  /// Nil: this node is alone.
  case cluster(ClusterSight?)
  case operation(OperationAnswer)
}
