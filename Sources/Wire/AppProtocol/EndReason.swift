/// How a call ended, for one device (docs/reference/protocol.md, Reasons). A reason this version does not know is read as `unknown`.
public enum EndReason: String, CaseIterable, Sendable, Codable {
  /// The other side hung up.
  case remoteHangup
  /// The caller gave up before anybody answered: a missed call.
  case callerCancelled
  /// Another of the user's devices took it.
  case answeredElsewhere
  /// Another of the user's devices declined it.
  case declinedElsewhere
  /// Another of the user's devices said busy.
  case busyElsewhere
  /// No answer in time.
  case unanswered
  /// The callee is busy.
  case busy
  /// The callee, or this user, declined.
  case declined
  /// Media was not there 10 s after the tap.
  case mediaTimeout
  /// ICE, DTLS or the audio device failed.
  case mediaFailed
  /// The app's network was gone for too long.
  case networkLost
  /// The trunk went silent in the call.
  case trunkLost
  /// The trunk refused by a fault of its own.
  case trunkFailed
  /// No such number, or no route to it.
  case notFound
  /// Not allowed: the number, or the caller's number that was asked for.
  case forbidden
  /// No codec that both sides have.
  case codec
  /// Not logged in, or the trunk refused the gateway's login.
  case auth
  /// The gateway takes no more calls now.
  case overload
  /// The gateway could not continue.
  case server
  /// The gateway was restarted.
  case gatewayRestart
  /// The app was killed in the call, and has come back.
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
  /// By a fault.
  case failed
  /// By the other side.
  case remoteEnded
  /// No answer in time.
  case unanswered
  /// Taken by another device.
  case answeredElsewhere
  /// Declined at another device.
  case declinedElsewhere
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
