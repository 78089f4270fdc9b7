public import Foundation

/// What a push carries.
open class PKPushPayload: NSObject, @unchecked Sendable {  // immutable: property-list values only
  public let type: PKPushType
  public let dictionaryPayload: [AnyHashable: Any]

  /// `json`: an object; anything else is an empty payload.
  init(type: PKPushType, json: String) {
    let object = try? JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
    (self.type, dictionaryPayload) = (type, object ?? [:])
  }
}
