import Foundation
import Yams

/// Reads a configuration from YAML. Blocks on files: not for the control thread.
public enum ConfigurationFile {
  /// The file at `path`; relative paths in it start at its directory. `triesFiles`: as `parse`.
  public static func load(_ path: String, triesFiles: Bool = false) throws(ConfigurationProblems) -> Settings {
    func unreadable(_ why: String) -> ConfigurationProblems {
      ConfigurationProblems(problems: [Problem(file: path, line: 0, column: 0, path: "", message: "cannot read: \(why)")])
    }
    guard access(path, R_OK) == 0 else { throw unreadable(String(cString: strerror(errno))) }
    guard let data = FileManager.default.contents(atPath: path) else { throw unreadable("not a file") }
    guard data.count <= Limits.fileBytes else { throw unreadable("more than \(Limits.fileBytes) bytes") }
    guard let text = String(data: data, encoding: .utf8) else { throw unreadable("not UTF-8") }
    let directory = URL(fileURLWithPath: path).standardizedFileURL.deletingLastPathComponent().path
    return try parse(text, file: path, directory: directory, triesFiles: triesFiles)
  }

  /// `file`: the name in problems; `directory`: absolute, the start of relative paths. `triesFiles`: also checks certificates and
  /// folders that `serve` opens itself.
  public static func parse(
    _ text: String, file: String, directory: String, environment: [String: String] = ProcessInfo.processInfo.environment,
    triesFiles: Bool = false
  ) throws(ConfigurationProblems) -> Settings {
    let parser = ConfigurationParser(file: file, directory: directory, environment: environment, triesFiles: triesFiles)
    lazy var lines = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    /// Sorts problems in the order of the file and adds their lines.
    func finished(_ problems: [Problem]) -> [Problem] {
      var out = problems.enumerated().sorted {
        ($0.element.line, $0.element.column, $0.offset) < ($1.element.line, $1.element.column, $1.offset)
      }.map(\.element)
      for index in out.indices where lines.indices.contains(out[index].line - 1) {
        out[index].excerpt = String(lines[out[index].line - 1])
      }
      return out
    }
    let root: Node?
    do {
      root = try Yams.compose(yaml: text)
    } catch {
      throw ConfigurationProblems(problems: finished([syntaxProblem(error, file: file, lines)]))
    }
    var configuration = parser.configuration(root)
    let sorted = finished(parser.problems)
    guard sorted.allSatisfy({ $0.severity == .warning }) else { throw ConfigurationProblems(problems: sorted) }
    configuration.warnings = sorted
    return configuration
  }

  private static func syntaxProblem(_ error: any Error, file: String, _ lines: [Substring]) -> Problem {
    func problem(_ mark: Mark?, _ message: String) -> Problem {
      Problem(file: file, line: mark?.line ?? 1, column: mark?.column ?? 1, path: "", message: message)
    }
    guard let error = error as? YamlError else { return problem(nil, "\(error)") }
    switch error {
    case .scanner(_, let text, let mark, _), .parser(_, let text, let mark, _), .composer(_, let text, let mark, _):
      let line = lines.indices.contains(mark.line - 1) ? lines[mark.line - 1] : ""
      return problem(mark, YAMLFault(text: text, line: line, column: mark.column).message ?? "not YAML: \(text)")
    case .duplicatedKeysInMapping(let names, let context):
      return problem(context.mark, "key given twice: \(names.joined(separator: ", "))")
    case .reader(let text, _, _, _): return problem(nil, "not YAML: \(text)")
    default: return problem(nil, "not YAML: \(error)")
    }
  }
}
