// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Server transactions of all trunks; a new INVITE beyond gets 503 without state.
  static let serverTransactions = 20_000
  /// Client transactions of all trunks; a new outbound leg beyond fails with 503.
  static let clientTransactions = 20_000
  /// Legs, inbound and outbound.
  static let legs = 5_000
  /// Different 2xx of one forked INVITE that are acknowledged and ended; further ones are ignored.
  static let forks = 8
  /// Servers of one trunk that one call tries.
  static let targets = 16
  /// Routes taken over from Record-Route; a dialog with more is not made.
  static let routes = 16
  /// Longest Contact URI that becomes the target of our requests.
  static let targetBytes = 512
  /// Requests over this many bytes go by a congestion-controlled transport (RFC 3261 §18.1.1).
  static let datagramRequestBytes = 1_300
  /// Requests outside dialogs that wait for their outcome.
  static let standaloneRequests = 4_096
  /// Extra headers of one outbound INVITE.
  static let extraHeaders = 32
}
