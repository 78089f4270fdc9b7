public import Foundation

/// An address of a person.
open class INPersonHandle: NSObject, @unchecked Sendable {  // immutable
  public let value: String?
  public let type: INPersonHandleType

  public init(value: String?, type: INPersonHandleType) { (self.value, self.type) = (value, type) }
}

public enum INPersonHandleType: Int, Sendable { case unknown, emailAddress, phoneNumber }
