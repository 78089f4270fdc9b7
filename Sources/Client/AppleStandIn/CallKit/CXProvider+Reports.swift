public import Foundation
import TrunklineBytes

/// The app's reports of its calls. Any thread, but a push is reported on the thread of its delegate (R22).
extension CXProvider {
  /// Shows an incoming call; if it is not shown, an error of `CXErrorCodeIncomingCallError` states why. The completion runs
  /// on the delegate's queue.
  public func reportNewIncomingCall(
    with UUID: UUID, update: CXCallUpdate, completion: @escaping @Sendable ((any Error)?) -> Void
  ) {
    process.report(Identifier(UUID), update, by: self, completion: completion)
  }

  public func reportNewIncomingCall(with UUID: UUID, update: CXCallUpdate) async throws {
    let refusal: (any Error)? = await withCheckedContinuation { continuation in
      reportNewIncomingCall(with: UUID, update: update) { continuation.resume(returning: $0) }
    }
    if let refusal { throw refusal }
  }

  public func reportCall(with UUID: UUID, updated update: CXCallUpdate) {
    process.send(.update(Identifier(UUID), SystemMachine.Caller(update)))
  }

  public func reportCall(with UUID: UUID, endedAt dateEnded: Date?, reason endedReason: CXCallEndedReason) {
    guard let reason = SystemMachine.EndedReason(rawValue: endedReason.rawValue) else { return }
    process.send(.ended(Identifier(UUID), reason, at: dateEnded))
  }

  public func reportOutgoingCall(with UUID: UUID, startedConnectingAt dateStartedConnecting: Date?) {
    process.send(.connecting(Identifier(UUID), at: dateStartedConnecting))
  }

  public func reportOutgoingCall(with UUID: UUID, connectedAt dateConnected: Date?) {
    process.send(.connected(Identifier(UUID), at: dateConnected))
  }

  /// Makes a VoIP push of the app from the payload that its notification service extension decrypted (R15).
  public class func reportNewIncomingVoIPPushPayload(
    _ dictionaryPayload: [AnyHashable: Any], completion: (@Sendable ((any Error)?) -> Void)? = nil
  ) {
    AppProcess.current.reportFromExtension(dictionaryPayload, completion: completion)
  }

  public class func reportNewIncomingVoIPPushPayload(_ dictionaryPayload: [AnyHashable: Any]) async throws {
    let process = AppProcess.current
    let refusal: (any Error)? = await withCheckedContinuation { continuation in
      process.reportFromExtension(dictionaryPayload) { continuation.resume(returning: $0) }
    }
    if let refusal { throw refusal }
  }
}
