import TrunklineMediaSession
import Yams

/// Walks the node tree and continues after a problem, so that one run reports them all.
final class ConfigurationParser {
  let file: String
  /// Relative paths in the file are relative to this.
  let directory: String
  /// For values such as `env:PUBLIC_IP`.
  let environment: [String: String]
  /// Whether the files that `serve` would open are opened, too.
  let triesFiles: Bool
  private(set) var problems: [Problem] = []
  private var marks: [String: Mark] = [:]
  /// Recordings by path: read once, however many users have them.
  var recordings: [String: Announcement] = [:]

  /// Behind an edge a trunk that only calls us needs neither `uri` nor `peers`.
  private(set) var hasEdges = false

  init(file: String, directory: String, environment: [String: String], triesFiles: Bool) {
    (self.file, self.directory, self.environment, self.triesFiles) = (file, directory, environment, triesFiles)
  }

  /// Reads the whole file; absent parts have their defaults.
  func configuration(_ root: Node?) -> Settings {
    var out = Settings()
    let peers = root?.mapping?["cluster"]?.mapping?["edges"]?.mapping?["peers"]
    hasEdges = peers.map { !$0.isNull } ?? false
    let file = Field(parser: self, node: root.flatMap { $0.isNull ? nil : $0 }, path: "")
    ConfigurationKeys.file.read(file, into: &out)
    linkAccounts(&out.trunks)
    out.calls.recording = out.recording?.rules
    out.calls.verifiesIdentity = out.verifier != nil
    if let edges = out.cluster?.edges { apply(edges, to: &out) }
    crossCheck(out)
    return out
  }

  /// Remembers the position of `path`, for this problem and for later cross-checks.
  func visit(_ path: String, _ node: Node) {
    if let mark = node.mark { marks[path] = mark }
  }

  /// Reports a problem at the mark of `path`, or of the nearest key above it that is in the file.
  func problem(at path: String, _ message: String, _ severity: Problem.Severity = .error) {
    var key = path
    while marks[key] == nil, !key.isEmpty {
      let end = key.lastIndex { $0 == "." || $0 == "[" } ?? key.startIndex
      key = String(key[..<end])
    }
    let mark = marks[key]
    let new = Problem(
      severity: severity, file: file, line: mark?.line ?? 1, column: mark?.column ?? 1, path: path, message: message)
    problems.append(new)
  }

  func isWritten(_ path: String) -> Bool { marks[path] != nil }

  /// `text` as an absolute path.
  func resolve(_ text: String) -> String {
    text.hasPrefix("/") ? text : directory + "/" + text
  }
}

/// A node as a message shows it.
func shown(_ node: Node) -> String {
  switch node {
  case .scalar(let scalar): "\"\(scalar.string.prefix(60))\""
  case .mapping: "a mapping"
  case .sequence: "a list"
  case .alias: "an alias"
  }
}

extension Node {
  /// The text of a scalar as written; nil for null, a mapping or a list.
  var text: String? {
    guard case .scalar(let scalar) = self, !isNull else { return nil }
    return scalar.string
  }
  /// `key:` without a value counts as absent.
  var isNull: Bool {
    guard case .scalar(let scalar) = self else { return false }
    return scalar.style == .plain && ["", "~", "null"].contains(scalar.string)
  }
}
