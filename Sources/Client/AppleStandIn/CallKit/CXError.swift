public import Foundation

public let CXErrorDomain = "com.apple.CallKit.error"

/// A fault of the app's set-up.
public struct CXError: CustomNSError, Hashable, Sendable {
  /// Codes that are not listed here occur with CallKit: decode `NSError.code`, and have a default.
  public enum Code: Int, Sendable {
    case unknownError = 0, unentitled = 1, invalidArgument = 2, missingVoIPBackgroundMode = 3
  }

  public let code: Code

  public init(_ code: Code, userInfo: [String: Any] = [:]) { self.code = code }

  public static var errorDomain: String { CXErrorDomain }
  public var errorCode: Int { code.rawValue }
  public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: "\(CXErrorDomain) \(errorCode): \(code)"] }

  public static var unknownError: Code { .unknownError }
  public static var unentitled: Code { .unentitled }
  public static var invalidArgument: Code { .invalidArgument }
  public static var missingVoIPBackgroundMode: Code { .missingVoIPBackgroundMode }
}
