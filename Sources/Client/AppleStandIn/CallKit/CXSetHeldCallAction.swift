public import Foundation

/// Holds or resumes a call.
open class CXSetHeldCallAction: CXCallAction, @unchecked Sendable {  // changed only before it is requested, as in CallKit
  public var isOnHold: Bool

  public init(call callUUID: UUID, onHold: Bool) {
    isOnHold = onHold
    super.init(call: callUUID)
  }
  init(copying uuid: UUID, call: UUID, onHold: Bool) {
    isOnHold = onHold
    super.init(copying: uuid, call: call)
  }
}
