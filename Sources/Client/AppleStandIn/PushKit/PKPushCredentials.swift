public import Foundation

/// The token under which the push service knows this app on this device.
open class PKPushCredentials: NSObject, @unchecked Sendable {  // immutable
  public let type: PKPushType
  public let token: Data

  init(type: PKPushType, token: Data) { (self.type, self.token) = (type, token) }
}
