public import Foundation

/// An outgoing call begins.
open class CXStartCallAction: CXCallAction, @unchecked Sendable {  // changed only before it is requested, as in CallKit
  public var handle: CXHandle
  public var contactIdentifier: String?
  public var isVideo = false

  public init(call callUUID: UUID, handle: CXHandle) {
    self.handle = handle
    super.init(call: callUUID)
  }
  init(copying uuid: UUID, call: UUID, handle: CXHandle, of original: CXStartCallAction?) {
    self.handle = handle
    super.init(copying: uuid, call: call)
    contactIdentifier = original?.contactIdentifier
    isVideo = original?.isVideo ?? false
  }

  open func fulfill(withDateStarted dateStarted: Date) { complete(isFulfilled: true, date: dateStarted) }
}
