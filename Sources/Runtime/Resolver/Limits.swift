// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Questions under way; further ones fail at once and are asked again later.
  static let questions = 1_024
  /// Name servers of the configuration.
  static let servers = 16
  /// For the first try at each server; doubled with each of the rounds.
  static let firstTime = Duration.milliseconds(1_500)
  /// Where the system says which name servers there are. Its stamp is looked at before each question.
  static let systemFile = "/etc/resolv.conf"
  /// Records read of one answer, and how far compressed names are followed when its times are read.
  static let records = 256
}
