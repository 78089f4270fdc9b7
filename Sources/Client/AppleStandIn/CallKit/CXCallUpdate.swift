public import Foundation

/// What the call screen shows of a call. Properties that were never set leave what the system shows as it is.
open class CXCallUpdate: NSObject, NSCopying {
  public var remoteHandle: CXHandle?
  public var localizedCallerName: String?
  // The defaults are not documented; these are what the Xcode 11 headers' samples behave like.
  public var supportsHolding = true
  public var supportsGrouping = true
  public var supportsUngrouping = true
  public var supportsDTMF = true
  public var hasVideo = false

  public override init() {}

  open func copy(with zone: NSZone? = nil) -> Any {
    let copy = CXCallUpdate()
    (copy.remoteHandle, copy.localizedCallerName, copy.hasVideo) = (remoteHandle, localizedCallerName, hasVideo)
    (copy.supportsHolding, copy.supportsDTMF) = (supportsHolding, supportsDTMF)
    (copy.supportsGrouping, copy.supportsUngrouping) = (supportsGrouping, supportsUngrouping)
    return copy
  }
}
