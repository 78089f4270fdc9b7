/// The timer values of RFC 3261 §17 and RFC 6026.
enum Interval {
  static let t1: Duration = .milliseconds(500)
  static let t2: Duration = .seconds(4)
  static let t4: Duration = .seconds(5)
  /// Timers B, F, H, J, L and M, and how long a 2xx waits for its ACK.
  static let transaction: Duration = .milliseconds(64 * 500)
  /// Timer D on unreliable transports: more than 32 s.
  static let d: Duration = .seconds(33)
  /// How long a server of an outbound INVITE may be silent while another is left to try.
  static let silence: Duration = .milliseconds(3_500)
  /// How often a provisional response is sent again, so that no proxy on the way gives up (RFC 3261 §13.3.1.1).
  static let provisional: Duration = .seconds(60)
  /// How long a re-INVITE may last after a provisional response.
  static let reinvite: Duration = .seconds(60)
  /// How long the first NOTIFY of a REFER may take: it is due at once (RFC 3515 §2.4.4), and the peer sends it again no
  /// longer than timer F.
  static let referSilence: Duration = transaction
  /// How long the call that a REFER requested may take to be answered: more than timer C (RFC 3261 §16.6).
  static let referProgress: Duration = .seconds(200)
  /// Pause between two batches of legs of a dead process.
  static let orphans: Duration = .milliseconds(20)
  /// How long after a failed refresh the next is tried.
  static let refreshRetry: Duration = .seconds(10)
}
