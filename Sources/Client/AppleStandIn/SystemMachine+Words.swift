public import TrunklineBytes

/// The inputs and outputs between the system, an app and a person.
extension SystemMachine {
  public enum Input: Sendable {
    // from the network
    /// A push for this app.
    case push(PushID)
    /// A call of the cellular telephone begins or ends (R9).
    case cellular(Bool)
    /// The audio route changes: a headset is connected or removed (R28).
    case route(Route)
    // from the app
    /// Its process runs; a push that started it is delivered now.
    case launched
    /// Its process ended by itself, or crashed.
    case exited
    case foreground(Bool)
    /// The delegate method of a push returned.
    case pushHandled(PushID)
    case report(CallID, Caller)
    case update(CallID, Caller)
    case reportEnded(CallID, EndedReason)
    case reportConnecting(CallID)
    case reportConnected(CallID)
    case request(TransactionID, [Request])
    case complete(ActionID, Completion)
    /// A report off the delegate's thread (R22).
    case reportOffQueue(CallID, Caller)
    /// The provider's configuration (R7, R17).
    case configure(groups: Int, handleKinds: Set<HandleKind>)
    /// A notification service extension, or a process that claims to be one, makes a push of a notification (R15).
    case extensionPush(PushID, isExtension: Bool)
    /// The app activated the audio session itself (R8).
    case activatedAudioItself
    /// `setCategory` (R20).
    case categorySet
    /// The app's speaker override.
    case speaker(Bool)
    // from the user
    case tap(Tap)
    /// An entry of Recents (R17).
    case tapRecent(Caller)
    case locked(Bool)
    /// The user's permission for the microphone (R23).
    case microphone(Permission)
    // from the phone
    /// It was switched off and on: locked, and its keychain closed (R29). No process survives it.
    case restarted
    /// The daemon of calls or of audio crashed: every call of the app is removed.
    case systemReset(ResetCause)
  }

  public enum Permission: String, Sendable, Codable { case undetermined, granted, denied }
  public enum ResetCause: String, Sendable, Codable { case callServices, mediaServices }
  /// The audio route; it sets the sample rate (R28).
  public enum Route: String, Sendable, Codable, CaseIterable { case receiver, speaker, headphones, bluetooth, bluetoothWideband }

  public struct PushID: Hashable, Sendable {
    public var raw: Int
    public init(_ raw: Int) { self.raw = raw }
  }
  public struct TransactionID: Hashable, Sendable {
    public var raw: Int
    public init(_ raw: Int) { self.raw = raw }
  }
  public struct ActionID: Hashable, Sendable {
    public var raw: Int
    public init(_ raw: Int) { self.raw = raw }
  }

  /// What the lock screen shows.
  public struct Caller: Hashable, Sendable, Codable {
    public var handle: String
    public var name: String?
    public var kind: HandleKind
    public init(_ handle: String, name: String? = nil, kind: HandleKind = .phoneNumber) {
      (self.handle, self.name, self.kind) = (handle, name, kind)
    }
  }
  /// Raw values are those of `CXHandle.HandleType`.
  public enum HandleKind: Int, Sendable, Codable { case generic = 1, phoneNumber, emailAddress }
  /// Raw values are those of `CXCallEndedReason`.
  public enum EndedReason: Int, Sendable, Codable {
    case failed = 1, remoteEnded, unanswered, answeredElsewhere, declinedElsewhere
  }
  public enum Completion: Sendable { case fulfilled, failed }

  public enum Request: Hashable, Sendable, Codable {
    case start(CallID, Caller)
    case answer(CallID)
    case end(CallID)
    case hold(CallID, Bool)
    case mute(CallID, Bool)
    case digits(CallID, String)
    /// Nil: the call leaves its group.
    case group(CallID, CallID?)
    /// Languages as in `CXSetTranslatingCallAction`.
    case translate(CallID, Bool, from: String, to: String)

    public var call: CallID {
      switch self {
      case .start(let id, _), .answer(let id), .end(let id), .hold(let id, _), .mute(let id, _), .digits(let id, _): id
      case .group(let id, _), .translate(let id, _, _, _): id
      }
    }
  }
  public enum Tap: Hashable, Sendable {
    case answer(CallID)
    /// Decline, or the red button.
    case end(CallID)
    case hold(CallID, Bool)
    case mute(CallID, Bool)
    case digits(CallID, String)
    /// The two buttons of a second call (R25).
    case holdAndAnswer(CallID)
    case endAndAnswer(CallID)
    /// The speaker button.
    case speaker(Bool)
    /// A headset's button: answers the call that rings, else ends the active one (R25).
    case headset
  }

  /// Raw values are those of `CXErrorCodeIncomingCallError.Code`.
  public enum ReportError: Int, Sendable { case alreadyExists = 2, filteredByDoNotDisturb, filteredByBlockList }
  /// Raw values are those of `CXErrorCodeNotificationServiceExtensionError.Code`.
  public enum ExtensionError: Int, Sendable { case invalidClientProcess = 1, missingEntitlement }
  /// Raw values are those of `CXErrorCodeRequestTransactionError.Code`.
  public enum RequestError: Int, Sendable {
    case empty = 3, unknownCall, alreadyExists, invalidAction, maximumCallGroupsReached
  }

  public enum Action: Hashable, Sendable {
    /// Start the app's process in the background; answer with `launched`.
    case launch
    case kill(Rule)
    case deliver(PushID, mustReport: Bool)
    case reported(CallID, ReportError?)
    case requested(TransactionID, RequestError?)
    case didBegin
    case perform(ActionID, Request)
    case timedOut(ActionID, Request)
    case didActivate
    case didDeactivate
    /// Every call is removed, and no earlier action may be completed.
    case reset
    case mediaReset
    case extensionPushed(PushID, ExtensionError?)
    /// The user calls again, from Recents (R17).
    case startCall(Caller)
    /// Sample rate in Hz; 0 for a moment (R28).
    case route(Route, sampleRate: Int)
    /// R23: the microphone becomes silent, or audible again.
    case capture(isSilent: Bool)
    case microphonePrompt
    /// R27: open sockets are closed; new ones fail for this time.
    case socketsDie(failFor: Duration)
    /// R29: from now on the keychain can be read.
    case unlockedOnce
    /// The app has broken a rule, in a way that iOS leaves unpunished or punishes later.
    case violation(Rule, String)
  }
}
