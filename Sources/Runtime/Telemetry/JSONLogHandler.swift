import Logging
import TrunklineBytes
import TrunklinePlatform

/// One JSON object a line: `ts`, `level`, `label`, `msg`, then the metadata.
///
/// Cost is bounded: message, values and their number are cut (2,048 characters, 512, 32). A `Redacted` value prints as a
/// mask; values under names that mean a secret are masked whatever they hold.
public struct JSONLogHandler: LogHandler {
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

  /// Metadata names whose values never reach a log.
  public static let secretNames: Set<String> = [
    "authorization", "token", "password", "pwd", "jwt", "key", "secret", "sdp", "resumetoken", "wake", "icepwd",
  ]

  public init(label: String, sink: LogSink, level: LogLevel = LogLevel(.info), metadataProvider: Logger.MetadataProvider? = nil) {
    (self.label, self.sink, shared, self.metadataProvider) = (label, sink, level, metadataProvider)
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
    var out = JSONText()
    out.field("ts", Self.timestamp(WallClock.nowMicroseconds() / 1_000))
    out.field("level", level.rawValue)
    out.field("label", label)
    out.field("msg", message, limit: Limits.logMessageBytes)
    for (name, value) in fields.sorted(by: { $0.key < $1.key }).prefix(Limits.logFields) {
      let shown = Self.secretNames.contains(name.lowercased()) ? "‹redacted›" : value.description
      out.field(Self.reserved.contains(name) ? name + "_" : name, shown, limit: Limits.logValueBytes)
    }
    if let error { out.field("error", "\(error)", limit: Limits.logValueBytes) }
    sink.write(out.object + [UInt8(ascii: "\n")])
  }

  private static let reserved: Set<String> = ["ts", "level", "label", "msg", "error"]

  /// RFC 3339 in UTC with milliseconds, from milliseconds since 1970.
  static func timestamp(_ milliseconds: Int64) -> String {
    let day: Int64 = 86_400_000
    let days = milliseconds >= 0 ? milliseconds / day : (milliseconds - day + 1) / day
    let time = milliseconds - days * day
    // civil-from-days: years of 400 begin in March, so that the leap day is the last
    let z = days + 719_468
    let era = (z >= 0 ? z : z - 146_096) / 146_097
    let dayOfEra = z - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * dayOfYear + 2) / 153
    let month = shifted < 10 ? shifted + 3 : shifted - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    func padded(_ value: Int64, _ width: Int) -> String {
      let digits = String(value)
      return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
    let date = "\(padded(year, 4))-\(padded(month, 2))-\(padded(dayOfYear - (153 * shifted + 2) / 5 + 1, 2))"
    let clock = "\(padded(time / 3_600_000, 2)):\(padded(time / 60_000 % 60, 2)):\(padded(time / 1_000 % 60, 2))"
    return "\(date)T\(clock).\(padded(time % 1_000, 3))Z"
  }
}
