/// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Commands that wait for the thread, which a disk may hold up.
  static let commands = 4_096
  /// Recordings at a time; one more ends as it begins.
  static let recordings = 1_000
  /// Frames taken of one call before the next one's turn: 5 s of both sides.
  static let framesPerStep = 512
  /// How often taps are read; a tap holds 50 times as much.
  static let interval: Duration = .milliseconds(100)
  /// How often the room on the disk is looked at while nothing is recorded.
  static let idleLook: Duration = .seconds(30)
  /// How far one side may be behind the other before silence is written instead: 5 frames.
  static let slotsAhead = 5
  /// After so many frames without either side there is silence: well behind what a media thread and this one are late.
  static let slotsSilent = 15
  /// A frame that lies further from its time than this is moved there: what the two sides may drift apart.
  static let slotsOff = 3
  /// Of silence in a row: a call that is held for longer than a day has ended long ago.
  static let slots = 24 * 3_600 * 50
  /// Octets that are gathered before they are written, and the longest time that they wait, in frames.
  static let writtenBytes = 65_536
  static let writtenSlots = 50
  /// Octets of one Opus packet of one side, as the encoder gives at most.
  static let packetBytes = 1_275
  /// Opus packets in an Ogg page: a second (RFC 7845 §4).
  static let packetsPerPage = 50
  /// Unfinished files that a start takes care of.
  static let leftovers = 10_000
}
