/// How a call ended, for one device (docs/protocol.md, Reasons). A reason this version does not know is read as `unknown`.
public enum EndReason: String, CaseIterable, Sendable, Codable {
  case remoteHangup, callerCancelled, answeredElsewhere, declinedElsewhere, busyElsewhere, unanswered, busy, declined
  case mediaTimeout, mediaFailed, networkLost, trunkLost, trunkFailed
  case notFound, forbidden, codec, auth, overload, server, gatewayRestart, appRestart, unknown
  case diverted, dnd, blocked, localEnd

  public init(from decoder: any Decoder) throws {
    self = EndReason(rawValue: try decoder.singleValueContainer().decode(String.self)) ?? .unknown
  }
}

/// The cases of `CXCallEndedReason`, for platforms without CallKit too.
public enum CallEndedReason: String, CaseIterable, Sendable {
  case failed, remoteEnded, unanswered, answeredElsewhere, declinedElsewhere
}

extension EndReason {
  /// What the app reports to CallKit; nil where nothing is reported: the call was never shown, or an end action is fulfilled
  /// instead.
  public var callEndedReason: CallEndedReason? {
    switch self {
    case .remoteHangup, .callerCancelled, .declined: .remoteEnded
    case .answeredElsewhere, .diverted: .answeredElsewhere
    case .declinedElsewhere, .busyElsewhere: .declinedElsewhere
    case .unanswered, .busy: .unanswered
    case .mediaTimeout, .mediaFailed, .networkLost, .trunkLost, .trunkFailed, .notFound, .forbidden, .codec, .auth, .overload,
      .server, .gatewayRestart, .appRestart, .unknown:
      .failed
    case .dnd, .blocked, .localEnd: nil
    }
  }

  /// The final response that refuses an unanswered trunk INVITE for this reason; nil where no refusal follows.
  public struct Refusal: Hashable, Sendable {
    public var status: Int
    /// The cause of `Reason: Q.850;cause=…` (RFC 3326), if one is sent.
    public var q850: Int?
    public init(status: Int, q850: Int? = nil) { (self.status, self.q850) = (status, q850) }
  }

  /// `declineCode` is the setting `decline_code`: a 6xx ends forking upstream, so 486 by default.
  public func refusal(declineCode: Int = 486) -> Refusal? {
    switch self {
    case .callerCancelled: Refusal(status: 487)
    case .declined, .declinedElsewhere, .busyElsewhere, .busy, .localEnd, .blocked: Refusal(status: declineCode)
    case .unanswered: Refusal(status: 480, q850: 19)
    case .dnd: Refusal(status: 480)
    case .mediaTimeout, .mediaFailed, .networkLost, .trunkLost, .trunkFailed, .appRestart: Refusal(status: 480, q850: 41)
    case .notFound: Refusal(status: 404)
    case .forbidden: Refusal(status: 403)
    case .codec: Refusal(status: 488)
    case .auth: Refusal(status: 407)
    case .overload: Refusal(status: 503)
    case .server, .gatewayRestart, .unknown: Refusal(status: 500)
    case .remoteHangup, .answeredElsewhere, .diverted: nil
    }
  }

  /// Why an outgoing call ended, from the final response that the trunk sent (300 and above).
  public init(sipStatus: Int) {
    self =
      switch sipStatus {
      case 486, 600: .busy
      case 603: .declined
      case 408, 480: .unanswered
      case 404, 410, 484, 604: .notFound
      case 403: .forbidden
      case 415, 488, 606: .codec
      case 401, 407: .auth
      case 500...599: .trunkFailed
      default: .unknown
      }
  }
}
