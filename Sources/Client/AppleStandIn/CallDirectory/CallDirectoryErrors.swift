public import Foundation

public let CXErrorDomainCallDirectoryManager = "com.apple.CallKit.error.calldirectorymanager"

/// Apple's error of the Call Directory in the shape that Swift gives an imported `NS_ERROR_ENUM`: a struct with a `Code`. Codes
/// outside of the enum occur (11 and 102 were seen); on Linux they are an `NSError`, because a Swift enum cannot hold them.
public struct CXErrorCodeCallDirectoryManagerError: CustomNSError, Hashable, Sendable {
  public enum Code: Int, Sendable {
    case unknown = 0
    case noExtensionFound
    case loadingInterrupted
    case entriesOutOfOrder
    case duplicateEntries
    case maximumEntriesExceeded
    case extensionDisabled
    case currentlyLoading
    case unexpectedIncrementalRemoval
  }

  public let code: Code

  public init(_ code: Code) { self.code = code }

  public static var errorDomain: String { CXErrorDomainCallDirectoryManager }
  public var errorCode: Int { code.rawValue }
  public var errorUserInfo: [String: Any] { [:] }

  public static var unknown: Code { .unknown }
  public static var noExtensionFound: Code { .noExtensionFound }
  public static var loadingInterrupted: Code { .loadingInterrupted }
  public static var entriesOutOfOrder: Code { .entriesOutOfOrder }
  public static var duplicateEntries: Code { .duplicateEntries }
  public static var maximumEntriesExceeded: Code { .maximumEntriesExceeded }
  public static var extensionDisabled: Code { .extensionDisabled }
  public static var currentlyLoading: Code { .currentlyLoading }
  public static var unexpectedIncrementalRemoval: Code { .unexpectedIncrementalRemoval }

  /// The error as an app receives it; any integer is allowed.
  static func error(_ code: Int) -> any Error {
    Code(rawValue: code).map { CXErrorCodeCallDirectoryManagerError($0) } ?? NSError(domain: errorDomain, code: code)
  }
}

/// `catch CXErrorCodeCallDirectoryManagerError.extensionDisabled`, as with the imported error.
public func ~= (code: CXErrorCodeCallDirectoryManagerError.Code, error: any Error) -> Bool {
  let error = error as NSError
  return error.domain == CXErrorDomainCallDirectoryManager && error.code == code.rawValue
}
