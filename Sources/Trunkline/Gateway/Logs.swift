import Configuration
import Logging
import Platform
import Telemetry

/// Loggers of one process, all over one sink on standard error.
struct Logs: Sendable {
  private let sink: LogSink
  private let level: Logger.Level
  private let format: Settings.Log.Format

  init(_ settings: Settings.Log) throws {
    sink = try LogSink(fd: 2)
    level = Logger.Level(rawValue: settings.level.rawValue) ?? .info
    format = settings.format
  }

  func logger(_ label: String) -> Logger {
    Logger(label: label) { [sink, level, format] label in
      switch format {
      case .text: TextLogHandler(label: label, sink: sink, level: level)
      case .json: JSONLogHandler(label: label, sink: sink, level: level)
      }
    }
  }

  var metrics: [MetricFamily] { sink.metrics }

  /// Writes what waits; nothing is logged afterwards.
  func stop() { sink.stop() }
}
