public import Foundation

/// The person of an intent. A stub: handle and name only.
open class INPerson: NSObject, @unchecked Sendable {  // immutable
  public let personHandle: INPersonHandle?
  public let displayName: String

  public init(personHandle: INPersonHandle, displayName: String = "") {
    (self.personHandle, self.displayName) = (personHandle, displayName)
  }
}
