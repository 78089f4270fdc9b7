import Foundation

/// The declarations that an app with calls needs, and those that are missing: background modes, capabilities,
/// extensions.
///
/// ```swift
/// let check = try AppCheck(path: "Examples/SamplePhone")
/// check.findings.isEmpty        // nothing is missing
/// print(check.text)
/// ```
/// Reads Info.plist and entitlements of the app and of its extensions, as sources or in a built bundle, and the imports of its Swift
/// sources. Files only; any thread.
public struct AppCheck: Sendable {
  public struct Finding: Sendable, Equatable {
    /// The file to change.
    public var file: String
    /// The missing declaration, and what to add.
    public var text: String
  }

  /// A file that cannot be read, and what to do.
  public struct Problem: Error, Sendable, Equatable, CustomStringConvertible {
    public let file: String
    public let text: String
    public var description: String { "\(file) \(text)" }
    init(in file: String, _ text: String) { (self.file, self.text) = (file, text) }
  }

  public private(set) var findings: [Finding] = []
  /// Kinds of extensions that the app does not have; this is no fault.
  public private(set) var notes: [String] = []
  /// Files that were read.
  public private(set) var files: [String] = []

  public init(path: String) throws(Problem) {
    let targets = try AppFiles.targets(at: path)
    files = targets.flatMap { [$0.info.name] + $0.entitlements.map(\.name) }
    for target in targets {
      if let problem = target.pointProblem { add(target.info, problem) }
      if target.kind == .app { checkApp(target, targets) }
    }
    for app in targets where app.kind == .app {
      for target in targets { checkExtension(target, of: app) }
    }
    checkImports(path)
    let unused: [(AppTarget.Kind, String)] = [
      (.callDirectory, "caller ID and blocking"), (.intents, "calls by Siri"),
      (.notificationService, "callers that no push service sees (encrypted metadata)"),
    ]
    for (kind, what) in unused where !targets.contains(where: { $0.kind == kind }) {
      notes.append("no extension has the point \(kind.rawValue): \(what) is not there")
    }
  }

  /// A report for a person: each finding with the file and what to add.
  public var text: String {
    var out = files.map { "read     \($0)" } + findings.map { "missing  \($0.file): \($0.text)" } + notes.map { "note     \($0)" }
    out.append(
      findings.isEmpty
        ? "nothing is missing" : "\(findings.count) \(findings.count == 1 ? "thing is" : "things are") missing or wrong")
    return out.joined(separator: "\n")
  }

  private mutating func checkImports(_ path: String) {
    for file in AppFiles.swiftFiles(at: path) {
      for (line, module) in AppImports.inner(AppImports.read(file.url) ?? "") {
        findings.append(
          Finding(
            file: "\(file.name):\(line)",
            text: "imports \(module), which is not a product and may change with each version: import "
              + AppImports.products.dropLast().joined(separator: " or ")))
      }
    }
  }

  mutating func add(_ list: PropertyList, _ text: String) {
    let finding = Finding(file: list.name, text: text)
    if !findings.contains(finding) { findings.append(finding) }
  }
}
