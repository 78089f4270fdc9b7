/// A mistake in a configuration file.
public struct Problem: Sendable, Equatable, CustomStringConvertible {
  /// A file with warnings alone is accepted.
  public enum Severity: Sendable { case error, warning }
  public var severity = Severity.error
  public var file: String
  /// Counted from 1; 0 if the file is unreadable.
  public var line: Int
  public var column: Int
  /// Keys from the top, such as `routes.inbound[0].trunk`; empty for the file as a whole.
  public var path: String
  public var message: String
  /// The line of the file; nil if the file is unreadable.
  var excerpt: String?

  /// The description with the line, and a caret below the column.
  public var drawn: String {
    guard let excerpt else { return description }
    let start = max(0, column - Self.drawnBefore)
    let shown = excerpt.dropFirst(start).prefix(Self.drawnCharacters).map { $0 == "\t" ? " " : $0 }
    return "\(description)\n  \(String(shown))\n  \(String(repeating: " ", count: column - 1 - start))^"
  }
  /// How much of a long line is drawn, so that it fits into a terminal.
  private static let (drawnBefore, drawnCharacters) = (60, 110)

  public var description: String {
    let location = line > 0 ? "\(file):\(line):\(column): " : "\(file): "
    return location + (severity == .warning ? "warning: " : "") + (path.isEmpty ? "" : path + ": ") + message
  }
}

/// Every problem of one run, in the order of the file; never empty.
public struct ConfigurationProblems: Error, Sendable, CustomStringConvertible {
  public var problems: [Problem]
  /// The problems with their lines.
  public var drawn: String { problems.map(\.drawn).joined(separator: "\n") }
  public var description: String { problems.map(\.description).joined(separator: "\n") }
}
