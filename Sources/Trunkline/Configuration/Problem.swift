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

  public var description: String {
    let place = line > 0 ? "\(file):\(line):\(column): " : "\(file): "
    return place + (severity == .warning ? "warning: " : "") + (path.isEmpty ? "" : path + ": ") + message
  }
}

/// Every problem of one run, in the order of the file; never empty.
public struct ConfigurationProblems: Error, Sendable, CustomStringConvertible {
  public var problems: [Problem]
  public var description: String { problems.map(\.description).joined(separator: "\n") }
}
