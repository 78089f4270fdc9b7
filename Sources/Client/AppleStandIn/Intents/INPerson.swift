public import Foundation

/// Whom an intent is about. A stub: handle and name only.
open class INPerson: NSObject, @unchecked Sendable {  // immutable
  public let personHandle: INPersonHandle?
  public let displayName: String

  public init(personHandle: INPersonHandle, displayName: String = "") {
    (self.personHandle, self.displayName) = (personHandle, displayName)
  }
}
