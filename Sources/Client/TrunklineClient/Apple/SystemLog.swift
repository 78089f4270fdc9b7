#if canImport(Darwin) || APPLE_SURFACE
  import os

  /// The unified log: `log stream --predicate 'subsystem == "org.trunkline"'`, or Console.
  enum SystemLog {
    private static let logger = Logger(subsystem: "org.trunkline", category: "phone")

    /// No field is marked as private: an entry contains nothing private.
    static func write(_ entry: Phone.LogEntry) {
      let level: OSLogType =
        switch entry.level {
        case .debug: .debug
        case .info: .info
        case .warning: .default
        case .error: .error
        }
      logger.log(level: level, "\(entry.description, privacy: .public)")
    }
  }
#endif
