import Foundation

/// The gateway that a bench starts as a process of its own.
public enum Gateway {
  /// TRUNKLINE_BINARY, or what was built beside this bench: both come of one release build.
  public static var binary: String {
    ProcessInfo.processInfo.environment["TRUNKLINE_BINARY"]
      ?? URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("trunkline").path
  }
  /// `trunkline-lab` beside it.
  public static var lab: String {
    URL(fileURLWithPath: binary).deletingLastPathComponent().appendingPathComponent("trunkline-lab").path
  }
}
