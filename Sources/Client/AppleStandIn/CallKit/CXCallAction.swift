public import Foundation

/// An action on one call.
open class CXCallAction: CXAction, @unchecked Sendable {
  public let callUUID: UUID

  public init(call callUUID: UUID) {
    self.callUUID = callUUID
    super.init()
  }
  init(copying uuid: UUID, call callUUID: UUID) {
    self.callUUID = callUUID
    super.init(copying: uuid)
  }
}
