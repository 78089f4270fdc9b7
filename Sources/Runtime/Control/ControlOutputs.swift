public import AppSessions
public import CallFlow
public import Cluster
public import Devices
public import PushPolicy
public import Trunking
public import TrunklineBytes
public import TrunklineMediaSession
public import TrunklineSIPDialogs

/// No further call fits beside the present ones.
public struct MediaOverload: Error, CustomStringConvertible {
  public let description: String
  public init(_ description: String) { self.description = description }
}

/// Why no media can be reserved for any call.
public enum MediaShortage: Sendable { case cpu, ports }

/// The targets of control's actions: the other runtimes, set by the composition of the gateway. All are called on the control
/// thread and must not wait.
public struct ControlOutputs {
  /// Queues one message; sent at the end of the step.
  public var sendSIP: (UserAgent.Output.Message) -> Void
  /// The peer of a flow has answered a challenge.
  public var authenticated: (Flow) -> Void = { _ in }
  /// A request had no answer on this connection, which accepted it after an instant: no longer trusted if nothing else came over
  /// it since.
  public var silent: (Flow, Instant) -> Void = { _, _ in }
  public var sendApp: (SessionCommand) -> Void
  /// False if the command was lost (its thread's queue is full): the session is then given up.
  public var sendMedia: (MediaCommand) -> Bool
  /// Sockets and a thread for a call. Throws `MediaOverload` when the threads have as many calls as they can carry, anything else
  /// for another shortage.
  public var reserveMedia: (MediaRequest) throws -> MediaReservation
  /// Ports at another address for a trunk leg whose own address was removed from the machine; nil: it stays.
  public var moveMedia: (MediaRequest) throws -> SocketAddress? = { _ in nil }
  /// Start line; `confirm` from any thread once it is on disk.
  public var journal: (StartLine, _ confirm: @escaping @Sendable (CallID) -> Void) -> Void
  public var record: (CallRecord) -> Void
  /// The step is over: threads that got something are woken now, each at most once.
  public var endStep: () -> Void = {}
  /// A query to the name servers; the answer arrives through `Control.resolved`.
  public var lookUp: (DNSQuestion) -> Void = { _ in }
  /// Verifies the caller: the answer arrives as `Input.verified`.
  public var verify: (CallID, IdentityQuestion) -> Void = { _, _ in }
  public var trunkNews: (TrunkNews) -> Void = { _ in }
  /// The trunks, once a second; for `/readyz`.
  public var trunkStatuses: ([TrunkStatus]) -> Void = { _ in }
  /// Wakes a device; the report arrives as `Input.pushed`. The instants: the end of the ring window, and when the INVITE arrived
  /// if the device is pushed to at once.
  public var push: (PushKey, PushTarget, CallPush, Instant, _ since: Instant?) -> Void = { _, _, _, _, _ in }
  /// The present reason to refuse any call's media. Called with every SIP message: a few loads.
  public var mediaShortage: () -> MediaShortage? = { nil }
  /// For how long SIP has arrived faster than it is read. Called with every SIP message.
  public var backlog: () -> Duration = { .zero }
  /// Memory in use and its limit in bytes; a limit of 0 is none. Called ten times a second.
  public var memory: () -> (used: Int64, limit: Int64) = { (0, 0) }
  /// New calls are refused from now on for this reason, or accepted again; for `/readyz`.
  public var overloaded: (TrunklineSIPDialogs.RefusalReason?) -> Void = { _ in }
  /// Queries a webhook; the answer arrives as `Input.routed`, if at all.
  public var askRoute: (RouteQuestion, Webhook) -> Void = { _, _ in }
  /// Queries a webhook about users; the answer always arrives as `Input.userKnown`.
  public var askUser: (UserQuestion, Webhook) -> Void = { _, _ in }
  public var pushCallOver: (CallID) -> Void = { _ in }
  /// A call whose record another node has written: nothing about it is kept here.
  public var disowned: (CallID) -> Void = { _ in }
  /// A request to the shared store; the answer arrives as `Inbound.cluster`.
  public var sharedStore: (SharedStoreRequestID, SharedStoreRequest) -> Void = { _, _ in }
  /// App sessions here, for the node's lease. Called once a second.
  public var sessions: () -> Int = { 0 }
  /// This node's flow toward an address; nil: it has no listener for it.
  public var flow: (TransportProtocol, SocketAddress) -> Flow? = { _, _ in nil }
  /// All known nodes, once a second; for sessions and for the sources that SIP is accepted from.
  public var nodesSeen: ([SeenNode]) -> Void = { _ in }
  /// The cluster's notices about this node and its tasks.
  public var clusterNews: (ClusterMachine.Action) -> Void = { _ in }
  /// Changes that the store of devices must apply.
  public var devices: ([DeviceChange]) -> Void = { _ in }
  /// Changes of login tokens' grants that the store must apply.
  public var grants: ([UserGrants.Change]) -> Void = { _ in }
  /// The answer to a question of `Inbox.ask`.
  public var answered: (QuestionID, ControlAnswer) -> Void = { _, _ in }
  /// After `Inbox.drain`, once: the last call is over.
  public var drained: () -> Void = {}
  /// After `Inbox.leave`: registrars have answered.
  public var left: () -> Void = {}

  /// Begins or ends a recording; its end arrives as `Input.recorded`.
  public var recording: (RecordingCommand) -> Void = { _ in }
  /// Opens or closes a stream; its outcome arrives as `Input.stream`.
  public var stream: (StreamCommand) -> Void = { _ in }
  /// An event for receivers outside the gateway; before the start line or record of the same step.
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
