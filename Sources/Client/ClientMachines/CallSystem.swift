public import AppProtocol
public import Bytes

// What the system's call screen and the phone say to each other, in CallKit's order and without its types.

/// An action of the system, which the phone completes once.
public struct SystemActionID: Hashable, Sendable {
  /// Counted by the system's side.
  public var raw: Int
  /// The action with this number.
  public init(_ raw: Int) { self.raw = raw }
}

/// What the user wants of a call: performed by the phone, and asked for by it on the app's behalf.
public enum SystemRequest: Hashable, Sendable {
  /// Dial.
  case start(Identifier, Handle)
  /// Take the call.
  case answer(Identifier)
  /// End or decline it.
  case end(Identifier)
  /// On hold (true), or back.
  case hold(Identifier, Bool)
  /// Silence the microphone (true), or open it.
  case mute(Identifier, Bool)
  /// Send keys: 0 to 9, A to D, * and #.
  case digits(Identifier, String)
  /// Join the second one's group, so that all hear each other; nil: leave it.
  case group(Identifier, Identifier?)

  /// The call that it is about.
  public var call: Identifier {
    switch self {
    case .start(let id, _), .answer(let id), .end(let id), .hold(let id, _), .mute(let id, _), .digits(let id, _),
      .group(let id, _):
      id
    }
  }
}

/// Why the system does not show a call.
public enum ReportRefusal: Hashable, Sendable {
  /// It is on the screen already: as good as shown.
  case exists
  /// A focus of the user's.
  case doNotDisturb
  /// The caller is on the block list.
  case blocked
  /// Another code of the system's.
  case other(Int)
}

/// The audio device, for all calls together.
public enum AudioRequest: Hashable, Sendable {
  /// Category and mode, once a call and before the system activates the session; never `setActive`.
  case configure
  case start
  /// It runs on other hardware than it was started on.
  case restart
  case stop
  /// No call is left.
  case release
}

/// What the user has said about the microphone.
public enum MicrophonePermission: Sendable {
  /// Calls can be had.
  case granted
  /// They cannot: only the system's settings help.
  case denied
  /// Not requested yet.
  case undetermined
}

/// What the app shows of a call.
public struct CallInfo: Sendable, Equatable {
  public var id: Identifier
  public var isOutgoing: Bool
  public var peer: Handle
  /// The account it belongs to, if the gateway named one.
  public var account: String?
  public var details = CallDetails()
  public var state: ClientCall.State
  public var isMuted = false
  public var isHeld = false
  public var isHeldByPeer = false
  /// Connected, and nothing has come from the gateway for 2.5 s: another way to it is looked for.
  public var isReconnecting = false
  public var capabilities: CallCapabilities?
  /// Calls with the same number hear each other; nil: it is in no group.
  public var group: Int?
  /// The gateway's time of `call.connected`, milliseconds since 1970.
  public var connectedAt: Int64?
  public var codec: String?
  public var quality: Quality?
  /// How it ended; nil before.
  public var reason: EndReason?
  /// Why the gateway refused it, where it said so.
  public var refusal: ErrorCode?
  /// It was not made: the microphone is denied.
  public var lacksMicrophone = false

  public init(id: Identifier, isOutgoing: Bool, peer: Handle, state: ClientCall.State, reason: EndReason? = nil) {
    (self.id, self.isOutgoing, self.peer, self.state, self.reason) = (id, isOutgoing, peer, state, reason)
  }
}

/// Where the phone stands with its gateway.
public enum PhoneState: Hashable, Sendable {
  /// No login is known yet, or nothing is to be done in the background.
  case idle
  case connecting
  case online
  /// The login is refused: 4001 with a fresh token, 4003 revoked, 4009 this device is online elsewhere.
  case refused(UInt16)
  case loggedOut
}
