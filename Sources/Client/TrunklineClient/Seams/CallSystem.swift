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
  func perform(_ order: CallSystemOrder)
}

public enum CallSystemEvent: Sendable {
  /// A VoIP push: its payload as JSON, whatever it is. The phone has reported a call when this returns.
  case pushed(payload: [UInt8], mustReport: Bool)
  /// Where pushes for this process are to be sent; nil: nowhere any more.
  case pushToken(DevicePut.Push?)
  case reported(Identifier, ReportRefusal?)
  /// `timeout`: what is left until the system gives the action up.
  case perform(SystemActionID, SystemRequest, timeout: Duration?)
  case timedOut(SystemActionID, SystemRequest)
  case requestRefused(SystemRequest)
  case audioActivated, audioDeactivated
  /// The route has another sample rate; `isReset`: the media services were reset.
  case audioChanged(isReset: Bool)
  case reset
  case foreground(Bool)
  case microphone(MicrophonePermission)
  /// VoIP pushes do not exist here: the state is `unsupported`.
  case unsupported
  case noted(CallSystemNote)
}

/// What the phone does nothing about: it stands in the trace, as evidence of what the system does (docs/on-device.md).
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

public enum CallSystemOrder: Sendable {
  case report(Identifier, Handle, isVideo: Bool)
  case update(Identifier, Handle, CallCapabilities?)
  case reportEnded(Identifier, CallEndedReason)
  case reportConnecting(Identifier)
  /// `at`: milliseconds since 1970, the gateway's.
  case reportConnected(Identifier, at: Int64?)
  case request(SystemRequest)
  case complete(SystemActionID, Bool)
  /// Category and mode of the audio session, before it is activated.
  case configureAudio
}
