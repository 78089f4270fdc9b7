public import Foundation

/// A call joins another one's group; nil: it leaves its group.
open class CXSetGroupCallAction: CXCallAction, @unchecked Sendable {  // changed only before it is requested, as in CallKit
  public var callUUIDToGroupWith: UUID?

  public init(call callUUID: UUID, callUUIDToGroupWith: UUID?) {
    self.callUUIDToGroupWith = callUUIDToGroupWith
    super.init(call: callUUID)
  }
  init(copying uuid: UUID, call: UUID, callUUIDToGroupWith: UUID?) {
    self.callUUIDToGroupWith = callUUIDToGroupWith
    super.init(copying: uuid, call: call)
  }
}
