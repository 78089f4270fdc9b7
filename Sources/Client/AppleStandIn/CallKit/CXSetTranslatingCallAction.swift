public import Foundation

/// The translator: the system or the app. Apple's page has `.external` where the header has `custom` (undecided: `?`).
public enum CXTranslationEngine: Int, Sendable { case `default`, custom }

/// The translation of a connected call is switched on or off.
@available(iOS 26.0, macOS 26.0, *)
open class CXSetTranslatingCallAction: CXCallAction, @unchecked Sendable {
  public let isTranslating: Bool
  public let localLanguage: String
  public let remoteLanguage: String

  public init(call uuid: UUID, isTranslating: Bool, localLanguage: String, remoteLanguage: String) {
    (self.isTranslating, self.localLanguage, self.remoteLanguage) = (isTranslating, localLanguage, remoteLanguage)
    super.init(call: uuid)
  }
  init(copying uuid: UUID, call: UUID, isTranslating: Bool, localLanguage: String, remoteLanguage: String) {
    (self.isTranslating, self.localLanguage, self.remoteLanguage) = (isTranslating, localLanguage, remoteLanguage)
    super.init(copying: uuid, call: call)
  }

  open func fulfill(using translationEngine: CXTranslationEngine) { complete(isFulfilled: true, date: nil) }
}
