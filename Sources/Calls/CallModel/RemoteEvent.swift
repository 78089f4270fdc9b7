public import TrunklineBytes

/// What happened at another node and concerns calls here. The cluster machine reports it as it is, and the call machine handles it.
public enum RemoteEvent: Hashable, Sendable {
  /// A device of a user with live calls here has connected to another node: each call that the device may show wakes it through
  /// that node.
  case deviceConnected(RemoteDevice)
  /// Another node has closed this call of a dead node: devices here that may show it are notified.
  case callLost(CallID, user: String)
}
