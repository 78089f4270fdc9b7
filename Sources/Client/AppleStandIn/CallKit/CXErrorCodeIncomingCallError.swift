public import Foundation

public let CXErrorDomainIncomingCall = "com.apple.CallKit.error.incomingcall"

/// Why an incoming call is not shown. It counts as reported all the same (R4, R5).
public struct CXErrorCodeIncomingCallError: CustomNSError, Hashable, Sendable {
  /// Codes that are not listed here occur with CallKit: decode `NSError.code`, and have a default.
  public enum Code: Int, Sendable {
    case unknown = 0, unentitled = 1, callUUIDAlreadyExists = 2, filteredByDoNotDisturb = 3, filteredByBlockList = 4,
      filteredDuringRestrictedSharingMode = 5, callIsProtected = 6, filteredBySensitiveParticipants = 7
  }

  public let code: Code

  public init(_ code: Code, userInfo: [String: Any] = [:]) { self.code = code }

  public static var errorDomain: String { CXErrorDomainIncomingCall }
  public var errorCode: Int { code.rawValue }
  public var errorUserInfo: [String: Any] { [NSLocalizedDescriptionKey: "\(CXErrorDomainIncomingCall) \(errorCode): \(code)"] }

  public static var unknown: Code { .unknown }
  public static var unentitled: Code { .unentitled }
  public static var callUUIDAlreadyExists: Code { .callUUIDAlreadyExists }
  public static var filteredByDoNotDisturb: Code { .filteredByDoNotDisturb }
  public static var filteredByBlockList: Code { .filteredByBlockList }
  public static var filteredDuringRestrictedSharingMode: Code { .filteredDuringRestrictedSharingMode }
  public static var callIsProtected: Code { .callIsProtected }
  public static var filteredBySensitiveParticipants: Code { .filteredBySensitiveParticipants }
}
