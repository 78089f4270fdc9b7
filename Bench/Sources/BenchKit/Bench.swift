import Glibc

/// One run of one bench: its options, its rows, its files. Every bench's `main` is
///
///     @main struct BenchSRTP {
///       nonisolated static func main() { Bench.main("srtp", about: "packets protected…") { bench in try rows(bench) } }
///     }
///
/// Options every bench understands: `BenchOption.common`; `--help` prints them and runs nothing. Progress goes to standard error.
public final class Bench {
  public let name: String
  public let isSmall: Bool
  /// JSON lines on standard output instead of a table.
  public let isJSON: Bool
  /// What follows the options understood here.
  public let arguments: [String]
  public private(set) var failures: [String] = []

  /// Where rows and pictures are written; nil: nowhere.
  public let results: String?
  let only: String?
  /// Set in the child that runs under callgrind: the one work to run, and how often.
  public let counted: (work: String, operations: Int)?
  private var printedHeading = false

  init(_ name: String, _ arguments: [String]) {
    self.name = name
    var rest: [String] = []
    var (small, json) = (false, false)
    var values: [String: String] = [:]
    var index = 0
    while index < arguments.count {
      let argument = arguments[index]
      if argument == "--small" {
        small = true
      } else if argument == "--json" {
        json = true
      } else if ["--results", "--only", "--count", "--operations"].contains(argument), index + 1 < arguments.count {
        values[argument] = arguments[index + 1]
        index += 1
      } else {
        rest.append(argument)
      }
      index += 1
    }
    (isSmall, isJSON, self.arguments) = (small, json, rest)
    (results, only) = (values["--results"], values["--only"])
    counted = values["--count"].map { ($0, Int(values["--operations"] ?? "") ?? 1) }
  }

  /// Runs a bench and ends the process: status 0, or 1 after an error or a failed requirement, 2 after an option that is none.
  /// `about` is the first line of its `--help`.
  public static func main(
    _ name: String, about: String, options: [BenchOption] = [], examples: [String] = [], _ body: (Bench) throws -> Void
  )
    -> Never
  {
    let arguments = Array(CommandLine.arguments.dropFirst())
    if arguments.contains(where: { $0 == "--help" || $0 == "-h" }) {
      print(BenchOption.text(name, about: about, options, examples: examples))
      exit(0)
    }
    if let fault = BenchOption.fault(arguments, options) {
      writeError("bench-\(name): \(fault)\n")
      exit(2)
    }
    let bench = Bench(name, arguments)
    if bench.counted == nil { bench.emptyResults() }
    do {
      try body(bench)
    } catch {
      bench.progress("failed: \(error)")
      exit(1)
    }
    if bench.counted != nil { exit(3) }
    for failure in bench.failures { print("\(name): \(failure)") }
    exit(bench.failures.isEmpty ? 0 : 1)
  }

  /// A line on standard error.
  public func progress(_ text: String) {
    guard counted == nil else { return }
    writeError("\(name): \(text)\n")
  }

  /// A requirement that is no matter of speed (a row that must not allocate): the bench ends with status 1.
  public func require(_ holds: Bool, _ failure: @autoclosure () -> String) {
    if !holds, counted == nil { failures.append(failure()) }
  }

  public func wants(_ row: String) -> Bool { only.map { row.contains($0) } ?? true }

  /// Whether any row with one of these words in its name may be wanted, and what all of them need must be started.
  public func mayWant(_ words: String...) -> Bool {
    only.map { only in words.contains { only.contains($0) || $0.contains(only) } } ?? true
  }

  /// Prints a row and writes it to the results file.
  public func add(_ row: BenchRow) {
    guard counted == nil, wants(row.name) else { return }
    let line = row.json(bench: name)
    if isJSON {
      print(line)
    } else {
      if !printedHeading { print(BenchTable.heading) }
      printedHeading = true
      for line in BenchTable.lines(row) { print(line) }
    }
    fflush(nil)
    append(line)
  }

  /// Writes a picture into the results folder; it becomes part of the report with its caption.
  public func save(_ svg: String, as file: String, caption: String) {
    guard counted == nil, let results else { return }
    guard write(svg, to: "\(results)/\(file).svg", mode: "w") else { return }
    append(#"{"bench":\#(jsonQuoted(name)),"picture":\#(jsonQuoted(file + ".svg")),"caption":\#(jsonQuoted(caption))}"#)
  }

  /// A sentence of the report, where a picture would show two numbers only.
  public func say(_ sentence: String) {
    guard counted == nil else { return }
    progress(sentence)
    append(#"{"bench":\#(jsonQuoted(name)),"sentence":\#(jsonQuoted(sentence))}"#)
  }

  private func append(_ line: String) {
    guard let results else { return }
    _ = write(line + "\n", to: "\(results)/\(name).jsonl", mode: "a")
  }

  private func emptyResults() {
    guard let results else { return }
    mkdir(results, 0o755)
    _ = write("", to: "\(results)/\(name).jsonl", mode: "w")
  }

  private func write(_ text: String, to path: String, mode: String) -> Bool {
    guard let file = fopen(path, mode) else {
      failures.append("\(path) cannot be written")
      return false
    }
    fputs(text, file)
    return fclose(file) == 0
  }
}

/// Standard error, without the C library's global, which Swift 6 does not let through.
public func writeError(_ text: String) {
  let octets = Array(text.utf8)
  _ = octets.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
}

/// Runs a peer that talks on standard error, without hearing it.
public func withoutStandardError<Result>(_ body: () throws -> Result) rethrows -> Result {
  let saved = dup(2)
  let nowhere = Glibc.open("/dev/null", O_WRONLY)
  if nowhere >= 0 { dup2(nowhere, 2) }
  defer {
    if saved >= 0 { dup2(saved, 2) }
    if saved >= 0 { close(saved) }
    if nowhere >= 0 { close(nowhere) }
  }
  return try body()
}

/// A JSON string literal.
public func jsonQuoted(_ text: String) -> String {
  var out = "\""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "\"": out += "\\\""
    case "\\": out += "\\\\"
    case "\n": out += "\\n"
    case "\t": out += "\\t"
    default: out += scalar.value < 32 ? " " : String(scalar)
    }
  }
  return out + "\""
}
