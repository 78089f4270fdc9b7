public import TrunklineAppProtocol
public import TrunklineBytes

// The messages between the system's call screen and the phone, in CallKit's order and without its types.

/// An action of the system, which the phone completes once.
public struct SystemActionID: Hashable, Sendable {
  /// Number that the system's adapter counts up.
  public var raw: Int
  /// The action with this number.
  public init(_ raw: Int) { self.raw = raw }
}

/// A user's request for a call: the phone performs it, or requests it from the system for the app.
public enum SystemRequest: Hashable, Sendable {
  /// Dial.
  case start(Identifier, Handle)
  /// Answer the call.
  case answer(Identifier)
  /// End or decline it.
  case end(Identifier)
  /// On hold (true), or back.
  case hold(Identifier, Bool)
  /// Silence the microphone (true), or open it.
  case mute(Identifier, Bool)
  /// Send keys: 0 to 9, A to D, * and #.
  case digits(Identifier, String)
  /// Join the group of the second call, so that all its members are mixed; nil: leave the group.
  case group(Identifier, Identifier?)

  /// The call that the request applies to.
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
  /// The call is already on the screen: equal to success.
  case exists
  /// A focus of the user blocks it.
  case doNotDisturb
  /// The caller is on the block list.
  case blocked
  /// Another code of the system.
  case other(Int)
}

/// Requests for the audio device, for all calls together.
public enum AudioRequest: Hashable, Sendable {
  /// Category and mode, once per call and before the system activates the session; never `setActive`.
  case configure
  case start
  /// The hardware has changed since the device was started.
  case restart
  case stop
  /// No call is left.
  case release
}

/// The user's permission for the microphone.
public enum MicrophonePermission: Sendable {
  /// Calls are possible.
  case granted
  /// Calls are not possible: only the system's settings help.
  case denied
  /// The user has not decided yet.
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
  /// Connected, but no packet has come from the gateway for 2.5 s: the phone searches for another path.
  public var isReconnecting = false
  public var capabilities: CallCapabilities?
  /// Calls with the same number are mixed; nil: the call is in no group.
  public var group: Int?
  /// The gateway's time of `call.connected`, milliseconds since 1970.
  public var connectedAt: Int64?
  public var codec: String?
  public var quality: Quality?
  /// Why it ended; nil before the end.
  public var reason: EndReason?
  /// Why the gateway refused the call, if it gave a code.
  public var refusal: ErrorCode?
  /// The call was not made: the microphone is denied.
  public var lacksMicrophone = false

  public init(id: Identifier, isOutgoing: Bool, peer: Handle, state: ClientCall.State, reason: EndReason? = nil) {
    (self.id, self.isOutgoing, self.peer, self.state, self.reason) = (id, isOutgoing, peer, state, reason)
  }
}

/// The phone's connection to its gateway.
public enum PhoneState: Hashable, Sendable {
  /// No login is known yet, or the phone has no work in the background.
  case idle
  case connecting
  case online
  /// The login is refused: 4001 with a fresh token, 4003 revoked, 4009 this device is online elsewhere.
  case refused(UInt16)
  case loggedOut
}
