/// What an operator should do about a push that was not accepted; for logs and `trunkline push test`.
public enum PushAdvice {
  /// One sentence; nil if nothing needs doing.
  public static func text(_ report: PushReport) -> String? {
    guard report.outcome != .accepted else { return nil }
    return common(report) ?? report.target.service.provider.advice(report) ?? byStatus(report)
  }

  /// A connection that broke without an alert after our certificate was shown.
  static func isGuess(_ reason: String) -> Bool { reason.hasSuffix("after our certificate was shown") }

  /// A TLS alert about our certificate, a file of it that cannot be used, or a guess at one of them.
  static func isCertificateRefused(_ reason: String) -> Bool {
    if isGuess(reason) || reason.contains("local SSL certificate") { return true }
    guard let alert = reason.firstRange(of: "TLS alert: ").map({ reason[$0.upperBound...] }) else { return false }
    return ["certificate", "unknown ca", "access denied"].contains { alert.contains($0) }
  }

  /// Reasons on our side, the same for all services.
  private static func common(_ report: PushReport) -> String? {
    let service = report.target.service.rawValue
    switch report.reason {
    case "noProvider": return "the configuration has no push.\(service): add it, then send SIGHUP"
    case "circuitOpen":
      return
        "the service failed several times in a row and gets no requests for now: see trunkline_push_circuit_open and try again"
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
        "the service's certificate is not trusted: with a stand-in set push.ca to its certificate; else TLS is intercepted on the way"
    case let text where text.hasPrefix("broke:"):
      return "no connection to the service: check network, firewall (TCP 443 or 2197) and, with a stand-in, push.ca"
    case let text where text.hasPrefix("unsigned"): return "the key cannot sign: check the key file of push.\(service)"
    default: return nil
    }
  }

  private static func byStatus(_ report: PushReport) -> String? {
    switch report.status {
    case 401?, 403?: "the service refuses our credentials: check the keys of push.\(report.target.service.rawValue)"
    case 404?, 410?: registrationGone
    case let status? where status >= 500: "the service reports an internal error: try again"
    default: nil
    }
  }

  static let registrationGone = "the app was deleted or has a new token: it registers again at its next start"
  static let tooMany = "too many pushes to this device or project: wait"
}
