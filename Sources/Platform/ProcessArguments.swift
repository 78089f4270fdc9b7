import CTrunklineLinux

/// What the process was started with.
public enum ProcessArguments {
  /// Behind the program's name. As the kernel gave them: `CommandLine.arguments` is empty where /proc is not mounted.
  public static var all: [String] {
    (1..<max(1, clx_argument_count())).map { index in clx_argument(index).map { String(cString: $0) } ?? "" }
  }
}
