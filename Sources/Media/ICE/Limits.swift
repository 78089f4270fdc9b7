// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Addresses that a lite agent remembers as validated; the least recently checked one that is not nominated makes room.
  static let validatedAddresses = 8
  /// Generations a lite agent answers at a time: the nominated one, the newest, and one between.
  static let generations = 3
  /// How long an old generation is received after a newer one was nominated (protocol.md, During the call).
  static let oldGeneration: Duration = .seconds(5)
  /// Bytes that hold every check and answer we write.
  static let messageBytes = 600
}
