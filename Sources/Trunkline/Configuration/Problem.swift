/// One thing wrong with a configuration file.
public struct Problem: Sendable, Equatable, CustomStringConvertible {
  /// A file with warnings alone is accepted.
  public enum Severity: Sendable { case error, warning }
  public var severity = Severity.error
  public var file: String
  /// From 1; 0 when the file could not be read at all.
  public var line: Int
  public var column: Int
  /// Keys from the top, such as `routes.inbound[0].trunk`; empty for the file as a whole.
  public var path: String
  public var message: String
  /// The line as it is written; nil when the file could not be read at all.
  var excerpt: String?

  /// With the line, and a caret below the column.
  public var drawn: String {
    guard let excerpt else { return description }
    let start = max(0, column - Self.drawnBefore)
    let shown = excerpt.dropFirst(start).prefix(Self.drawnCharacters).map { $0 == "\t" ? " " : $0 }
    return "\(description)\n  \(String(shown))\n  \(String(repeating: " ", count: column - 1 - start))^"
  }
  /// Of a long line, as much as fits into a terminal.
  private static let (drawnBefore, drawnCharacters) = (60, 110)

  public var description: String {
    let location = line > 0 ? "\(file):\(line):\(column): " : "\(file): "
    return location + (severity == .warning ? "warning: " : "") + (path.isEmpty ? "" : path + ": ") + message
  }
}

/// Every problem of one run, in the order of the file; never empty.
public struct ConfigurationProblems: Error, Sendable, CustomStringConvertible {
  public var problems: [Problem]
  /// With their lines.
  public var drawn: String { problems.map(\.drawn).joined(separator: "\n") }
  public var description: String { problems.map(\.description).joined(separator: "\n") }
}
