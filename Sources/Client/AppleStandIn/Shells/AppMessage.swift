public import Foundation
public import TrunklineBytes

/// A message of an app's process to the phone: a value in one process, a line of JSON over a socket.
public enum AppMessage: Codable, Sendable, Equatable {
  /// The process runs; `process` is its number, 0 if the app has no process of its own.
  case launched(process: Int32)
  case wantsPushes
  case provider(ProviderFacts)
  case hasDelegate
  case invalidated
  /// The delegate method of a push returned: R1 is judged. Earlier messages of the process arrive before it.
  case pushHandled(Int)
  /// The app called the completion of the delegate method.
  case pushCompleted(Int)
  /// `isOnQueue`: on the thread of the push's or the provider's delegate (R22).
  case report(Identifier, SystemMachine.Caller, isOnQueue: Bool)
  case update(Identifier, SystemMachine.Caller)
  case ended(Identifier, SystemMachine.EndedReason, at: Date?)
  case connecting(Identifier, at: Date?)
  case connected(Identifier, at: Date?)
  case request(Int, [SystemMachine.Request])
  case complete(Int, isFulfilled: Bool, at: Date?)
  /// `AVAudioSession.setActive` (R8).
  case activatedItself(Bool)
  /// `AVAudioSession.setCategory` (R20).
  case categorySet
  /// `AVAudioSession.overrideOutputAudioPort`.
  case speaker(Bool)
  /// R15: `CXProvider.reportNewIncomingVoIPPushPayload`.
  case extensionPush(Int, payload: String, isExtension: Bool)
  /// A rule whose violation only the app's process can detect.
  case violation(SystemMachine.Rule, String)
}
