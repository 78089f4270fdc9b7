public import Foundation

/// Properties of a call on the call screen. A property that was never set leaves the shown value unchanged.
open class CXCallUpdate: NSObject, NSCopying {
  public var remoteHandle: CXHandle?
  public var localizedCallerName: String?
  // The defaults are not documented; these match the samples of the Xcode 11 headers.
  public var supportsHolding = true
  public var supportsGrouping = true
  public var supportsUngrouping = true
  public var supportsDTMF = true
  public var hasVideo = false

  public override init() {}

  open func copy(with zone: NSZone? = nil) -> Any {
    let copy = CXCallUpdate()
    copy.remoteHandle = remoteHandle
    copy.localizedCallerName = localizedCallerName
    copy.hasVideo = hasVideo
    copy.supportsHolding = supportsHolding
    copy.supportsDTMF = supportsDTMF
    copy.supportsGrouping = supportsGrouping
    copy.supportsUngrouping = supportsUngrouping
    return copy
  }
}
