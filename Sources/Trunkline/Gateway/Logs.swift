import Configuration
import Logging
import Telemetry
import TrunklinePlatform

/// Loggers of one process, which share one sink on standard error.
struct Logs: Sendable {
  private let sink: LogSink
  let levels: LogLevels
  private let format: Settings.Log.Format

  init(_ settings: Settings.Log) throws {
    sink = try LogSink(fd: 2)
    levels = LogLevels(Logger.Level(rawValue: settings.level.rawValue) ?? .info)
    format = settings.format
  }

  func logger(_ label: String) -> Logger {
    let level = levels.level(of: label)
    return Logger(label: label) { [sink, format] label in
      switch format {
      case .text: TextLogHandler(label: label, sink: sink, level: level)
      case .json: JSONLogHandler(label: label, sink: sink, level: level)
      }
    }
  }

  var metrics: [MetricFamily] { sink.metrics }

  /// While lines cannot be written, `/readyz` states the fault as a note: no call depends on the log.
  func watch(_ readiness: Readiness) {
    if StandardDescriptors.closed.contains(2) {
      return readiness.set("log", ready: true, note: "standard error was closed when the process was started: lines are lost")
    }
    sink.onFault { fault in
      guard let fault else { return readiness.remove("log") }
      readiness.set("log", ready: true, note: "standard error does not accept lines: \(fault)")
    }
  }

  /// Writes waiting lines; nothing is logged afterwards.
  func stop() { sink.stop() }
}
