import AppProtocol
import Bytes

/// One socket, numbered by the transport and never reused.
public struct ConnectionID: Hashable, Sendable {
  public var number: UInt64
  public init(_ number: UInt64) { self.number = number }
}

extension SessionMachine {
  /// What the app thread tells the session machine.
  public enum Input: Sendable {
    /// A WebSocket was upgraded.
    case opened(ConnectionID, IPAddress)
    /// A whole text frame.
    case frame(ConnectionID, [UInt8])
    /// A WebSocket pong, or anything else that shows life without being a message.
    case alive(ConnectionID)
    /// More is queued toward this socket than the transport holds.
    case congested(ConnectionID)
    /// The socket is gone; with the code of the client's close frame, if there was one.
    case closed(ConnectionID, CloseCode?)
    /// `POST /v1/calls/<call>/reject` with the text after `Bearer ` and the whole body. Exactly one
    /// `Action.httpAnswer` or `.httpRedirect` follows, some other input later.
    case httpReject(HTTPRequestID, call: Identifier, bearer: String?, body: [UInt8])
    /// An HTTP request other than that, with the text after `Bearer `: whose login token it is, and whether the device may act. Exactly one
    /// `Action.httpLogin` or `.httpRefused` follows, some other input later.
    case httpLogin(HTTPRequestID, bearer: String?)
    /// The HTTP client went away: no answer is wanted any longer.
    case httpGone(HTTPRequestID)
    case command(SessionCommand)
    /// A command for this device, or the welcome of this session, did not fit the queue from control: the session ends, so that
    /// the client's next `hello` gets the truth as a snapshot.
    case commandLost(DeviceKey)
    case welcomeLost(SessionID)
    /// `nextDeadline` has come.
    case timer
  }

  /// What the app thread has to do, in this order.
  public enum Action: Hashable, Sendable {
    case send(ConnectionID, [UInt8])
    /// A WebSocket ping.
    case ping(ConnectionID)
    /// After what was sent. No input but `.closed` is expected from this connection any longer.
    case close(ConnectionID, CloseCode)
    /// Answers an HTTP request; `body` is JSON.
    case httpAnswer(HTTPRequestID, status: Int, body: [UInt8])
    /// The request of this device, with the accounts of its token, may be carried out; or why not.
    case httpLogin(HTTPRequestID, DeviceKey, accounts: [String])
    case httpRefused(HTTPRequestID, Failure)
    /// Answers it in place of `httpAnswer` with 307: the same request belongs to another node, at this `https` or `http` address.
    case httpRedirect(HTTPRequestID, location: String)
  }

  /// Written by `SessionMachine.handle`, emptied by its caller.
  public struct Output: Sendable {
    public var actions: [Action] = []
    public var events: [SessionEvent] = []
    /// For the log.
    public var refusedLogins: [RefusedLogin] = []
    public var refusedRequests: [RefusedAppRequest] = []
    /// A token names a key that is not here: keys should be fetched.
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
  /// No key has the token's `kid`; nor is it known yet whether one will, as keys are fetched.
  case tokenKeyUnknown, keysUnavailable
  case deviceMismatch, unknownUser, wakeToken, resumeUnknown, helloMalformed, helloMissing, draining, overload,
    tooManySessions
  /// An operator turned the device away.
  case deviceRevoked
  /// Its call lives at another node; its call was at a node that is dead, and the device has a session here.
  case otherNode, deadNode
  /// A further session, of a device whose own session is at this node.
  case ownSessionIsHere
}

/// A `hello` or `auth.refresh` that was refused.
public struct RefusedLogin: Hashable, Sendable {
  public var refusal: SessionRefusal
  /// What the client is told.
  public var why: String
  public var address: IPAddress?
  /// Of a token with a valid signature; otherwise no user is verified.
  public var user: String?
  /// What the client says of itself.
  public var device: String?
}

/// A request that was refused before control heard of it: a matter of the device, or of ours, that an operator must be able to see.
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
  /// Sessions that began with the resume token of one that is not here.
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
  /// Commands for a device or request that is not there (any longer).
  public var strayCommands: UInt64 = 0
  /// Requests refused because all that are kept of their device wait for an answer.
  public var unkept: UInt64 = 0
  public var rateLimited: UInt64 = 0
  public var refusals: [SessionRefusal: UInt64] = [:]
  /// Close codes that this side decided.
  public var closes: [CloseCode: UInt64] = [:]
  public init() {}
}
