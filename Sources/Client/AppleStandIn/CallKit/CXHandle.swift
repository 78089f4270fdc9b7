public import Foundation

/// The other party of a call. The type must be one of the provider's `supportedHandleTypes`, else its entry in Recents does nothing
/// (R17).
open class CXHandle: NSObject, NSCopying, @unchecked Sendable {  // immutable
  public enum HandleType: Int, Sendable, Codable { case generic = 1, phoneNumber, emailAddress }

  public let type: HandleType
  public let value: String

  public init(type: HandleType, value: String) { (self.type, self.value) = (type, value) }

  public func isEqual(to handle: CXHandle) -> Bool { handle.type == type && handle.value == value }
  open override func isEqual(_ object: Any?) -> Bool { (object as? CXHandle).map { isEqual(to: $0) } ?? false }
  open override var hash: Int { value.hashValue ^ type.rawValue }
  open func copy(with zone: NSZone? = nil) -> Any { self }
}
