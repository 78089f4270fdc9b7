public import Foundation

/// Capabilities of the app's calls. A provider copies it: a later change takes effect only when it is set again.
open class CXProviderConfiguration: NSObject, NSCopying {
  public internal(set) var localizedName: String?
  public var ringtoneSound: String?
  public var iconTemplateImageData: Data?
  public var maximumCallGroups = 2
  public var maximumCallsPerCallGroup = 5
  public var includesCallsInRecents = true
  public var supportsVideo = false
  private var isTranslated = false
  @available(iOS 26.0, macOS 26.0, *)
  public var supportsAudioTranslation: Bool {
    get { isTranslated }
    set { isTranslated = newValue }
  }
  public final var supportedHandleTypes: Set<CXHandle.HandleType> = []

  public override init() {}
  @available(*, deprecated, message: "The localized name is the app's")
  public convenience init(localizedName: String) {
    self.init()
    self.localizedName = localizedName
  }

  open func copy(with zone: NSZone? = nil) -> Any {
    let copy = CXProviderConfiguration()
    copy.localizedName = localizedName
    copy.ringtoneSound = ringtoneSound
    copy.iconTemplateImageData = iconTemplateImageData
    copy.maximumCallGroups = maximumCallGroups
    copy.maximumCallsPerCallGroup = maximumCallsPerCallGroup
    copy.includesCallsInRecents = includesCallsInRecents
    copy.supportsVideo = supportsVideo
    copy.isTranslated = isTranslated
    copy.supportedHandleTypes = supportedHandleTypes
    return copy
  }
}
