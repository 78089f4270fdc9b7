import TrunklineAppProtocol
import TrunklineBytes

/// The user's login: the token in use, its renewal in a session (`auth.refresh`), when the app is asked for the next token
/// (`TokenRequests`), and the logout.
///
/// | state | `accept` | `refreshed` | `sessionRefused` |
/// |---|---|---|---|
/// | no token | in use | – | the app is asked, the first time at once |
/// | in use, without a session | in use | – | → no token |
/// | in use, with a session | in use, unconfirmed once `sent`; a token that does not expire later: stale, the app is asked later | – | → no token |
/// | unconfirmed | the same; the answer to the older request is not awaited any more | accepted → in use; refused: the former token is in use again, the app is asked later, and the token is stale unless the gateway could not check it | → no token |
///
/// | logout | `logOut` | `removalAsked` | `sessionRefused` | `loggedOut` |
/// |---|---|---|---|---|
/// | none | requested | – | – | no token |
/// | requested | – | open; nil: requested | – | → none, no token |
/// | open | – | – | requested | → none, no token |
struct Login: Sendable {
  /// The token that another one has replaced.
  struct Former: Sendable {
    fileprivate var token: Redacted<String>?
    fileprivate var expires: Int64?
  }
  enum Refresh: Sendable {
    case accepted
    /// The former token is in use again, and the session is that of `wake` again. `isStale`: the token itself was refused.
    case refused(wake: PhoneMachine.Push?, isStale: Bool)
  }
  private enum LogOut { case none, requested, open(Identifier) }

  private(set) var token: Redacted<String>?
  /// `exp` of `token`, or of the last one.
  private var expires: Int64?
  /// The app's last token did not help.
  private(set) var isStale = false
  /// A token that was sent to the gateway and is not accepted yet, and what it replaces.
  private var refresh: (question: Identifier, former: Former, wake: PhoneMachine.Push?)?
  private var requests = TokenRequests()
  private var logOutState = LogOut.none

  // MARK: requests to the app

  var dueAt: Instant? { requests.dueAt }
  /// A request failed, and nothing but time has passed since.
  var isWaiting: Bool { requests.isWaiting }
  /// A change may let a request for a token succeed now.
  var mayAskAgain: Bool { token == nil || requests.isWaiting }

  /// - Returns: whether to ask the app now; if not, the request is due later, or under way.
  mutating func ask(at now: Instant) -> Bool { requests.ask(at: now) }
  /// No token is needed.
  mutating func stopAsking() { requests.answered() }
  /// The app has no token now.
  mutating func tokenFailed(at now: Instant) { requests.failed(at: now) }
  /// The gateway has welcomed the token.
  mutating func helped() { requests.helped() }

  // MARK: tokens

  /// - Parameter isInUse: there is a session: the gateway would announce the same expiry again, and the app would be asked again.
  /// - Returns: the token that this one replaces; nil: it is stale, and the app is asked later.
  mutating func accept(_ text: String, expires: Int64?, isInUse: Bool, at now: Instant) -> Former? {
    requests.answered()
    isStale = false
    if isInUse, let token, text == token.exposed || (expires ?? .max) <= (self.expires ?? .min) {
      requests.failed(at: now, isStale: true)
      isStale = true
      return nil
    }
    defer { (token, self.expires) = (Redacted(text), expires) }
    return Former(token: token, expires: self.expires)
  }

  /// The accepted token was sent.
  /// - Parameter wake: the push whose session it has made a full one.
  mutating func sent(_ question: Identifier, replacing former: Former, wake: PhoneMachine.Push?) {
    refresh = (question, former, wake)
  }

  func isRefresh(_ question: Identifier) -> Bool { refresh?.question == question }

  /// The gateway has accepted or refused a token; nil: none was sent.
  mutating func refreshed(_ result: Result<Success, Failure>, at now: Instant) -> Refresh? {
    guard let (_, former, wake) = refresh else { return nil }
    refresh = nil
    guard case .failure(let failure) = result else {
      requests.helped()
      return .accepted
    }
    token = former.token
    expires = former.expires
    // A gateway without time, or without the keys to check it: the token is not at fault, and is sent again before the one in use ends.
    let isUnchecked = [.overload, .tooMany, .server].contains(failure.code)
    requests.failed(at: now, isStale: isUnchecked)
    if !isUnchecked { isStale = true }
    return .refused(wake: wake, isStale: !isUnchecked)
  }

  // MARK: the session

  mutating func sessionEnded() { refresh = nil }

  /// The gateway has refused the session's token (4001).
  /// - Returns: whether to ask for another one now: the first time, as the token may simply be old.
  mutating func tokenRefused(at now: Instant) -> Bool {
    token = nil
    if requests.refused() { return true }
    requests.failed(at: now)
    return false
  }

  // MARK: the logout

  var isLoggingOut: Bool { if case .none = logOutState { false } else { true } }
  /// The gateway still has this device, and no request to remove it is open.
  var needsRemoval: Bool { if case .requested = logOutState { true } else { false } }

  mutating func logOut() { if case .none = logOutState { logOutState = .requested } }

  /// - Parameter question: nil: the request could not be sent.
  mutating func removalAsked(_ question: Identifier?) {
    if needsRemoval, let question { logOutState = .open(question) }
  }

  func isRemoval(_ question: Identifier) -> Bool { if case .open(question) = logOutState { true } else { false } }

  /// The open request is not answered any more.
  mutating func removalLost() { if case .open = logOutState { logOutState = .requested } }

  mutating func loggedOut() { (logOutState, token) = (.none, nil) }
}
