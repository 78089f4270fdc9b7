import TrunklineBytes

/// The first line of a trace: `0.000 app trace version=1 by=TrunklineClient system=CallKitSystem os="Version 26.4"`.
public struct TraceHeader: Sendable, Equatable {
  public static let event = "trace"
  /// The version of the format. A reader refuses a higher one, in which events may mean something else.
  public static let version = 1

  public enum Writer: String, Sendable {
    /// The stand-in's log: it contains all acts of the user, the network and the system.
    case standIn = "AppleStandIn"
    /// The SDK's trace: it contains what its process received and sent.
    case sdk = "TrunklineClient"
  }

  /// Nil: another writer.
  public var writer: Writer?
  /// The type of the SDK's call system; nil in the stand-in's log.
  public var system: String?
  /// The system's version, as the system states it.
  public var os: String?
  /// Whether the app's Info.plist has the background mode `voip`; nil: there is no Info.plist.
  public var hasVoIPBackgroundMode: Bool?
  /// The number of oldest lines that the writer had dropped.
  public var dropped = 0
  /// The number of lines that follow, where the writer knew it.
  public var lines: Int?

  public init(_ writer: Writer) { self.writer = writer }

  public var line: LogLine {
    var fields: [LogLine.Field] = [("version", "\(Self.version)")]
    func add(_ key: String, _ value: String?) { if let value { fields.append((key, value)) } }
    add("by", writer?.rawValue)
    add("system", system)
    add("os", os)
    add("voip", hasVoIPBackgroundMode.map { "\($0)" })
    add("dropped", dropped > 0 ? "\(dropped)" : nil)
    add("lines", lines.map { "\($0)" })
    return LogLine(.zero, .app, Self.event, fields)
  }

  /// Nil: the line is no header. The caller checks the version.
  public init?(_ line: LogLine) {
    guard line.who == .app, line.event == Self.event else { return nil }
    writer = line["by"].flatMap { Writer(rawValue: $0) }
    (system, os) = (line["system"], line["os"])
    hasVoIPBackgroundMode = line["voip"].flatMap { Bool($0) }
    dropped = line["dropped"].flatMap { Int($0) } ?? 0
    lines = line["lines"].flatMap { Int($0) }
  }
}
