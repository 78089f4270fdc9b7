public import AppSessions
public import Bytes
public import CallFlow
public import Cluster
public import Devices
public import MediaSession
public import PushPolicy
public import SIPDialogs
public import Trunking

/// No further call fits beside those that are there.
public struct MediaOverload: Error, CustomStringConvertible {
  public let description: String
  public init(_ description: String) { self.description = description }
}

/// Why no media can be reserved for any call.
public enum MediaShortage: Sendable { case cpu, ports }

/// Where control's actions go: the other runtimes, given by who puts the gateway together. All are called on the control thread and must
/// not wait.
public struct ControlOutputs {
  /// Queues one message; sent at the end of the turn.
  public var sendSIP: (UserAgent.Output.Message) -> Void
  /// The peer of a flow has answered a challenge.
  public var authenticated: (Flow) -> Void = { _ in }
  /// A request had no answer on this connection, which took it after an instant: believed no more if nothing else came over it since.
  public var silent: (Flow, Instant) -> Void = { _, _ in }
  public var sendApp: (SessionCommand) -> Void
  /// False if the command was lost (its thread's queue is full): the session is then given up.
  public var sendMedia: (MediaCommand) -> Bool
  /// Sockets and a thread for a call. Throws
  /// `MediaOverload` when the threads have as many calls as they can carry, anything else when there is no room of another kind.
  public var reserveMedia: (MediaRequest) throws -> MediaReservation
  /// Ports at another address for a trunk leg whose own the machine no longer has; nil: it stays.
  public var moveMedia: (MediaRequest) throws -> SocketAddress? = { _ in nil }
  /// Start line; `confirm` from any thread once it is on disk.
  public var journal: (StartLine, _ confirm: @escaping @Sendable (CallID) -> Void) -> Void
  public var record: (CallRecord) -> Void
  /// The turn is over: threads that have got something are woken now, each at most once.
  public var endStep: () -> Void = {}
  /// A question to the name servers; the answer comes through `Control.resolved`.
  public var lookUp: (DNSQuestion) -> Void = { _ in }
  /// Who is calling: the answer comes as `Input.verified`.
  public var verify: (CallID, IdentityQuestion) -> Void = { _, _ in }
  public var trunkNews: (TrunkNews) -> Void = { _ in }
  /// The trunks, once a second; for `/readyz`.
  public var trunkStatuses: ([TrunkStatus]) -> Void = { _ in }
  /// Wakes a device; the report comes as `Input.pushed`. The instants: the end of the ring window, and when the INVITE came if
  /// the device is pushed to at once.
  public var push: (PushKey, PushTarget, CallPush, Instant, _ since: Instant?) -> Void = { _, _, _, _, _ in }
  /// What would refuse a call's media now. Asked with every SIP message: a few loads.
  public var mediaShortage: () -> MediaShortage? = { nil }
  /// For how long SIP has come faster than it is read. Asked with every SIP message.
  public var backlog: () -> Duration = { .zero }
  /// Memory in use and its limit in bytes; a limit of 0 is none. Asked ten times a second.
  public var memory: () -> (used: Int64, limit: Int64) = { (0, 0) }
  /// New calls are refused from now on because of this, or taken again; for `/readyz`.
  public var overloaded: (SIPDialogs.RefusalReason?) -> Void = { _ in }
  /// Asks a webhook; the answer comes as `Input.routed`, if it comes.
  public var askRoute: (RouteQuestion, Webhook) -> Void = { _, _ in }
  /// Asks a webhook about users; the answer comes as `Input.userKnown`, always.
  public var askUser: (UserQuestion, Webhook) -> Void = { _, _ in }
  public var pushCallOver: (CallID) -> Void = { _ in }
  /// A call whose record another node has written: nothing is kept of it here.
  public var disowned: (CallID) -> Void = { _ in }
  /// A request to the shared store; the answer comes as `Inbound.cluster`.
  public var sharedStore: (SharedStoreRequestID, SharedStoreRequest) -> Void = { _, _ in }
  /// App sessions here, for the node's lease. Asked once a second.
  public var sessions: () -> Int = { 0 }
  /// Where this node sends from toward an address; nil: it has no listener for it.
  public var flow: (TransportProtocol, SocketAddress) -> Flow? = { _, _ in nil }
  /// All nodes that are known, once a second; for sessions and for the allow-list of SIP.
  public var nodesSeen: ([SeenNode]) -> Void = { _ in }
  /// What the cluster says of this node and of its tasks.
  public var clusterNews: (ClusterMachine.Action) -> Void = { _ in }
  /// What the store of devices is to hold from now on.
  public var devices: ([DeviceChange]) -> Void = { _ in }
  /// What the store is to hold of login tokens' grants from now on.
  public var grants: ([UserGrants.Change]) -> Void = { _ in }
  /// The answer to a question of `Inbox.ask`.
  public var answered: (QuestionID, ControlAnswer) -> Void = { _, _ in }
  /// After `Inbox.drain`, once: the last call is over.
  public var drained: () -> Void = {}
  /// After `Inbox.leave`: registrars have answered.
  public var left: () -> Void = {}

  /// Begins or ends a recording; its end comes as `Input.recorded`.
  public var recording: (RecordingCommand) -> Void = { _ in }
  /// Opens or closes a stream; what becomes of it comes as `Input.stream`.
  public var stream: (StreamCommand) -> Void = { _ in }
  /// What is told beyond the gateway; before the start line or record of the same turn.
  public var event: (GatewayEvent) -> Void = { _ in }

  public init(
    sendSIP: @escaping (UserAgent.Output.Message) -> Void, sendApp: @escaping (SessionCommand) -> Void,
    sendMedia: @escaping (MediaCommand) -> Bool,
    reserveMedia: @escaping (MediaRequest) throws -> MediaReservation,
    journal: @escaping (StartLine, _ confirm: @escaping @Sendable (CallID) -> Void) -> Void,
    record: @escaping (CallRecord) -> Void
  ) {
    (self.sendSIP, self.sendApp, self.sendMedia) = (sendSIP, sendApp, sendMedia)
    (self.reserveMedia, self.journal, self.record) = (reserveMedia, journal, record)
  }
}
