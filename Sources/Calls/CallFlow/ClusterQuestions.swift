public import AppProtocol
public import AppSessions
public import Bytes
public import Devices

/// What a call asks of the cluster before it rings: where its users' devices are, and whether there is room for it.
public struct LocateQuestion: Hashable, Sendable {
  public var call: CallID
  public var users: [String]
  public var trunk: String
  /// Over all nodes; nil: no limit. The trunk's is nil, too, if this call is counted in it already.
  public var mostOfTrunk: Int?
  public var mostOfUser: Int
  /// An edge sent this INVITE, and has not been redirected for it: it may be steered to another node.
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
  /// Rings here: devices elsewhere are woken through their sockets. `registry`: the devices of these users as the shared store has them, where
  /// it was heard. Not `isHeard`: the shared store was silent on one of them, so there may be devices elsewhere that are not known.
  case here(remoteDevices: [RemoteDevice], registry: [String: [Device]], isHeard: Bool = true)
  /// The user has a live call there, or is connected there and not here: `sip:` URI of the node. The call is not entered any longer.
  case redirect(to: String)
  /// All nodes together have as many calls of the trunk, or of the user, as may be.
  case refused(Refusal.Reason)
}

/// What a `call.start` asks of the cluster: that no other node has this UUID, and whether there is room.
public struct ClaimQuestion: Hashable, Sendable {
  public var call: CallID
  public var device: DeviceKey
  /// Where its first INVITE goes.
  public var trunk: String
  /// Over all nodes; nil: no limit.
  public var mostOfTrunk: Int?
  /// Live calls of the user over all nodes, both ways; and of those the outgoing ones.
  public var mostOfUser: Int
  public var mostOutgoing: Int?
  /// In 3,600 s.
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
  /// The call is this node's.
  case granted
  /// Another node has this UUID: the app repeats its `call.start` there, if that is known. No second call is made, even if that node is dead.
  case atOtherNode(String, url: String?)
  /// `trunkLimit`, `userLimit` or `userRate`.
  case refused(Refusal.Reason)
}

/// How a call ended that devices of these users were woken for: what the cluster keeps of it for two minutes.
public struct RemoteTombstone: Hashable, Sendable {
  public var users: [String]
  /// What a device hears that had no part in the call.
  public var over: CallOver
  public init(users: [String], _ over: CallOver) { (self.users, self.over) = (users, over) }
}
