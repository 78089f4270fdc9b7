import TrunklineAppProtocol
import TrunklineBytes

/// One socket, numbered by the transport and never reused.
public struct ConnectionID: Hashable, Sendable {
  public var number: UInt64
  public init(_ number: UInt64) { self.number = number }
}

extension SessionMachine {
  /// An input of the session machine, from the app thread.
  public enum Input: Sendable {
    /// A WebSocket was upgraded.
    case opened(ConnectionID, IPAddress)
    /// A whole text frame.
    case frame(ConnectionID, [UInt8])
    /// A WebSocket pong, or anything else that shows life without being a message.
    case alive(ConnectionID)
    /// More is queued toward this socket than the transport holds.
    case congested(ConnectionID)
    /// The socket was closed; with the code of the client's close frame, if there was one.
    case closed(ConnectionID, CloseCode?)
    /// `POST /v1/calls/<call>/reject` with the text after `Bearer ` and the whole body. Exactly one `Action.httpAnswer` or
    /// `.httpRedirect` follows, perhaps after other inputs.
    case httpReject(HTTPRequestID, call: Identifier, bearer: String?, body: [UInt8])
    /// Another HTTP request, with the text after `Bearer `: checks whose login token it is, and whether the device may act.
    /// Exactly one `Action.httpLogin` or `.httpRefused` follows, perhaps after other inputs.
    case httpLogin(HTTPRequestID, bearer: String?)
    /// The HTTP client disconnected: it needs no answer.
    case httpGone(HTTPRequestID)
    case command(SessionCommand)
    /// A command for this device, or the welcome of this session, did not fit the queue from control: the session ends, so that
    /// the client's next `hello` is answered with a snapshot of the true state.
    case commandLost(DeviceKey)
    case welcomeLost(SessionID)
    /// `nextDeadline` is reached.
    case timer
  }

  /// What the app thread must do, in this order.
  public enum Action: Hashable, Sendable {
    case send(ConnectionID, [UInt8])
    /// A WebSocket ping.
    case ping(ConnectionID)
    /// After all that was sent before. The only input still expected from this connection is `.closed`.
    case close(ConnectionID, CloseCode)
    /// Answers an HTTP request; `body` is JSON.
    case httpAnswer(HTTPRequestID, status: Int, body: [UInt8])
    /// The request of this device, with the accounts of its token, may be executed; or the reason why not.
    case httpLogin(HTTPRequestID, DeviceKey, accounts: [String])
    case httpRefused(HTTPRequestID, Failure)
    /// Answers the request with 307 instead of `httpAnswer`: it belongs to another node, at this `https` or `http` address.
    case httpRedirect(HTTPRequestID, location: String)
  }

  /// Written by `SessionMachine.handle`, emptied by its caller.
  public struct Output: Sendable {
    public var actions: [Action] = []
    public var events: [SessionEvent] = []
    /// For the log.
    public var refusedLogins: [RefusedLogin] = []
    public var refusedRequests: [RefusedAppRequest] = []
    /// A token names an unknown key: keys should be fetched.
    public var wantsKeys = false
    public init() {}
    public mutating func removeAll() {
      wantsKeys = false
      refusedLogins.removeAll(keepingCapacity: true)
      refusedRequests.removeAll(keepingCapacity: true)
      actions.removeAll(keepingCapacity: true)
      events.removeAll(keepingCapacity: true)
    }
  }
}

/// Why a `hello` was refused or a message dropped; for counting.
public enum SessionRefusal: String, CaseIterable, Hashable, Sendable {
  case tokenMalformed, tokenAlgorithm, tokenSignature, tokenExpired, tokenExpiryInMilliseconds, tokenNotYetValid, tokenAudience,
    tokenClaims,
    tokenCritical
  /// No key has the token's `kid`; or keys have not been fetched yet, so that it is not known whether one will.
  case tokenKeyUnknown, keysUnavailable
  case deviceMismatch, unknownUser, wakeToken, resumeUnknown, helloMalformed, helloMissing, draining, overload,
    tooManySessions
  /// An operator revoked the device.
  case deviceRevoked
  /// The device's call is at another node; its call was at a dead node, and the device has a session here.
  case otherNode, deadNode
  /// A further session of a device whose own session is at this node.
  case ownSessionIsHere
}

/// A `hello` or `auth.refresh` that was refused.
public struct RefusedLogin: Hashable, Sendable {
  public var refusal: SessionRefusal
  /// What the client is sent.
  public var why: String
  public var address: IPAddress?
  /// From a token whose signature is valid; otherwise the user is unverified.
  public var user: String?
  /// As the client stated it.
  public var device: String?
}

/// A request that was refused before it reached control, for a reason of the device or of this node that an operator must be able
/// to see.
public struct RefusedAppRequest: Hashable, Sendable {
  public var device: DeviceKey
  public var type: ClientMessageType
  public var why: String
}

/// Counts since the start; read by the owner of the machine on its thread.
public struct SessionStats: Hashable, Sendable {
  public var messagesReceived: UInt64 = 0
  public var messagesSent: UInt64 = 0
  public var resumed: UInt64 = 0
  /// Sessions that began with the resume token of a session that this node does not have.
  public var continued: UInt64 = 0
  /// Numbered messages dropped because their `seq` had been seen.
  public var duplicates: UInt64 = 0
  /// Requests answered from the store, or joined to one without an answer yet.
  public var repeats: UInt64 = 0
  /// Messages of a known type with a bad field, and of an unknown type.
  public var malformed: UInt64 = 0
  public var unknown: UInt64 = 0
  /// HTTP requests by status.
  public var httpAnswers: [Int: UInt64] = [:]
  /// Commands for a device or request that does not exist or no longer exists.
  public var strayCommands: UInt64 = 0
  /// Requests refused because all stored requests of their device wait for an answer.
  public var unkept: UInt64 = 0
  public var rateLimited: UInt64 = 0
  public var refusals: [SessionRefusal: UInt64] = [:]
  /// Close codes that this side decided.
  public var closes: [CloseCode: UInt64] = [:]
  public init() {}
}
