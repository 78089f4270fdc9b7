public import Foundation

public enum INCallCapability: Int, Sendable { case unknown, audioCall, videoCall }

open class INIntent: NSObject, @unchecked Sendable {}  // immutable

/// A tap on an entry of Recents asks the app to call again (R17).
open class INStartCallIntent: INIntent, @unchecked Sendable {  // immutable
  public let contacts: [INPerson]?
  public let callCapability: INCallCapability

  init(contacts: [INPerson]?, callCapability: INCallCapability) {
    (self.contacts, self.callCapability) = (contacts, callCapability)
  }
}
