// What a notification service extension uses of UserNotifications.
public import Foundation

/// UserNotifications/UNNotificationContent.h
open class UNNotificationContent: NSObject {
  public let userInfo: [AnyHashable: Any]
  public init(userInfo: [AnyHashable: Any] = [:]) { self.userInfo = userInfo }
}
/// UserNotifications/UNNotificationRequest.h
open class UNNotificationRequest: NSObject {
  public let content: UNNotificationContent
  public init(content: UNNotificationContent) { self.content = content }
}
/// UserNotifications/UNNotificationServiceExtension.h
open class UNNotificationServiceExtension: NSObject {
  open func didReceive(
    _ request: UNNotificationRequest, withContentHandler contentHandler: @escaping (UNNotificationContent) -> Void
  ) {}
  open func serviceExtensionTimeWillExpire() {}
}
