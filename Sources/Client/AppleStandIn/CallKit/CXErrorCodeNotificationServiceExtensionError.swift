public import Foundation

public let CXErrorDomainNotificationServiceExtension = "com.apple.CallKit.error.notificationserviceextension"

/// Why a push of a notification service extension is refused (R15).
public struct CXErrorCodeNotificationServiceExtensionError: CustomNSError, Hashable, Sendable {
  /// Codes that are not listed here occur with CallKit: decode `NSError.code`, and have a default.
  public enum Code: Int, Sendable {
    case unknown = 0, invalidClientProcess = 1, missingNotificationFilteringEntitlement = 2
  }

  public let code: Code

  public init(_ code: Code, userInfo: [String: Any] = [:]) { self.code = code }

  public static var errorDomain: String { CXErrorDomainNotificationServiceExtension }
  public var errorCode: Int { code.rawValue }
  public var errorUserInfo: [String: Any] {
    [NSLocalizedDescriptionKey: "\(CXErrorDomainNotificationServiceExtension) \(errorCode): \(code)"]
  }

  public static var unknown: Code { .unknown }
  public static var invalidClientProcess: Code { .invalidClientProcess }
  public static var missingNotificationFilteringEntitlement: Code { .missingNotificationFilteringEntitlement }
}
