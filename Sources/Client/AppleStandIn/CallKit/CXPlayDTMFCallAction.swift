public import Foundation

/// Digits are played to the other side.
open class CXPlayDTMFCallAction: CXCallAction, @unchecked Sendable {  // changed only before it is requested, as in CallKit
  public enum ActionType: Int, Sendable { case singleTone = 1, softPause, hardPause }

  public var digits: String
  public var type: ActionType

  public init(call callUUID: UUID, digits: String, type: ActionType) {
    (self.digits, self.type) = (digits, type)
    super.init(call: callUUID)
  }
  init(copying uuid: UUID, call: UUID, digits: String, type: ActionType) {
    (self.digits, self.type) = (digits, type)
    super.init(copying: uuid, call: call)
  }
}
