import TrunklineBytes

/// The named limits of this module.
public enum Limits {
  /// Bytes of a VoIP push's body (APNs); other kinds of push stop at 4096.
  public static let voipBodyBytes = 5_120
  /// Bytes of the data of one FCM message, and of a Web Push record before encryption.
  public static let dataBytes = 4_096
  /// Bytes of a webhook's answer, the number of users in it, and the bytes of a text in it.
  public static let routeAnswerBytes = 8_192
  public static let routeUsers = 16
  public static let routeTextBytes = 512
  /// Bytes of a webhook's answer about a user.
  static let userAnswerBytes = 16_384
  /// Requests to webhooks that wait for an answer at one time, and webhooks whose failures are remembered.
  public static let webhooksUnderWay = 256
  public static let webhooks = 64
  /// Events of one webhook that wait for its answer, and how many of them are under way.
  public static let eventsOpen = 1_024
  public static let eventsUnderWay = 16
  /// Failures in a row after which a receiver counts as away.
  static let failuresAway = 3
  /// How long an event is retried; and the longest pause between two tries of one event, and of a failing server.
  public static let eventAge = Duration.seconds(24 * 3600)
  static let eventRetry = Duration.seconds(600)
  static let sinkRetry = Duration.seconds(60)
  /// Webhooks for events, and their secrets.
  public static let eventWebhooks = 8
  public static let eventKeys = 2
  /// Bytes of a token as an app registers it: 32 to 100 for APNs, some 200 for FCM, a subscription's JSON for Web Push.
  public static let tokenBytes = 2_048
  /// Hexadecimal digits of an APNs token: 64 today, and Apple states that it may grow.
  public static let apnsTokenBytes = 8...200
  public static let fcmTokenBytes = 1_024
  /// Characters of a topic, which is a bundle identifier.
  public static let topicBytes = 255
  /// Characters of the caller's name and number in a payload.
  public static let nameCharacters = 128
  public static let handleCharacters = 256
  /// Pushes that wait for an answer or a retry at one time; above it the push fails at once, counted.
  public static let pushesInFlight = 20_000
  /// Sends of one push, the first included.
  public static let attempts = 2
  /// Least time until the ring deadline for a retry.
  public static let retryMargin = Duration.seconds(2)
  /// How long one attempt may take before it counts as lost.
  public static let attemptTime = Duration.seconds(10)
  /// Keys from a URL: how long they are fresh without Cache-Control, at least and at most; the longest pause between tries;
  /// the least time from one fetch to a fetch for an unknown key; and how long keys are valid if all fetches fail.
  static let keysFresh = Duration.seconds(600)
  static let keysFreshLeast = Duration.seconds(60)
  static let keysFreshMost = Duration.seconds(3_600)
  static let keysRetryMost = Duration.seconds(60)
  static let keysWantedAgain = Duration.seconds(10)
  static let keysKept = Duration.seconds(86_400)
  /// When a service or a webhook's server is left alone: a failure is a broken transport or a 5xx, not an answer about one token.
  static let breaker = CircuitBreaker.Policy(failures: 5, pause: .seconds(1) ... .seconds(30), attemptTime: attemptTime)
}
