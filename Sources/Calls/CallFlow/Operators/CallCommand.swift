public import CallModel
public import TrunklineAppProtocol
public import TrunklineMediaSession

/// Commands of an operator's program for a live call: what the device that has the call could do by the app protocol, and the
/// end.
public enum CallCommand: Sendable, Equatable {
  /// Nil: an operator ends the call, for a reason outside the call.
  case hangUp(HangUpReason?)
  case hold(Bool)
  case mute(Bool)
  case digits(CallDTMF)
  /// The trunk hears this in place of the app; nil: stops it.
  case play(Announcement?)
  /// Connects an unanswered incoming call to a program, at a host that the configuration allows.
  case stream(StreamURL, StreamTarget.Format)
  /// Begins or ends a recording.
  case record(Bool)
  case transfer(CallTransfer)
  /// Transfers the call by REFER to the first number of this user.
  case transferToUser(String)
}

/// Why a call is ended. All but `localEnd` refuse a caller who still waits for an answer: the final response follows from `refusal`.
public enum HangUpReason: String, Sendable, CaseIterable {
  case localEnd, busy, declined, unanswered, notFound, forbidden

  var reason: EndReason {
    switch self {
    case .localEnd: .localEnd
    case .busy: .busy
    case .declined: .declined
    case .unanswered: .unanswered
    case .notFound: .notFound
    case .forbidden: .forbidden
    }
  }
}

/// A call that a program makes for a user: the user's devices ring, and the one that answers is connected with the number; or the
/// other way round.
public struct OriginateRequest: Sendable, Equatable {
  public enum First: String, Sendable, CaseIterable { case user, number }
  public var user: String
  /// As the user could dial it.
  public var to: String
  /// One of the user's numbers; nil: the first of the user's account.
  public var from: String?
  /// The party that is called first.
  public var first: First
  /// As those of `call.start`; the devices that ring get them, too.
  public var parameters: CallParameters?
  public init(user: String, to: String, from: String? = nil, first: First = .user, parameters: CallParameters? = nil) {
    (self.user, self.to, self.from, self.first, self.parameters) = (user, to, from, first, parameters)
  }
}
