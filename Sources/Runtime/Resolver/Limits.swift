// The named limits of this module, with every bound on a queue, table or message.
enum Limits {
  /// Questions under way; further ones fail at once, and the caller repeats them later.
  static let questions = 1_024
  /// Name servers of the configuration.
  static let servers = 16
  /// The wait of the first try at each server; doubled with each round.
  static let firstTime = Duration.milliseconds(1_500)
  /// The system's file of name servers. Its stamp is checked before each question.
  static let systemFile = "/etc/resolv.conf"
  /// Records read of one answer, and how far compressed names are followed when its TTLs are read.
  static let records = 256
}
