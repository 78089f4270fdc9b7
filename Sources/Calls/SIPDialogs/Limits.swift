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
  /// Routes taken over from Record-Route; a dialog with more is not made.
  static let routes = 16
  /// Longest Contact URI that becomes the target of our requests.
  static let targetBytes = 512
  /// Extra headers of one outbound INVITE.
  static let extraHeaders = 32
}
