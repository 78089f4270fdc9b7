public import TrunklineAppProtocol

/// An error with the step that the app should take.
public enum PhoneError: Error, Hashable, Sendable, CustomStringConvertible {
  /// Another `Phone` exists in this process: use that one.
  case secondPhone
  /// VoIP pushes do not exist here (the simulator): calls arrive while the app is open.
  case unsupported
  /// The gateway refuses the token: the backend's key, audience or `dev` is not what the gateway expects.
  case loginRefused
  /// An operator revoked this device: log in again with the user's consent.
  case revoked
  /// The same device is online in another process.
  case replaced
  /// The app's closure returned no token; it is called again later.
  case noToken(String)
  /// The app's closure returned a token that does not expire later than the one in use: it is called again later, and the login
  /// remains valid meanwhile.
  case staleToken
  /// This phone was logged out, or the gateway has no login for it.
  case loggedOut
  /// No number was given.
  case emptyNumber
  /// The call's parameters break a rule: its name.
  case badParameters(String)
  /// The gateway does not carry emergency calls: open the telephone's own dialler.
  case emergency
  /// The number to call from is not, or no longer, one of the user's: read ``Phone/ownNumbers()`` again, and let the user choose.
  case callerNumber
  /// The microphone is not granted: request it, or send the user to the settings.
  case noMicrophone
  /// This phone has its maximum of simultaneous calls, or the gateway's limit for an hour is reached.
  case tooManyCalls
  /// No media thread: the process has no memory or descriptors left.
  case noResources
  /// The gateway cannot be reached now: try again when ``Phone/state`` is online.
  case notConnected
  /// No audio passed between this device and the gateway, or the call ended before it could; with the reason of its end.
  case noMedia(EndReason)
  /// The gateway's error for a request.
  case gateway(ErrorCode)

  /// What is wrong and what to do, in English: for a log or a developer's screen.
  public var description: String {
    switch self {
    case .secondPhone: "there is a Phone in this process already: keep one for the app's life and use it everywhere"
    case .unsupported: "no VoIP pushes on this system: calls arrive while the app is open"
    case .loginRefused: "the gateway refused the token (4001): check the backend's signing key, audience and dev claim"
    case .revoked: "this device was turned away (4003): let the user log in again"
    case .replaced: "this device is online in another process (4009): give each installation its own device id"
    case .noToken(let why): "the app's token closure failed: \(why)"
    case .staleToken:
      "the app's token closure returned a token that ends no later than the one in use: fetch a new one, do not return a cached one"
    case .loggedOut: "logged out: make a new Phone after the next login"
    case .emptyNumber: "no number to call"
    case .badParameters(let fault): fault
    case .emergency: "emergency calls are not carried: open the telephone's own dialler (tel:)"
    case .callerNumber: "the number to call from is not one of the user's: choose one of ownNumbers()"
    case .noMicrophone: "the microphone is not granted: ask for it while the app is open, or open its settings"
    case .tooManyCalls: "too many calls: end a live one, or wait if the gateway requests it"
    case .notConnected: "not online: try again when the phone's state is online"
    case .noMedia(let why):
      "no audio passed between this device and the gateway (\(why.rawValue)): a firewall may drop UDP; offer TURN or try another network"
    case .gateway(let code): "the gateway answered \(code.rawValue)"
    case .noResources: "the media thread could not start: the process has no descriptors left"
    }
  }

  init?(closeCode: UInt16) {
    switch CloseCode(rawValue: closeCode) {
    case .authFailed: self = .loginRefused
    case .revoked: self = .revoked
    case .replaced: self = .replaced
    default: return nil
    }
  }
}
