/// The named limits of this module: every bound on a queue, table or message.
public enum Limits {
  /// Octets of all segments, and of one: when the journal is full the oldest segment is removed.
  public static let journalBytes = 64 << 20
  static let segmentBytes = 4 << 20
  /// A segment whose last event is older is removed: events are retried for as long.
  public static let age = Duration.seconds(24 * 3600)
  /// Octets of one event with its line: a call record is 64 KiB at most.
  public static let eventBytes = 128 * 1_024
  /// Characters of a kind and of a subject.
  static let wordBytes = 600
  static let readBytes = 256 * 1_024
}
