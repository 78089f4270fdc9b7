#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Apple's table of statuses and reasons (*handling notification responses from APNs*).
///
/// | status | reasons | verdict |
/// |---|---|---|
/// | 200 | – | accepted |
/// | 400 | BadDeviceToken, DeviceTokenNotForTopic | wrong place |
/// | 400 | IdleTimeout | retry on another connection |
/// | 400 | all others | refused, a fault |
/// | 403 | ExpiredProviderToken | retry with a new token |
/// | 403, 404, 405 | all others | refused, a fault; the device stays |
/// | 410 | Unregistered, ExpiredToken | unregistered, if it registered before `timestamp` |
/// | 413 | PayloadTooLarge | retry without the caller |
/// | 429 | TooManyRequests, TooManyProviderTokenUpdates | refused; the second freezes the token |
/// | 500, 503 | InternalServerError, ServiceUnavailable, Shutdown | retry on another connection |
enum APNsAnswer {
  private struct Body: Decodable {
    var reason: String?
    var timestamp: Int64?
  }

  static func verdict(_ answer: PushAnswer) -> PushVerdict {
    if answer.status == 200 { return .accepted }
    // A middlebox may answer with anything; then only the status speaks.
    let body = try? JSONDecoder().decode(Body.self, from: Data(answer.body))
    let reason = body?.reason.map { String($0.prefix(64)) } ?? "status \(answer.status)"
    switch (answer.status, body?.reason) {
    case (400, "BadDeviceToken"), (400, "DeviceTokenNotForTopic"): return .wrongPlace(reason: reason)
    case (400, "IdleTimeout"): return .retry(.otherConnection, reason: reason)
    case (403, "ExpiredProviderToken"): return .retry(.newToken, reason: reason)
    case (410, _): return .unregistered(before: body?.timestamp, reason: reason)
    case (413, _): return .retry(.withoutCaller, reason: reason)
    case (429, _): return .refused(reason: reason, isFault: body?.reason == tooManyTokens)
    case (500..., _): return .retry(.otherConnection, reason: reason)
    default: return .refused(reason: reason, isFault: true)
    }
  }

  static let tooManyTokens = "TooManyProviderTokenUpdates"
}
