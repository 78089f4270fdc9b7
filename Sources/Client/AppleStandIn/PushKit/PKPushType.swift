/// A kind of push that a registry requests. The stand-in sends `voIP` only.
public struct PKPushType: RawRepresentable, Hashable, Sendable {
  public let rawValue: String
  public init(rawValue: String) { self.rawValue = rawValue }

  public static let voIP = PKPushType(rawValue: "PKPushTypeVoIP")
  public static let fileProvider = PKPushType(rawValue: "PKPushTypeFileProvider")
  @available(*, deprecated, message: "Use voIP or fileProvider")
  public static let complication = PKPushType(rawValue: "PKPushTypeComplication")
}
