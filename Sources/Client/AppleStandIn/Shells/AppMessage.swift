public import Bytes
public import Foundation

/// What an app's process says to the phone: in one process as values, over a socket as lines of JSON.
public enum AppMessage: Codable, Sendable, Equatable {
  /// The process runs; `process` is its number, 0 for one that is not its own.
  case launched(process: Int32)
  case wantsPushes
  case provider(ProviderFacts)
  case hasDelegate
  case invalidated
  /// The delegate method of a push returned: R1 is judged. What the process said before it comes before it.
  case pushHandled(Int)
  /// The completion that the delegate method was given was called.
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
  /// A rule that only the app's process can see broken.
  case violation(SystemMachine.Rule, String)
}
