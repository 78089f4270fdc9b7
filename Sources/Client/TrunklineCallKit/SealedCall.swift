import Foundation

/// A call in a notification, for a service whose own server must not know that it is one: the server sends an alert with
/// `mutable-content`, the notification service extension finds the call in it and reports it, and the phone gets it as a VoIP push.
///
/// A gateway that pushes by itself sends VoIP pushes: then the phone opens a sealed caller, and no extension is needed.
///
/// ```swift
/// SealedCall.report(request.content.userInfo) { [answer] outcome in
///   // with the entitlement for filtering an empty content shows nothing; without it the report is refused
///   if case .reported = outcome { answer.give(isCall: true) } else { answer.give(isCall: false) }
/// }
/// ```
public enum SealedCall {
  /// What became of a notification.
  public enum Outcome: Sendable {
    /// The phone has it: show nothing, by an empty content. That needs the entitlement for notification filtering.
    case reported
    /// Show the notification as it is.
    case notACall
    /// The process is no notification service extension, or the app lacks the entitlement: `CXErrorCodeNotificationServiceExtensionError`.
    case refused(any Error)
  }

  /// The payload to report; nil: no call. The caller is in the clear if the key can be read, and stays sealed else: before the first unlock.
  ///
  /// - Parameters:
  ///   - userInfo: the notification's.
  ///   - secrets: where the app's phone keeps its key; nil: the keychain, in an access group that app and extension share.
  public static func payload(of userInfo: [AnyHashable: Any], secrets: (any SecretStore)? = nil) -> [AnyHashable: Any]? {
    var push = PushPayload(notification: userInfo)
    push?.openCaller(by: secrets ?? SystemParts.secrets())
    return push?.dictionary
  }

  /// Reports the call that the notification carries. The completion comes once, on any thread.
  public static func report(
    _ userInfo: [AnyHashable: Any], secrets: (any SecretStore)? = nil, completion: @escaping @Sendable (Outcome) -> Void
  ) {
    guard let payload = payload(of: userInfo, secrets: secrets) else { return completion(.notACall) }
    CXProvider.reportNewIncomingVoIPPushPayload(payload) { error in completion(error.map { .refused($0) } ?? .reported) }
  }
}
