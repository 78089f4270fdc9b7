public import Logging
import Synchronization

/// The least severe level that loggers of one module write; changes apply at once. Any thread.
public final class LogLevel: Sendable {
  private let rank: Atomic<Int>

  public init(_ level: Logger.Level) { rank = Atomic(Self.rank(level)) }

  public var value: Logger.Level {
    get { Logger.Level.allCases[rank.load(ordering: .relaxed)] }
    set { rank.store(Self.rank(newValue), ordering: .relaxed) }
  }

  private static func rank(_ level: Logger.Level) -> Int { Logger.Level.allCases.firstIndex(of: level) ?? 0 }
}

/// The levels of all modules by the label of their loggers, for an operator who examines one of them.
public final class LogLevels: Sendable {
  private let initial: Logger.Level
  private let levels = Mutex<[String: LogLevel]>([:])

  public init(_ initial: Logger.Level) { self.initial = initial }

  /// The one level that all loggers of a module share.
  public func level(of module: String) -> LogLevel {
    levels.withLock { levels in
      if let level = levels[module] { return level }
      let level = LogLevel(initial)
      levels[module] = level
      return level
    }
  }

  public var all: [String: Logger.Level] { levels.withLock { $0.mapValues(\.value) } }

  /// False if no logger has this label.
  public func set(_ module: String, _ level: Logger.Level) -> Bool {
    levels.withLock { $0[module] }.map { $0.value = level } != nil
  }
}
