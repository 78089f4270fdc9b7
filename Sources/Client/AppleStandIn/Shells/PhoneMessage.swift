public import Foundation
public import TrunklineBytes

/// A message of the phone to an app's process: a value in one process, a line of JSON over a socket.
public enum PhoneMessage: Codable, Sendable, Equatable {
  /// Bytes of the push token.
  case token([UInt8])
  case tokenInvalidated
  /// `payload`: the text of a JSON object; `mustReport` nil: by the older method, without metadata.
  case push(Int, payload: String, mustReport: Bool?)
  /// `error`: of `CXErrorCodeIncomingCallError.Code`.
  case reported(Identifier, error: Int?)
  /// `error`: of `CXErrorCodeRequestTransactionError.Code`.
  case requested(Int, error: Int?)
  /// `error`: of `CXErrorCodeNotificationServiceExtensionError.Code` (R15).
  case extensionPushed(Int, error: Int?)
  case began
  case reset
  case perform(Int, SystemMachine.Request, until: Date)
  case timedOut(Int)
  case activated
  case deactivated
  case call(CallFacts)
  /// Another call gets the audio, or gives it back.
  case interrupted(Bool)
  /// Hz; 0 while it changes (R28).
  case route(SystemMachine.Route, sampleRate: Int)
  case mediaReset
  /// R23.
  case capture(isSilent: Bool)
  /// A tap on an entry of Recents (R17).
  case startCall(SystemMachine.Caller)
  case foreground(Bool)
  /// R29: the keychain can be read.
  case unlockedOnce(Bool)
  /// R27: open sockets are lost; new ones fail for this many seconds.
  case socketsDie(seconds: Double)
}
