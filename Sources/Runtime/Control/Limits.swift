/// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Inputs of other threads waiting for control; a post beyond that is refused and counted, and the sender decides what it means.
  static let inbox = 32_768
  /// Inputs taken from the inbox in one turn, so that sockets and timers are not starved.
  static let inboxPerTurn = 512
  /// How often the wall clock is compared with the monotonic one, and the loop's delay measured.
  static let clockCheck = Duration.seconds(1)
}
