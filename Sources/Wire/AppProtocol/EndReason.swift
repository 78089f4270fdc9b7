/// How a call ended, for one device (docs/reference/protocol.md, Reasons). A reason this version does not know is read as
/// `unknown`.
public enum EndReason: String, CaseIterable, Sendable, Codable {
  /// The other party hung up.
  case remoteHangup
  /// The caller hung up before the call was answered: a missed call.
  case callerCancelled
  /// Another of the user's devices answered it.
  case answeredElsewhere
  /// Another of the user's devices declined it.
  case declinedElsewhere
  /// Another of the user's devices replied busy.
  case busyElsewhere
  /// The call was not answered in time.
  case unanswered
  /// The callee is busy.
  case busy
  /// The callee, or this user, declined.
  case declined
  /// Media was not connected 10 s after the tap.
  case mediaTimeout
  /// ICE, DTLS or the audio device failed.
  case mediaFailed
  /// The app's network was lost for too long.
  case networkLost
  /// The trunk became silent during the call.
  case trunkLost
  /// The trunk refused because of a fault on its side.
  case trunkFailed
  /// No such number, or no route to it.
  case notFound
  /// Not allowed: the number, or the requested caller number.
  case forbidden
  /// No common codec.
  case codec
  /// Not logged in, or the trunk refused the gateway's login.
  case auth
  /// The gateway accepts no more calls now.
  case overload
  /// The gateway failed.
  case server
  /// The gateway was restarted.
  case gatewayRestart
  /// The app was killed during the call, and has restarted.
  case appRestart
  /// A reason that this version does not know.
  case unknown
  /// Forwarded to another number.
  case diverted
  /// Not shown: do not disturb.
  case dnd
  /// Not shown: the caller is blocked.
  case blocked
  /// This user ended it.
  case localEnd

  public init(from decoder: any Decoder) throws {
    self = EndReason(rawValue: try decoder.singleValueContainer().decode(String.self)) ?? .unknown
  }
}

/// The cases of `CXCallEndedReason`, for platforms without CallKit too.
public enum CallEndedReason: String, CaseIterable, Sendable {
  /// A fault.
  case failed
  /// The other party ended it.
  case remoteEnded
  /// Not answered in time.
  case unanswered
  /// Answered by another device.
  case answeredElsewhere
  /// Declined at another device.
  case declinedElsewhere
}

extension EndReason {
  /// The reason that the app reports to CallKit; nil if it reports none: the call was never shown, or an end action is fulfilled
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

  /// The final response that refuses an unanswered trunk INVITE for this reason; nil if no refusal follows.
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
