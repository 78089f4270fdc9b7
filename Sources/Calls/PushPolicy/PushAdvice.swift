/// What somebody should do about a push that was not accepted; for logs and `trunkline push test`.
public enum PushAdvice {
  /// One sentence; nil if nothing needs doing.
  public static func text(_ report: PushReport) -> String? {
    guard report.outcome != .accepted else { return nil }
    return ours(report) ?? services(report)
  }

  /// A connection that broke once our certificate was shown, without a word.
  static func isGuess(_ reason: String) -> Bool { reason.hasSuffix("after our certificate was shown") }

  /// A TLS alert about our certificate, a file of it that cannot be used, or a guess at one of them.
  static func isCertificateRefused(_ reason: String) -> Bool {
    if isGuess(reason) || reason.contains("local SSL certificate") { return true }
    guard let alert = reason.firstRange(of: "TLS alert: ").map({ reason[$0.upperBound...] }) else { return false }
    return ["certificate", "unknown ca", "access denied"].contains { alert.contains($0) }
  }

  private static func ours(_ report: PushReport) -> String? {
    let service = report.target.service.rawValue
    switch report.reason {
    case "noProvider": return "the configuration has no push.\(service): add it, then send SIGHUP"
    case "circuitOpen":
      return
        "the service failed several times in a row and is left alone for a moment: see trunkline_push_circuit_open and try again"
    case "tooMany": return "more pushes are under way than there is room for: the service is too slow"
    case "unusable":
      return "the registration cannot be pushed to (host of the subscription not in push.webpush.hosts, or the payload too large)"
    case "callOver", "stopped": return nil
    case "tooLate": return "no answer inside the ring window: is the service reachable from here?"
    case let text where text.hasPrefix("broke:") && isCertificateRefused(text):
      return
        "the service refuses our certificate (push.apns.certificate), or closed the connection when it was shown: is it a VoIP Services certificate of this app, with its own "
        + "key, and not expired? Renew it at Apple, replace the files, then send SIGHUP"
    case let text where text.hasPrefix("broke:") && text.contains("peer certificate"):
      return
        "the service's certificate is not trusted: with a stand-in set push.ca to its certificate; else somebody is in between"
    case let text where text.hasPrefix("broke:"):
      return "no connection to the service: check network, firewall (TCP 443 or 2197) and, with a stand-in, push.ca"
    case let text where text.hasPrefix("accessToken"):
      return "Google gave no access token: check push.fcm.service_account, its key may be deleted, and this machine's clock"
    case let text where text.hasPrefix("unsigned"): return "the key cannot sign: check the key file of push.\(service)"
    default: return nil
    }
  }

  private static func services(_ report: PushReport) -> String? {
    let target = report.target
    let other = target.environment == .production ? "sandbox" : "production"
    switch report.reason {
    case "BadDeviceToken":
      return "not a \(target.environment.rawValue) token: it is most likely of \(other) (builds from Xcode have sandbox tokens); "
        + "the app must send env: \(other) in device.put"
    case "DeviceTokenNotForTopic":
      return "the token is of another app than \(target.topic): the app must send its own topic in device.put"
    case "TopicDisallowed", "BadTopic", "MissingTopic":
      return "this key or certificate may not push to \(target.topic): check topic, team and the key's scope"
    case "InvalidProviderToken", "UnrelatedKeyIdInToken":
      return "Apple does not know the key: push.apns.key_id, team_id and key_file do not belong together, or the key was revoked"
    case "BadEnvironmentKeyIdInToken", "BadEnvironmentKeyInToken":
      return
        "the key is limited to the other environment than \(target.environment.rawValue): make one for both, or set push.apns.url"
    case "ExpiredProviderToken": return "this machine's clock is wrong: Apple takes provider tokens of the last hour only"
    case "MissingProviderToken", "BadCertificate", "BadCertificateEnvironment", "Forbidden":
      return "the certificate is refused: is it a VoIP Services certificate for this app and environment, and not expired?"
    case "Unregistered", "ExpiredToken", "UNREGISTERED", "NOT_FOUND":
      return "the app was deleted or has a new token: it registers again at its next start"
    case "PayloadTooLarge": return "the push is too large even without name and number: shorten push.gateway"
    case "TooManyRequests", "QUOTA_EXCEEDED": return "too many pushes to this device or project: wait"
    case "TooManyProviderTokenUpdates":
      return "another program signs provider tokens for this team too often: one of them must stop"
    case "SENDER_ID_MISMATCH": return "the token is of another Firebase project: check push.fcm.service_account"
    case "INVALID_ARGUMENT": return "Firebase cannot read token or message: does the app send its registration token unchanged?"
    default:
      switch report.status {
      case 401?, 403?: return "the service refuses our credentials: check the keys of push.\(target.service.rawValue)"
      case 404?, 410?: return "the registration is gone: the app registers again at its next start"
      case let status? where status >= 500: return "the service has trouble of its own: try again"
      default: return nil
      }
    }
  }
}
