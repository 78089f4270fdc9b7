public import AppSessions
public import TrunklineAppProtocol

/// A device whose socket is at another node, as far as this node knows.
public struct RemoteDevice: Hashable, Sendable {
  public var key: DeviceKey
  public var node: String
  public var state: AppState
  public var caps: Set<String>
  public var accounts: [String]
  public init(_ key: DeviceKey, at node: String, state: AppState = .fg, caps: Set<String> = [], accounts: [String] = ["default"])
  {
    (self.key, self.node, self.state, self.caps, self.accounts) = (key, node, state, caps, accounts)
  }
}

extension RemoteDevice {
  /// It supports `call.wake`; other devices are notified of calls at other nodes by push only.
  package var isWakeable: Bool { caps.contains(nodesCapability) }
}

/// `caps` of a client that has sessions at several nodes (docs/reference/protocol.md, Many nodes).
package let nodesCapability = "nodes"
