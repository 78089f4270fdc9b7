/// The services that can wake an app. A new one is a file with its `PushProvider`, a case and a row here, and its settings.
public enum PushService: String, Sendable, Hashable, CaseIterable, Codable {
  case apns, fcm
  case webPush = "webpush"

  /// The table of services.
  public var provider: any PushProvider.Type {
    switch self {
    case .apns: APNsProvider.self
    case .fcm: FCMProvider.self
    case .webPush: WebPushProvider.self
    }
  }

  /// Every `kind` of a registration, for the answer to another one.
  public static var kinds: String { allCases.map { $0.provider.registrationKind }.joined(separator: ", ") }

  /// The service of a registration's `kind` (`device.put`); nil if there is none.
  public init?(kind: String) {
    guard let service = Self.allCases.first(where: { $0.provider.registrationKind == kind }) else { return nil }
    self = service
  }
}
