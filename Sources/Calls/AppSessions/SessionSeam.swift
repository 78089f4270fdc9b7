import JSONWebToken
import TrunklineAppProtocol
import TrunklineBytes

/// A device of a user: the `sub` and `dev` of its token. Calls are offered to devices; a device has at most one session.
public struct DeviceKey: Hashable, Sendable {
  public var user: String
  public var device: String
  public init(user: String, device: String) { (self.user, self.device) = (user, device) }
}

/// The `sid` of a session.
public struct SessionID: Hashable, Sendable, CustomStringConvertible {
  public var text: String
  public init(_ text: String) { self.text = text }
  public var description: String { text }
}

/// Which request an answer belongs to. Valid over the death of the session: the answer is kept for a repeat on the next one.
public struct RequestToken: Hashable, Sendable {
  public var device: DeviceKey
  public var request: Identifier
  public init(device: DeviceKey, request: Identifier) { (self.device, self.request) = (device, request) }
}

/// The description of a device from `hello`, and the accounts of its token (`default` if the token names none).
public struct DeviceInfo: Hashable, Sendable {
  public var platform: String?
  public var model: String?
  public var os: String?
  public var sdk: String?
  public var caps: Set<String>
  public var state: AppState
  public var accounts: [String]
  /// The call of the wake token with which the session began: it may act in no other. Nil: a login.
  public var onlyCall: Identifier?
  /// Its own session is at another node, and this one is for calls here: the device is not looked for here.
  public var isFurther = false
  public init(
    platform: String? = nil, model: String? = nil, os: String? = nil, sdk: String? = nil, caps: Set<String> = [],
    state: AppState = .fg, accounts: [String] = ["default"], onlyCall: Identifier? = nil
  ) {
    (self.platform, self.model, self.os, self.sdk) = (platform, model, os, sdk)
    (self.caps, self.state, self.accounts, self.onlyCall) = (caps, state, accounts, onlyCall)
  }

  /// `caps: nodes`: the client knows that a gateway may be several nodes (docs/reference/protocol.md, Many nodes).
  var knowsNodes: Bool { caps.contains(Self.nodes) }
  static let nodes = "nodes"
}

/// An HTTP request that waits for its answer, numbered by the transport and never reused.
public struct HTTPRequestID: Hashable, Sendable {
  public var number: UInt64
  public init(_ number: UInt64) { self.number = number }
}

/// App thread → control. Events of one device arrive in the order in which they happened.
public enum SessionEvent: Hashable, Sendable {
  /// The login token of this session grants its user something: sent right before `.connected`, and again at `auth.refresh`.
  /// Control answers `.refuse` if the grant is invalid.
  case granted(DeviceKey, SessionID, TokenGrant)
  /// A device is connected. Not resumed: control must send `.welcome` for this session, and nothing else is sent before it; a
  /// `.send` to the device that was posted earlier is dropped, because the snapshot contains it. Resumed: the session continues
  /// on a new socket; control has nothing to do.
  case connected(DeviceKey, SessionID, DeviceInfo, resumed: Bool)
  /// The socket was closed and the device counts as not connected; the session may be resumed. Also sent right before
  /// `.connected(resumed: true)` when a new socket replaces the session's socket.
  case disconnected(DeviceKey, SessionID)
  /// The session has ended for good (after `.disconnected`, if it was connected).
  case ended(DeviceKey, SessionID)
  case stateChanged(DeviceKey, AppState)
  /// `auth.refresh` on a session that a wake token began: from now on it is a normal login.
  case upgraded(DeviceKey, SessionID, DeviceInfo)
  /// A request that sessions do not answer themselves (all of "Calls" that this version reads, and `device.put`,
  /// `device.del`).
  /// Exactly one `.answer` must follow. Repeats of the same id never reach control.
  case request(DeviceKey, SessionID, RequestToken, ClientMessage, call: Identifier?)
  /// A message that is never answered: `call.ringing`, `call.unavailable`, `media.ready|fail|active`, `stats`.
  case notification(DeviceKey, SessionID, ClientMessage, call: Identifier?)
  /// The numbered `call.offer` of this call was acked: on a live socket, so the device is warm.
  case offerAcked(DeviceKey, SessionID, call: Identifier)
  /// The `call.cancel`, `call.ended` or `call.gone` of this call was acked: the device has it.
  case overAcked(DeviceKey, SessionID, call: Identifier)
  /// `POST /v1/calls/<id>/reject` of a device whose authority was checked. Exactly one `.httpAnswer` must follow; a repeat is
  /// sent again and answered `ok` again.
  case httpReject(HTTPRequestID, DeviceKey, CallReject, call: Identifier)
  /// An HTTP request with the device's genuine login token: may the device act? Exactly one `.httpAnswer` must follow: `ok` or
  /// the reason.
  case httpLogin(HTTPRequestID, DeviceKey)
  /// A wake token of the device names a call whose node is dead; its connected session must be notified how the call ended:
  /// `.send` with `call.gone`.
  case callLost(DeviceKey, SessionID, call: Identifier)
}

/// The answer to a request.
public enum RequestAnswer: Hashable, Sendable {
  case ok(Success)
  case err(Failure)
  /// Replaces `ok` for `media.restart`: numbered, and kept like a `.send`.
  case mediaAnswer(MediaAnswer)

  /// `ok` without content.
  public static let ok = RequestAnswer.ok(Success())
}

/// One `call.gone` right after a `welcome`: a call that this device may still show.
public struct GoneCall: Hashable, Sendable {
  public var call: Identifier
  public var over: CallOver
  public init(call: Identifier, over: CallOver) { (self.call, self.over) = (call, over) }
}

/// Control → app thread.
public enum SessionCommand: Hashable, Sendable {
  /// Completes `hello` of a session that was not resumed. `live`: the calls that hold the session open from the start.
  case welcome(SessionID, calls: [CallSnapshot], gone: [GoneCall], live: Set<Identifier>)
  /// Numbered types are kept while the session can be resumed; the others are sent only if the device is connected.
  case send(DeviceKey, ServerMessage, call: Identifier)
  case answer(RequestToken, RequestAnswer)
  /// From the offer or the accepted `call.start` on, this call holds the device's session open: its requests work after the token
  /// expired, the session can be resumed, a drain waits. `callDead` follows with the terminal message of the (call, device).
  case callLive(DeviceKey, Identifier)
  case callDead(DeviceKey, Identifier)
  /// A message that is neither numbered nor of a call: `dir.*`, `hist.changed`, and, with `re`, the answer to a request that only
  /// reads (`ClientMessageType.isRead`). It is sent if the device is connected.
  case notify(DeviceKey, ServerMessage, re: Identifier? = nil)
  /// The directory of a scope (`DirectoryScope`) has this version: it is `welcome.dirVersion` from now on.
  case directory(scope: String, version: Int)
  /// The answer to `.httpReject` or `.httpLogin`.
  case httpAnswer(HTTPRequestID, RequestAnswer)
  /// The call and its tombstone are forgotten, and with them every wake token for it.
  case wakesOver(Identifier)
  /// The grant of its login token is invalid: instead of `.welcome`, `hello` is answered with this and the session ends; an
  /// established session ends after its calls. Both close with 4001, with 1013 for want of room, or with 4003 if an operator
  /// revoked the device.
  case refuse(SessionID, Failure)
  /// An operator revoked the device: its session is closed with 4003, after its calls.
  case revoke(DeviceKey)
  /// The device has a newer session at another node: this one is closed with 4009. No effect if the device has another one here
  /// by now.
  case replace(DeviceKey, SessionID)
  /// The other nodes, at most `Limits.nodes`; replaces the last list. An incarnation that is not listed is dead: its wake tokens
  /// are answered here. Before the first list no node counts as dead.
  case nodes([SessionNode])
  /// No new sessions; those without a live call are closed with 1012, the others when their last call is dead. In a cluster the
  /// former are spread over time (`Limits.spreadPerSecond`).
  case drain
}
