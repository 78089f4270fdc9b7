public import AppSessions
public import Devices
public import TrunklineAppProtocol
public import TrunklineBytes

/// The query of a call to the cluster before it rings: the locations of its users' devices, and room under the limits.
public struct LocateQuestion: Hashable, Sendable {
  public var call: CallID
  public var users: [String]
  public var trunk: String
  /// Limits over all nodes; nil: none. The trunk's is nil, too, if this call is counted in it already.
  public var mostOfTrunk: Int?
  public var mostOfUser: Int
  /// An edge sent this INVITE and was not redirected for it: the call may be redirected to another node.
  public var mayRedirect: Bool
  /// Of the users, those with a device that has a socket here.
  public var connectedHere: Set<String>
  public init(
    _ call: CallID, users: [String], trunk: String, mostOfTrunk: Int?, mostOfUser: Int, mayRedirect: Bool = false,
    connectedHere: Set<String> = []
  ) {
    (self.call, self.users, self.trunk, self.mostOfTrunk, self.mostOfUser) = (call, users, trunk, mostOfTrunk, mostOfUser)
    (self.mayRedirect, self.connectedHere) = (mayRedirect, connectedHere)
  }
}

/// The cluster's answer to a `LocateQuestion`, or the node's own when the shared store is silent.
public enum Located: Hashable, Sendable {
  /// Rings here; devices at other nodes are woken through their sockets. `registry`: the devices of these users in the shared
  /// store, where it answered. If not `isHeard`, the shared store did not answer for one of the users, who may have unknown
  /// devices at other nodes.
  case here(remoteDevices: [RemoteDevice], registry: [String: [Device]], isHeard: Bool = true)
  /// The user has a live call there, or is connected there and not here: `sip:` URI of the node. The call is no longer entered.
  case redirect(to: String)
  /// The trunk or the user has as many calls over all nodes as the limit allows.
  case refused(Refusal.Reason)
}

/// The query of a `call.start` to the cluster: that no other node has this UUID, and room under the limits.
public struct ClaimQuestion: Hashable, Sendable {
  public var call: CallID
  public var device: DeviceKey
  /// The trunk of its first INVITE.
  public var trunk: String
  /// Over all nodes; nil: no limit.
  public var mostOfTrunk: Int?
  /// Limits of the user's live calls over all nodes: in both directions, and outgoing only.
  public var mostOfUser: Int
  public var mostOutgoing: Int?
  /// Limit of outgoing calls in 3,600 s.
  public var mostPerHour: Int?
  public init(
    _ call: CallID, device: DeviceKey, trunk: String, mostOfTrunk: Int? = nil, mostOfUser: Int, mostOutgoing: Int? = nil,
    mostPerHour: Int? = nil
  ) {
    (self.call, self.device, self.trunk, self.mostOfTrunk) = (call, device, trunk, mostOfTrunk)
    (self.mostOfUser, self.mostOutgoing, self.mostPerHour) = (mostOfUser, mostOutgoing, mostPerHour)
  }
}

/// The cluster's answer to a `ClaimQuestion`.
public enum ClaimAnswer: Hashable, Sendable {
  /// This node has the call.
  case granted
  /// Another node has this UUID: the app repeats its `call.start` there, if the node's URL is known. No second call is made, even
  /// if that node is dead.
  case atOtherNode(String, url: String?)
  /// `trunkLimit`, `userLimit` or `userRate`.
  case refused(Refusal.Reason)
}

/// How a call ended for which devices of these users were woken. The cluster keeps it for two minutes.
public struct RemoteTombstone: Hashable, Sendable {
  public var users: [String]
  /// The end for a device that had no part in the call.
  public var over: CallOver
  public init(users: [String], _ over: CallOver) { (self.users, self.over) = (users, over) }
}
