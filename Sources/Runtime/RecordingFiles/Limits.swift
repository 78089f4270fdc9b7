/// The named limits of this module: every bound on a queue, table or message.
enum Limits {
  /// Commands that wait for the thread, which a slow disk may delay.
  static let commands = 4_096
  /// Recordings at a time; a further one ends as it begins.
  static let recordings = 1_000
  /// Frames read from one call's tap per step: 5 s of both sides.
  static let framesPerStep = 512
  /// How often taps are read; a tap holds 50 times as many frames as arrive in between.
  static let interval: Duration = .milliseconds(100)
  /// How often the free space of the disk is checked while nothing is recorded.
  static let idleLook: Duration = .seconds(30)
  /// How far one side may be behind the other before silence is written for it: 5 frames.
  static let slotsAhead = 5
  /// After this many slots without a frame of either side, silence is written: more than a media thread and this one can be late.
  static let slotsSilent = 15
  /// A frame further than this from its time is moved there: the drift allowed between the two sides.
  static let slotsOff = 3
  /// The longest silence in a row, a day: a call held for longer has ended long ago.
  static let slots = 24 * 3_600 * 50
  /// Octets that are gathered before a write, and the longest time that they wait, in frames.
  static let writtenBytes = 65_536
  static let writtenSlots = 50
  /// The largest Opus packet of one side that the encoder makes, in octets.
  static let packetBytes = 1_275
  /// Opus packets in an Ogg page: a second (RFC 7845 §4).
  static let packetsPerPage = 50
  /// Unfinished files that a start handles.
  static let leftovers = 10_000
}
