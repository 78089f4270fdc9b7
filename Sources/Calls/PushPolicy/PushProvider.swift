public import HTTP
public import JSONWebToken
public import TrunklineBytes

/// One push service: its registrations, the request for a push, the meaning of an answer, and the advice. A value holds our keys
/// and the tokens made with them; it is replaced whole when a key rotates.
public protocol PushProvider: Sendable {
  static var service: PushService { get }
  /// `push.kind` of `device.put`.
  static var registrationKind: String { get }
  /// The most bytes of a registration's token.
  static var tokenBytes: Int { get }
  /// The rule for a token, as a sentence for the app's author.
  static var tokenRule: String { get }
  /// Registrations have an environment and a topic (APNs).
  static var hasEnvironments: Bool { get }

  /// The registration in its stored form. Its length and the characters of its topic are checked before.
  static func checked(_ target: PushTarget) throws(TargetProblem) -> PushTarget
  static func verdict(_ answer: HTTPClientResponse) -> PushVerdict
  /// What an operator should do about a push that this service refused, as one sentence; nil if it has no row for the reason.
  static func advice(_ report: PushReport) -> String?

  /// Throws for a registration that this configuration cannot push to, whatever its form.
  func accepts(_ target: PushTarget) throws(TargetProblem)
  /// The name of the connections to this environment; it changes with the keys. Nil: we must not close them.
  func connection(_ environment: PushTarget.Environment) -> String?
  /// The request to send now.
  mutating func request(_ attempt: PushAttempt) throws(KeyError) -> PushStep
  /// - Parameter now: seconds since 1970, as below.
  /// - Returns: a request for an access token, if one is due and not under way.
  mutating func tokenRequest(at now: Int64) throws(KeyError) -> HTTPClientRequest?
  /// The answer to the token request; nil: the connection broke. Returns the reason if there is no token to use.
  mutating func tokenAnswered(_ answer: HTTPClientResponse?, at now: Int64) -> String?
  /// The service no longer accepts the token. False: another would not help.
  mutating func renewToken(at now: Int64) -> Bool
  /// The service requests no new tokens for a while.
  mutating func freezeToken(at now: Int64)
  /// Continues with the tokens of the provider that this one replaces, if both have the same keys.
  mutating func adoptTokens(of old: any PushProvider)
}

extension PushProvider {
  public static var hasEnvironments: Bool { false }
  public func accepts(_ target: PushTarget) throws(TargetProblem) {}
  public func connection(_ environment: PushTarget.Environment) -> String? { nil }
  public mutating func tokenRequest(at now: Int64) throws(KeyError) -> HTTPClientRequest? { nil }
  public mutating func tokenAnswered(_ answer: HTTPClientResponse?, at now: Int64) -> String? { nil }
  public mutating func renewToken(at now: Int64) -> Bool { false }
  public mutating func freezeToken(at now: Int64) {}
  public mutating func adoptTokens(of old: any PushProvider) {}
}

/// One attempt at one push.
public struct PushAttempt: Sendable {
  public var key: PushKey
  public var target: PushTarget
  public var content: CallPush
  /// False leaves out the fields that are only shown, for a service that found the payload too large.
  public var withCaller: Bool
  /// Seconds since 1970.
  public var now: Int64
  /// The rest of the ring window.
  public var secondsLeft: Int64
  public var random: RandomSource
}

public enum PushStep: Sendable {
  case send(HTTPClientRequest)
  /// There is no access token yet.
  case waitForToken
  /// The token cannot be used, or even the bare payload is too large.
  case unusable
}

/// The providers in use. A service without a provider cannot be pushed to: such a push fails with `noProvider`.
public struct PushProviders: Sendable {
  private var table: [PushService: any PushProvider] = [:]

  public init(_ providers: [any PushProvider] = []) {
    for provider in providers { table[type(of: provider).service] = provider }
  }

  public subscript(_ service: PushService) -> (any PushProvider)? {
    get { table[service] }
    set { table[service] = newValue }
  }

  /// - Parameter target: as returned by `checked()`.
  public func check(_ target: PushTarget) throws(TargetProblem) {
    guard let provider = table[target.service] else { throw .notConfigured }
    try provider.accepts(target)
  }

  /// The names of all connections that carry these keys.
  var connections: Set<String> {
    Set(table.values.flatMap { provider in PushTarget.Environment.allCases.compactMap { provider.connection($0) } })
  }

  mutating func adoptTokens(of old: PushProviders) {
    for (service, provider) in old.table { table[service]?.adoptTokens(of: provider) }
  }
}
