// The named limits of the media thread; every bound on a queue or table stands here.

enum MediaLimits {
  /// Calls that the audio is exchanged with beside the first one.
  static let mixedCalls = 4
  static let localAddresses = 8
  /// Commands that wait for the thread; the machine gives a handful for each event.
  static let commands = 1_024
  /// Sockets of an older generation, which serve until the newer one has a pair.
  static let sockets = 32
  /// Events of connections to TURN servers that wait for the thread. Beyond it a datagram is lost, and a stream is given up.
  static let relayEvents = 512
  static let datagramBytes = 2_048
  static let frame = Duration.milliseconds(20)
  /// Captured frames sent in one turn, after a moment in which the thread was not scheduled.
  static let framesPerStep = 5
  /// Samples that wait for the loudspeaker: between one frame and two.
  static let playedSamples = 320
  /// An old generation's sockets are closed so long after the new one has its pair.
  static let oldSockets = Duration.seconds(5)
  static let statisticsInterval = Duration.seconds(1)
}
