public import Logging
import TrunklineBytes
import TrunklinePlatform

/// One line for people: time, level, label, message, then `name=value`. Bounds and masks are those of `JSONLogHandler`.
public struct TextLogHandler: LogHandler {
  public var metadata: Logger.Metadata = [:]
  public var logLevel: Logger.Level {
    get { own ?? shared.value }
    set { own = newValue }
  }
  private var own: Logger.Level?
  private let shared: LogLevel
  public var metadataProvider: Logger.MetadataProvider?
  private let label: String
  private let sink: LogSink

  public init(label: String, sink: LogSink, level: LogLevel = LogLevel(.info)) {
    (self.label, self.sink, shared) = (label, sink, level)
  }

  public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  public func log(event: LogEvent) {
    var fields = metadata
    if let provided = metadataProvider?.get() { fields.merge(provided) { $1 } }
    if let given = event.metadata { fields.merge(given) { $1 } }
    let (now, message) = (MonotonicClock.now(), event.message.description)
    for rest in sink.rates.sweep(at: now) {
      write(.notice, label: rest.kind.label, message: LogRates.summary, fields: rest.fields, error: nil)
    }
    guard let omitted = sink.rates.admit(label, message: message, level: event.level, fields: fields, at: now) else { return }
    if omitted > 0 { fields["omitted"] = "\(omitted)" }
    write(event.level, label: label, message: message, fields: fields, error: event.error)
  }

  private func write(
    _ level: Logger.Level, label: String, message: String, fields: Logger.Metadata, error: (any Error)?
  ) {
    let level = level.rawValue
    var line = JSONLogHandler.timestamp(WallClock.nowMicroseconds() / 1_000) + " " + level
    line +=
      String(repeating: " ", count: max(1, 9 - level.count)) + label + ": " + Self.clean(message, Limits.logMessageBytes)
    for (name, value) in fields.sorted(by: { $0.key < $1.key }).prefix(Limits.logFields) {
      let shown = JSONLogHandler.secretNames.contains(name.lowercased()) ? "‹redacted›" : value.description
      let text = Self.clean(shown, Limits.logValueBytes)
      line += " \(name)=" + (text.contains(" ") || text.isEmpty ? "\"\(text)\"" : text)
    }
    if let error { line += " error=\"" + Self.clean("\(error)", Limits.logValueBytes) + "\"" }
    sink.write(Array((line + "\n").utf8))
  }

  /// Cut, and safe for a terminal: a peer's words must not look like lines of ours.
  private static func clean(_ text: String, _ limit: Int) -> String {
    TerminalText.line(String(String.UnicodeScalarView(text.unicodeScalars.prefix(limit))))
  }
}
