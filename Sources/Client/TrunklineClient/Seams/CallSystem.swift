public import Dispatch
public import TrunklineAppProtocol
public import TrunklineBytes
public import TrunklineClientMachines

/// Shows calls to the user: CallKit by `TrunklineCallKit`, or the app itself (`CallSystem.none`).
///
/// Events are passed in on `queue`, and handled before the call returns: a push's report is made before the delegate returns.
/// `perform` is called there too.
public protocol CallSystem: Sendable {
  /// Called once, before any other call.
  func attach(to queue: DispatchQueue, _ events: @escaping @Sendable (CallSystemEvent) -> Void)
  /// Performs a request of the phone. On the queue of ``attach(to:_:)``; answers are passed in as events, also if the system
  /// answers at once.
  func perform(_ request: CallSystemRequest)
}

/// Events from the system to the phone.
public enum CallSystemEvent: Sendable {
  /// A VoIP push: its payload as JSON, not validated. The phone has reported a call when this returns.
  case pushed(payload: [UInt8], mustReport: Bool)
  /// The token for pushes to this process; nil: none any longer.
  case pushToken(DevicePut.Push?)
  /// The answer to `CallSystemRequest.report`: nil if the call is shown, else why it is not.
  case reported(Identifier, ReportRefusal?)
  /// The user, or the app through the system, requests an action of a call; the phone completes it once. `timeout`: the time
  /// until the system ends it.
  case perform(SystemActionID, SystemRequest, timeout: Duration?)
  /// The system timed an action out: it must not be completed any longer.
  case timedOut(SystemActionID, SystemRequest)
  /// The system refuses `CallSystemRequest.request`.
  case requestRefused(SystemRequest)
  /// The audio session is active: audio may run.
  case audioActivated
  /// The audio session is no longer active: audio must stop.
  case audioDeactivated
  /// The route has another sample rate; `isReset`: the media services were reset.
  case audioChanged(isReset: Bool)
  /// The system has dropped all calls and actions: they end.
  case reset
  /// The app entered the foreground, or left it.
  case foreground(Bool)
  /// The user's permission for the microphone.
  case microphone(MicrophonePermission)
  /// The system starts or stops translating the call.
  case translates(Identifier, CallTranslate)
  /// VoIP pushes do not exist here: the state is `unsupported`.
  case unsupported
  /// Requires no action: for the trace alone.
  case noted(CallSystemNote)
}

/// An event without effect on the phone: the trace contains it, as evidence of the system's behaviour (docs/apps/on-device.md).
public enum CallSystemNote: Sendable {
  /// `providerDidBegin`.
  case began
  /// The answer to a request. `error`: of `CXErrorCodeRequestTransactionError.Code`; `requestRefused` follows it.
  case requested(SystemRequest, error: Int?)
  /// The present audio route, and the hardware's rate, which may be 0 for a moment.
  case route(String, sampleRateHz: Int)
  /// Another owner has claimed the audio session, or releases it.
  case interrupted(Bool)
}

/// Requests of the phone to the system.
public enum CallSystemRequest: Sendable {
  /// Show an incoming call. Answered by `CallSystemEvent.reported`. `isVideo` makes iOS unlock the device for the app.
  case report(Identifier, Handle, isVideo: Bool)
  /// The caller's name, or the call's capabilities, have changed.
  case update(Identifier, Handle, CallCapabilities?)
  /// Show that the call has ended, with the reason. Once per call, and not if the user ended it.
  case reportEnded(Identifier, CallEndedReason)
  /// An outgoing call is being connected: the callee's telephone may ring.
  case reportConnecting(Identifier)
  /// An outgoing call is connected. `at`: the gateway's time, milliseconds since 1970.
  case reportConnected(Identifier, at: Int64?)
  /// The app's request for a call: the system performs it as an action, or refuses it by `CallSystemEvent.requestRefused`.
  case request(SystemRequest)
  /// The action is done, or has failed (false).
  case complete(SystemActionID, Bool)
  /// Category and mode of the audio session, before it is activated.
  case configureAudio
}
