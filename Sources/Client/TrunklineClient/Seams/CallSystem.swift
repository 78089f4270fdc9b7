public import AppProtocol
public import Bytes
public import ClientMachines
public import Dispatch

/// What shows calls to the user: CallKit by `TrunklineCallKit`, or the app itself (`CallSystem.none`).
///
/// Events are handed in on `queue`, from within its own turn: a push's report leaves before the delegate returns. `perform` is called there too.
public protocol CallSystem: Sendable {
  /// Called once, before the phone does anything else.
  func attach(to queue: DispatchQueue, _ events: @escaping @Sendable (CallSystemEvent) -> Void)
  /// Does what the phone asks for. On the queue of ``attach(to:_:)``; answers come as events, also where the system answers at once.
  func perform(_ request: CallSystemRequest)
}

/// What the system tells the phone.
public enum CallSystemEvent: Sendable {
  /// A VoIP push: its payload as JSON, whatever it is. The phone has reported a call when this returns.
  case pushed(payload: [UInt8], mustReport: Bool)
  /// Where pushes for this process are to be sent; nil: nowhere any longer.
  case pushToken(DevicePut.Push?)
  /// The answer to `CallSystemRequest.report`: nil if the call is shown, else why it is not.
  case reported(Identifier, ReportRefusal?)
  /// The user, or the app through the system, wants this of a call; the phone completes it once. `timeout`: what is left until the system gives it up.
  case perform(SystemActionID, SystemRequest, timeout: Duration?)
  /// The system gave an action up: completing it now would be a mistake.
  case timedOut(SystemActionID, SystemRequest)
  /// The system does not do what `CallSystemRequest.request` asked for.
  case requestRefused(SystemRequest)
  /// The audio session is active: audio may run.
  case audioActivated
  /// It is no more: audio must stop.
  case audioDeactivated
  /// The route has another sample rate; `isReset`: the media services were reset.
  case audioChanged(isReset: Bool)
  /// The system has forgotten all calls and actions: they end.
  case reset
  /// The app came to the front, or left it.
  case foreground(Bool)
  /// What the user has said about the microphone.
  case microphone(MicrophonePermission)
  /// The system translates the call from now on, or no longer.
  case translates(Identifier, CallTranslate)
  /// VoIP pushes do not exist here: the state is `unsupported`.
  case unsupported
  /// Nothing to act on: for the trace alone.
  case noted(CallSystemNote)
}

/// What the phone does nothing about: it stands in the trace, as evidence of what the system does (docs/apps/on-device.md).
public enum CallSystemNote: Sendable {
  /// `providerDidBegin`.
  case began
  /// The answer to a request. `error`: of `CXErrorCodeRequestTransactionError.Code`; `requestRefused` follows it.
  case requested(SystemRequest, error: Int?)
  /// Where the audio goes now, and the hardware's rate, which may be 0 for a moment.
  case route(String, sampleRateHz: Int)
  /// Another owner has taken the audio session, or gives it back.
  case interrupted(Bool)
}

/// What the phone asks of the system.
public enum CallSystemRequest: Sendable {
  /// Show an incoming call. Answered by `CallSystemEvent.reported`. `isVideo` makes iOS unlock the device for the app.
  case report(Identifier, Handle, isVideo: Bool)
  /// The caller's name, or what can be done with the call, is another.
  case update(Identifier, Handle, CallCapabilities?)
  /// Show that the call is over, and why. Once a call, and not where the user ended it.
  case reportEnded(Identifier, CallEndedReason)
  /// An outgoing call is on its way: the other side's telephone may ring.
  case reportConnecting(Identifier)
  /// An outgoing call is connected. `at`: milliseconds since 1970, the gateway's.
  case reportConnected(Identifier, at: Int64?)
  /// What the app wants of a call: the system performs it as an action, or refuses it by `CallSystemEvent.requestRefused`.
  case request(SystemRequest)
  /// The action is done, or has failed (false).
  case complete(SystemActionID, Bool)
  /// Category and mode of the audio session, before it is activated.
  case configureAudio
}
