/// An option of one bench beside those that all understand: `--seeds N`, or `--pauses` without a value.
public struct BenchOption: Sendable {
  let usage: String
  let help: String

  /// `usage` is the name, with a word for its value if it takes one.
  public init(_ usage: String, _ help: String) { (self.usage, self.help) = (usage, help) }

  var name: String { String(usage.prefix { $0 != " " }) }
  var takesValue: Bool { usage.contains(" ") }

  static let common = [
    BenchOption("--small", "a few seconds, as the test suite runs it; nothing is counted by callgrind"),
    BenchOption("--only TEXT", "rows whose name contains TEXT"),
    BenchOption("--json", "JSON lines in place of the table"),
    BenchOption("--results FOLDER", "also FOLDER/NAME.jsonl for the report, and pictures beside it"),
    BenchOption("--help", "this text; nothing is run"),
  ]
  /// How a bench calls itself under callgrind.
  private static let hidden = [BenchOption("--count WORK", ""), BenchOption("--operations N", "")]

  static func text(_ bench: String, about: String, _ options: [BenchOption], examples: [String] = []) -> String {
    let all = options + common
    let width = all.reduce(0) { max($0, $1.usage.count) }
    return "bench-\(bench): \(about)\n\n"
      + all.map { "  \(BenchTable.left($0.usage, width))  \($0.help)\n" }.joined()
      + (examples.isEmpty ? "" : "\nEXAMPLES:\n" + examples.map { "  \($0)\n" }.joined())
  }

  /// What is wrong with the arguments, and what there is; nil if nothing is.
  static func fault(_ arguments: [String], _ options: [BenchOption]) -> String? {
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      guard let option = (options + common + hidden).first(where: { $0.name == argument }) else {
        let known = (options + common).map(\.usage).joined(separator: ", ")
        return "unknown option \(argument); there are: \(known)"
      }
      if option.takesValue, rest.popFirst() == nil { return "\(argument) wants a value: \(option.usage)" }
    }
    return nil
  }
}
