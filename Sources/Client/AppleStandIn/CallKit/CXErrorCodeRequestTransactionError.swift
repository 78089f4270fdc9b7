public import Foundation

public let CXErrorDomainRequestTransaction = "com.apple.CallKit.error.requesttransaction"

/// Why a transaction is not performed (R7).
public struct CXErrorCodeRequestTransactionError: CustomNSError, Hashable, Sendable {
  /// Codes that are not listed here occur with CallKit: decode `NSError.code`, and have a default.
  public enum Code: Int, Sendable {
    case unknown = 0, unentitled = 1, unknownCallProvider = 2, emptyTransaction = 3, unknownCallUUID = 4, callUUIDAlreadyExists =
      5, invalidAction = 6, maximumCallGroupsReached = 7, callIsProtected = 8
  }

  public let code: Code

  public init(_ code: Code, userInfo: [String: Any] = [:]) { self.code = code }

  public static var errorDomain: String { CXErrorDomainRequestTransaction }
  public var errorCode: Int { code.rawValue }
  public var errorUserInfo: [String: Any] {
    [NSLocalizedDescriptionKey: "\(CXErrorDomainRequestTransaction) \(errorCode): \(code)"]
  }

  public static var unknown: Code { .unknown }
  public static var unentitled: Code { .unentitled }
  public static var unknownCallProvider: Code { .unknownCallProvider }
  public static var emptyTransaction: Code { .emptyTransaction }
  public static var unknownCallUUID: Code { .unknownCallUUID }
  public static var callUUIDAlreadyExists: Code { .callUUIDAlreadyExists }
  public static var invalidAction: Code { .invalidAction }
  public static var maximumCallGroupsReached: Code { .maximumCallGroupsReached }
  public static var callIsProtected: Code { .callIsProtected }
}
