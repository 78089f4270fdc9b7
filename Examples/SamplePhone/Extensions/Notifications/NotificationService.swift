import Foundation
import Synchronization
import TrunklineCallKit
import UserNotifications

/// For a service whose own server must not know that its notification is a call: finds it, and makes a VoIP push of it. With pushes of the
/// gateway's this target is not needed.
final class NotificationService: UNNotificationServiceExtension {
  private let answer = Answer()

  override func didReceive(
    _ request: UNNotificationRequest, withContentHandler contentHandler: @escaping (UNNotificationContent) -> Void
  ) {
    // the system's block may be called on any thread, and nothing changes the content
    nonisolated(unsafe) let show = contentHandler
    nonisolated(unsafe) let original = request.content
    answer.wait { isCall in show(isCall ? UNNotificationContent() : original) }
    SealedCall.report(request.content.userInfo) { [answer] outcome in
      // with the entitlement for filtering an empty content shows nothing; without it the report is refused
      if case .reported = outcome { answer.give(isCall: true) } else { answer.give(isCall: false) }
    }
  }

  override func serviceExtensionTimeWillExpire() { answer.give(isCall: false) }
}

/// What the system waits for: given once, by whoever comes first.
private final class Answer: Sendable {
  private let waiting = Mutex<(@Sendable (Bool) -> Void)?>(nil)

  func wait(_ show: @escaping @Sendable (Bool) -> Void) { waiting.withLock { $0 = show } }
  func give(isCall: Bool) {
    let show = waiting.withLock { waiting in
      defer { waiting = nil }
      return waiting
    }
    show?(isCall)
  }
}
