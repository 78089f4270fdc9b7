/// The named limits of this module: every bound on a queue, table or message.
public enum Limits {
  /// Bounds of one reply. `depth` counts arrays within each other.
  public static let reply = RESPReader.Bounds(depth: 6, elements: 65_536, bytes: 16 * 1_024 * 1_024)
  /// Bounds of what a subscribed connection receives. Beyond them the connection ends; a message that is too long only for its
  /// reader is dropped.
  public static let message = RESPReader.Bounds(depth: 2, elements: 64, bytes: 16 * 1_024 * 1_024)
  /// hiredis reads no deeper.
  static let depth = 1...6
  /// Capacity that a command begins with.
  static let commandBytes = 320
  /// Capacity for values that is kept from one reply to the next.
  static let keptNodes = 4_096
  /// Bytes of an error's text that are kept.
  static let errorBytes = 128
}
