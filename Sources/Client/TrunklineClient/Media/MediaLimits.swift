// The named limits of the media thread, with every bound on a queue or table.

enum MediaLimits {
  /// Calls that exchange audio in addition to the first one.
  static let mixedCalls = 4
  static let localAddresses = 8
  /// Commands that wait for the thread; the machine sends a handful for each event.
  static let commands = 1_024
  /// Sockets of an older generation, which are used until the newer one has a pair.
  static let sockets = 32
  /// Events of connections to TURN servers that wait for the thread. Beyond that a datagram is lost, and a stream is closed.
  static let relayEvents = 512
  static let datagramBytes = 2_048
  static let frame = Duration.milliseconds(20)
  /// Captured frames sent in one step, after a moment in which the thread was not scheduled.
  static let framesPerStep = 5
  /// Samples that wait for the loudspeaker: more than one frame, less than two.
  static let playedSamples = 320
  /// How long after the new generation has its pair the old generation's sockets are closed.
  static let oldSockets = Duration.seconds(5)
  static let statisticsInterval = Duration.seconds(1)
}
