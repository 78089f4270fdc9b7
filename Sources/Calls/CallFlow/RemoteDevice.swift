public import AppProtocol
public import AppSessions

/// A device whose socket is at another node, as far as is known.
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
  /// It knows `call.wake`; another one hears of calls elsewhere by push only.
  var isWakeable: Bool { caps.contains(nodesCapability) }
}

/// `caps` of a client that has sessions at several nodes (docs/reference/protocol.md, Many nodes).
let nodesCapability = "nodes"
