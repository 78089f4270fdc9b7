// Apple's frameworks on iOS, the stand-in elsewhere: one source for both. An app that imports this module has the whole SDK.
@_exported public import TrunklineClient

#if os(iOS) || APPLE_SURFACE
  @_exported public import AVFAudio
  @_exported public import CallKit
  @_exported public import Intents
  @_exported public import PushKit

  typealias Application = AppLife

  /// The phone's default parts, for apps that pass none.
  enum SystemParts {
    /// - Parameter ownsSession: the system activates no audio session for the app.
    static func audio(ownsSession: Bool) -> any AudioDevice { VoiceUnit(ownsSession: ownsSession) }
    static func sockets() -> any SocketConnector { URLSessionSockets() }
    static func secrets() -> any SecretStore { KeychainSecrets() }
    static func paths() -> (any PathMonitor)? { NetworkPaths() }
    /// True until the app enters the foreground: a push may have started it.
    static let startsInBackground = true
  }
#else
  @_exported public import AppleStandIn
  import TrunklineClientMachines

  /// Replaces `AppLife` of iOS.
  enum Application {
    static let isSimulator = false
    static func onForeground(_ body: @escaping @Sendable (Bool) -> Void) { StandInApplication.onForeground(body) }
    /// The stand-in makes the microphone audible or silent (R23), and shows no prompt.
    static let microphone: MicrophonePermission? = nil
    static func askForMicrophone() async -> MicrophonePermission { .granted }
  }
#endif
