public import AppSessions
public import CallModel
public import TrunklineAppProtocol
public import TrunklineBytes

/// One run of a node: its name, which stays, and the start time of its process. A node's statements in the shared store count
/// while the lease of its incarnation is valid.
public struct Incarnation: Hashable, Sendable, Comparable, CustomStringConvertible {
  public var node: String
  /// Milliseconds since 1970 at the start, by the node's own clock: it distinguishes two runs of one name, and orders nothing
  /// else.
  public var started: Int64
  public init(node: String, started: Int64) { (self.node, self.started) = (node, started) }

  /// `n1.1790000000000`: the form in keys and values.
  public var description: String { "\(node).\(started)" }

  /// Nil: the text is not an incarnation. A name may contain points.
  public init?(_ text: String) {
    guard text.utf8.count <= Limits.incarnationBytes, let point = text.lastIndex(of: "."), point != text.startIndex,
      let started = Int64(text[text.index(after: point)...])
    else { return nil }
    self.init(node: String(text[..<point]), started: started)
  }

  public static func < (a: Incarnation, b: Incarnation) -> Bool {
    (a.node, a.started) < (b.node, b.started)
  }
}

/// A living node's published state; renewed every 2 s, expires 6 s after the last renewal.
public struct NodeLease: Hashable, Sendable {
  public var incarnation: Incarnation
  /// Where a device reaches this very node: `wss://…/v1/connect`.
  public var url: String
  /// Where an edge, or a reaper's OPTIONS, reaches its SIP: `sip:10.0.0.5:5060;transport=tcp`.
  public var sip: String
  /// The address of its admin API: `http://10.0.0.5:7060`; nil: not published.
  public var admin: String?
  public var isDraining = false
  /// The node refuses new calls for overload.
  public var refuses = false
  public var calls = 0
  public var sessions = 0
  /// The program's version, for people.
  public var version: String
  /// The format of messages and values that the node writes, and the formats that it reads.
  public var format: Int
  public var reads: ClosedRange<Int>
  /// A hash of the parts of the configuration that nodes must share; a difference is shown.
  public var configuration: String
  /// Trunks that this node leads and that do not work, with the reason (`TrunkStatus.Trouble`).
  public var troubles: [String: String] = [:]
  /// A digest of the users whose grants the node serves from its copy, because the shared store has lost them; 0: none. Nodes with
  /// another digest do not have all of these grants.
  public var staleGrants: UInt64 = 0
  public init(
    _ incarnation: Incarnation, url: String, sip: String, version: String, format: Int = Limits.format,
    reads: ClosedRange<Int> = Limits.oldestFormat...Limits.format, configuration: String = ""
  ) {
    (self.incarnation, self.url, self.sip, self.version) = (incarnation, url, sip, version)
    (self.format, self.reads, self.configuration) = (format, reads, configuration)
  }

  /// Whether each of the two reads what the other writes.
  public func understands(_ other: NodeLease) -> Bool { reads.contains(other.format) && other.reads.contains(format) }
}

/// Where a device's socket is.
public struct Whereabouts: Hashable, Sendable {
  public var device: DeviceKey
  public var incarnation: Incarnation
  public var session: SessionID
  public var state: AppState
  public var caps: Set<String>
  public var accounts: [String]
  public init(
    _ device: DeviceKey, at incarnation: Incarnation, session: SessionID, state: AppState = .fg, caps: Set<String> = [],
    accounts: [String] = ["default"]
  ) {
    (self.device, self.incarnation, self.session) = (device, incarnation, session)
    (self.state, self.caps, self.accounts) = (state, caps, accounts)
  }
}

/// The location of a user's live call.
public struct CallLocation: Hashable, Sendable {
  public var call: CallID
  public var incarnation: Incarnation
  public var direction: CallDirection
  /// The order in which the shared store entered the user's calls: exact limits count those before.
  public var rank: Int64
  public init(_ call: CallID, at incarnation: Incarnation, _ direction: CallDirection, rank: Int64 = 0) {
    (self.call, self.incarnation, self.direction, self.rank) = (call, incarnation, direction, rank)
  }
}

/// What another node needs to close a call of a dead node: its journal entry with its legs, and the users whose devices may show it.
public struct CallEntry: Hashable, Sendable {
  public var line: JournalEntry
  public var users: [String]
  public init(_ line: JournalEntry, users: [String]) { (self.line, self.users) = (line, users) }
  public func hash(into hasher: inout Hasher) { hasher.combine(line.call) }
}

/// A task that one node at a time does for all.
public enum SingleTask: Hashable, Sendable, CustomStringConvertible {
  /// Probes silent nodes, and closes the calls of dead ones.
  case reaper
  /// REGISTER and OPTIONS of a trunk.
  case trunk(String)

  public var description: String {
    switch self {
    case .reaper: "reaper"
    case .trunk(let name): "trunk:\(name)"
    }
  }
}

/// Messages between nodes over the shared store's channels, delivered at most once. A node that must not miss one reads the data
/// again after every lost subscription.
public enum ClusterMessage: Hashable, Sendable {
  /// To the node of a device: pass this `call.wake` on to its socket.
  indirect case wake(DeviceKey, CallWake)
  /// To a node with calls of the user: this device has connected to the sender.
  case came(Whereabouts)
  /// To the device's previous node: its session was replaced by a newer one at the sender.
  case replaced(DeviceKey, SessionID)
  /// To all: an operator revoked the device.
  case revoked(DeviceKey)
  /// To all: a call of a node that died has been closed; devices of its user may show it.
  case lost(CallID, user: String)
  /// To all: a node is dead, and its calls are closed.
  case dead(Incarnation)
  /// To all: grants of login tokens have changed.
  case grants
  /// To all: directories have other versions.
  case directories
  /// To the nodes of a user's devices: the history has this row; 0: it was erased.
  case history(user: String, row: Int64)
}
