public import AppSessions
public import CallFlow
public import CallModel
public import PushPolicy
import Trunking
public import TrunklineBytes
public import TrunklineMediaSession
public import TrunklineSIPDialogs

/// The SIP transport.
public protocol SIPOutput: AnyObject {
  /// Queues one message; sent at the end of the step.
  func send(_ message: UserAgent.Output.Message)
  /// The peer of a flow has answered a challenge.
  func authenticated(_ flow: Flow)
  /// A request had no answer on this connection, which accepted it after an instant: no longer trusted if nothing else came over
  /// it since.
  func wasSilent(_ flow: Flow, since: Instant)
  /// For how long SIP has arrived faster than it is read. Called with every SIP message.
  var backlog: Duration { get }
  /// This node's flow toward an address; nil: it has no listener for it.
  func flow(_ transport: TransportProtocol, toward remote: SocketAddress) -> Flow?
}

/// The name servers.
public protocol NameOutput: AnyObject {
  /// Sends a query; the answer arrives through `Control.resolved`.
  func ask(_ question: DNSQuestion)
}

/// No further call fits beside the present ones.
public struct MediaOverload: Error, CustomStringConvertible {
  public let description: String
  public init(_ description: String) { self.description = description }
}

/// Why no media can be reserved for any call.
public enum MediaShortage: Sendable { case cpu, ports }

/// The media threads.
public protocol MediaPlaneOutput: AnyObject {
  /// False if the command was lost (its thread's queue is full): the session is then given up.
  func send(_ command: MediaCommand) -> Bool
  /// Sockets and a thread for a call. Throws `MediaOverload` when the threads have as many calls as they can carry, anything else
  /// for another shortage.
  func reserve(_ request: MediaRequest) throws -> MediaReservation
  /// Ports at another address for a trunk leg whose own address was removed from the machine; nil: it stays.
  func move(_ request: MediaRequest) throws -> SocketAddress?
  /// The present reason to refuse any call's media. Called with every SIP message: a few loads.
  var shortage: MediaShortage? { get }
  /// The step is over: threads that got something are woken now, each at most once.
  func wake()
}

/// The sessions of apps.
public protocol AppOutput: AnyObject {
  func post(_ command: SessionCommand)
  /// App sessions here, for the node's lease. Called once a second, with a cluster.
  var sessions: Int { get }
}

/// The push services.
public protocol PushOutput: AnyObject {
  /// Wakes a device; the report arrives as `Input.pushed`.
  /// - Parameters:
  ///   - deadline: the end of the ring window.
  ///   - since: when the INVITE arrived, if the device is pushed to at once.
  func push(_ key: PushKey, _ target: PushTarget, _ content: CallPush, deadline: Instant, since: Instant?)
  func callOver(_ call: CallID)
}

/// Programs of the operator whose answer a call waits for: webhooks, and the verifier of caller identities.
public protocol WebhookOutput: AnyObject {
  /// Queries a webhook; the answer arrives as `Input.routed`, if at all.
  func ask(_ question: RouteQuestion, _ hook: Webhook)
  /// Queries a webhook about users; the answer always arrives as `Input.userKnown`.
  func ask(_ question: UserQuestion, _ hook: Webhook)
  /// Verifies the caller: the answer arrives as `Input.verified`.
  func verify(_ call: CallID, _ question: IdentityQuestion)
}

/// The uses of a call's audio outside the media threads.
public protocol AudioOutput: AnyObject {
  /// Begins or ends a recording; its end arrives as `Input.recorded`.
  func perform(_ command: RecordingCommand)
  /// Opens or closes a stream; its outcome arrives as `Input.stream`.
  func perform(_ command: StreamCommand)
}
