public import Foundation

/// A call's microphone is muted or unmuted.
open class CXSetMutedCallAction: CXCallAction, @unchecked Sendable {  // changed only before it is requested, as in CallKit
  public var isMuted: Bool

  public init(call callUUID: UUID, muted: Bool) {
    isMuted = muted
    super.init(call: callUUID)
  }
  init(copying uuid: UUID, call: UUID, muted: Bool) {
    isMuted = muted
    super.init(copying: uuid, call: call)
  }
}
