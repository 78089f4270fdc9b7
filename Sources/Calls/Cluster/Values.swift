public import AppProtocol
public import AppSessions
public import Bytes
public import CallFlow

/// One life of a node: its name, which stays, and when this process began. Whatever a node says of itself in the shared store counts while the
/// lease of its incarnation lives.
public struct Incarnation: Hashable, Sendable, Comparable, CustomStringConvertible {
  public var node: String
  /// Milliseconds since 1970 at the start, by the node's own clock: it tells two lives of one name apart, and orders nothing else.
  public var started: Int64
  public init(node: String, started: Int64) { (self.node, self.started) = (node, started) }

  /// `n1.1790000000000`: the form in keys and values.
  public var description: String { "\(node).\(started)" }

  /// Nil: no such text. A name may hold points.
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

/// What a node tells of itself while it lives; renewed every 2 s, gone 6 s after the last time.
public struct NodeLease: Hashable, Sendable {
  public var incarnation: Incarnation
  /// Where a device reaches this very node: `wss://…/v1/connect`.
  public var url: String
  /// Where an edge, or a reaper's OPTIONS, reaches its SIP: `sip:10.0.0.5:5060;transport=tcp`.
  public var sip: String
  /// Where a program reaches its admin API: `http://10.0.0.5:7060`; nil: it does not say.
  public var admin: String?
  public var isDraining = false
  /// It refuses new calls for overload.
  public var refuses = false
  public var calls = 0
  public var sessions = 0
  /// Of the program, for people.
  public var version: String
  /// Of the messages and values that it writes, and those that it reads.
  public var format: Int
  public var reads: ClosedRange<Int>
  /// Of the parts of the configuration that nodes must share; different ones are shown.
  public var configuration: String
  /// Trunks that this node looks after for all and that do not do what is asked of them, with why (`TrunkStatus.Trouble`).
  public var troubles: [String: String] = [:]
  public init(
    _ incarnation: Incarnation, url: String, sip: String, version: String, format: Int = Limits.format,
    reads: ClosedRange<Int> = Limits.oldestFormat...Limits.format, configuration: String = ""
  ) {
    (self.incarnation, self.url, self.sip, self.version) = (incarnation, url, sip, version)
    (self.format, self.reads, self.configuration) = (format, reads, configuration)
  }

  /// Each reads what the other writes.
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

/// That a user has a live call at a node.
public struct CallLocation: Hashable, Sendable {
  public var call: CallID
  public var incarnation: Incarnation
  public var direction: CallDirection
  /// The order in which the user's calls were entered, given by the shared store: exact limits count those before.
  public var rank: Int64
  public init(_ call: CallID, at incarnation: Incarnation, _ direction: CallDirection, rank: Int64 = 0) {
    (self.call, self.incarnation, self.direction, self.rank) = (call, incarnation, direction, rank)
  }
}

/// What another node needs to close a call whose node has died: its start line with its legs, and whose devices may show it.
public struct CallEntry: Hashable, Sendable {
  public var line: StartLine
  public var users: [String]
  public init(_ line: StartLine, users: [String]) { (self.line, self.users) = (line, users) }
  public func hash(into hasher: inout Hasher) { hasher.combine(line.call) }
}

/// What one node at a time does for all.
public enum SingleTask: Hashable, Sendable, CustomStringConvertible {
  /// Looks after nodes that are silent.
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

/// What nodes tell each other over the shared store's channels, at most once each: whoever must not miss a thing reads it again after every
/// lost subscription.
public enum ClusterMessage: Hashable, Sendable {
  /// To the node of a device: pass this `call.wake` on to its socket. `content` is the message's `d`, JSON of at most
  /// `Limits.wakeBytes`.
  case wake(DeviceKey, call: CallID, content: [UInt8])
  /// To a node with calls of the user: this device has come to the sender.
  case came(Whereabouts)
  /// To the node where a device was before: its session is another one now, at the sender.
  case replaced(DeviceKey, SessionID)
  /// To all: an operator turned the device away.
  case revoked(DeviceKey)
  /// To all: a call of a node that died has been closed; devices of its user may show it.
  case lost(CallID, user: String)
  /// To all: a node is dead, and what it left is closed.
  case dead(Incarnation)
  /// To all: login tokens grant something else.
  case grants
  /// To all: directories have other versions.
  case directories
  /// To the nodes of a user's devices: the history has this row; 0: it was erased.
  case history(user: String, row: Int64)
}
