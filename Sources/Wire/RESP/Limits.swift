/// The named limits of this module; every bound on a queue, table or message stands here.
public enum Limits {
  /// What one reply may have. `depth` counts arrays within each other.
  public static let reply = RESPReader.Bounds(depth: 6, elements: 65_536, bytes: 16 * 1_024 * 1_024)
  /// Of what a subscribed connection hears. Beyond it the connection ends; a message that is too long for its reader only is dropped.
  public static let message = RESPReader.Bounds(depth: 2, elements: 64, bytes: 16 * 1_024 * 1_024)
  /// hiredis reads no deeper.
  static let depth = 1...6
  /// Room that a command begins with.
  static let commandBytes = 320
  /// Room for values that is kept from one reply to the next.
  static let keptNodes = 4_096
  /// Of an error's text what is kept.
  static let errorBytes = 128
}
