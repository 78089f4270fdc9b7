import Foundation

/// Apple's systems by the version that a symbol needs.
struct SystemVersions: Equatable, CustomStringConvertible {
  /// Major and minor, in one number.
  var iOS: Int
  var macOS: Int

  static func number(_ text: some StringProtocol) -> Int? {
    let parts = text.split(separator: ".").map { Int($0) }
    guard let major = parts.first ?? nil else { return nil }
    return major * 100 + (parts.count > 1 ? parts[1] ?? 0 : 0)
  }
  func exceeds(_ other: SystemVersions) -> Bool { iOS > other.iOS || macOS > other.macOS }
  var description: String { "iOS \(Self.text(iOS)), macOS \(Self.text(macOS))" }
  private static func text(_ number: Int) -> String { "\(number / 100).\(number % 100)" }
}

/// Tests/AppleSurface/availability.tsv, as Scripts/apple-table writes it: symbols of the standard library and Foundation that are newer than iOS 17 or
/// macOS 14, by the names that the compiler's index has for them.
struct AvailabilityTable {
  struct Row {
    var name: String
    var needs: SystemVersions
  }
  private(set) var rows: [String: Row] = [:]
  /// Types, whose members begin with their names.
  private var types: [(usr: String, row: Row)] = []

  init(_ text: String) {
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      let columns = line.split(separator: "\t").map(String.init)
      guard columns.count == 6, let iOS = SystemVersions.number(columns[1]), let macOS = SystemVersions.number(columns[2]) else {
        continue
      }
      let row = Row(name: columns[4], needs: SystemVersions(iOS: iOS, macOS: macOS))
      rows[columns[5]] = row
      if columns[0] == "type" { types.append((columns[5], row)) }
    }
  }

  /// Adds what a symbol graph, as swift-symbolgraph-extract writes it, says of a module's own `@available`.
  mutating func add(graph: Data) throws {
    struct Graph: Decodable {
      struct Version: Decodable {
        var major: Int
        var minor: Int?
      }
      struct Availability: Decodable {
        var domain: String?
        var introduced: Version?
      }
      struct Symbol: Decodable {
        struct Name: Decodable { var precise: String }
        var identifier: Name
        var pathComponents: [String]
        var availability: [Availability]?
      }
      var symbols: [Symbol]
    }
    for symbol in try JSONDecoder().decode(Graph.self, from: graph).symbols {
      func version(_ domain: String) -> Int {
        let since = symbol.availability?.first { $0.domain == domain }?.introduced
        return since.map { $0.major * 100 + ($0.minor ?? 0) } ?? 0
      }
      let needs = SystemVersions(iOS: version("iOS"), macOS: version("macOS"))
      guard needs.iOS > 0 || needs.macOS > 0 else { continue }
      rows[symbol.identifier.precise] = Row(name: symbol.pathComponents.joined(separator: "."), needs: needs)
    }
  }

  /// What a symbol needs, by its own row or by that of a type around it; nil: no more than iOS 17.
  func row(of usr: String) -> Row? {
    let own = rows[usr]
    let around = types.filter { usr.hasPrefix($0.usr) }.map(\.row)
    return ([own].compactMap { $0 } + around).max { $0.needs.iOS < $1.needs.iOS }
  }
}

/// Whether a line of Swift is reached on newer systems only: `@available` before a declaration, `if #available`, `guard #available`. It reads braces, not
/// Swift: where it is wrong a line fails that Apple's compiler would let through.
struct AvailabilityGuard {
  nonisolated(unsafe) private static let condition = /[@#]available\(([^)]*)\)/
  nonisolated(unsafe) private static let version = /(iOS|macOS) ([0-9.]+)/

  private let needs: SystemVersions
  /// Of each scope around: that it is reached on such systems only.
  private var scopes = [false]
  /// Of each scope but the first: that it is the `else` of such a guard.
  private var guards: [Bool] = []
  /// What stands before the next brace: attributes and the statement that they belong to.
  private var head = ""
  private var parentheses = 0

  /// - Parameter number: of the line, from 1.
  static func covers(_ number: Int, of lines: [String], _ needs: SystemVersions) -> Bool {
    var guards = AvailabilityGuard(needs)
    for line in lines.prefix(number - 1) { guards.read(line) }
    guard lines.indices.contains(number - 1) else { return false }
    return guards.reads(last: lines[number - 1])
  }

  private init(_ needs: SystemVersions) { self.needs = needs }

  private mutating func read(_ line: String) {
    let code = Self.code(line)
    for character in code { read(character) }
    let end = code.trimmingCharacters(in: .whitespaces)
    if parentheses == 0, !end.hasPrefix("@") || end.contains(" var ") || end.contains(" let "), !end.hasSuffix(",") { head = "" }
    head += " "
  }

  private mutating func read(_ character: Character) {
    switch character {
    case "{":
      // what a guard's braces leave is what comes behind them
      let isGuard = head.contains("guard ")
      guards.append(isGuard && allows(head))
      scopes.append(scopes.contains(true) || (!isGuard && allows(head)))
      head = ""
    case "}":
      if scopes.count > 1 {
        scopes.removeLast()
        if guards.removeLast() { scopes[scopes.count - 1] = true }
      }
      head = ""
    default:
      if character == "(" { parentheses += 1 }
      if character == ")" { parentheses -= 1 }
      head.append(character)
    }
  }

  /// The line itself may open the scope, or close it.
  private mutating func reads(last line: String) -> Bool {
    var isCovered = scopes.contains(true)
    for character in Self.code(line) {
      read(character)
      isCovered = isCovered || scopes.contains(true)
    }
    return isCovered || allows(head)
  }

  private func allows(_ code: String) -> Bool {
    for list in code.matches(of: Self.condition) {
      var found: [Substring: Int] = [:]
      for match in list.output.1.matches(of: Self.version) { found[match.output.1] = SystemVersions.number(match.output.2) }
      // without a version a system is not restricted: `@available(iOS 26.4, *)` is for what only an iPhone compiles
      if let iOS = found["iOS"], iOS >= needs.iOS, needs.macOS == 0 || (found["macOS"] ?? 0) >= needs.macOS { return true }
    }
    return false
  }

  /// Without what stands in quotes, and without a comment at the end.
  private static func code(_ line: String) -> String {
    var (code, isText, last) = ("", false, Character(" "))
    for character in line {
      if character == "\"", last != "\\" { isText.toggle() } else if !isText { code.append(character) }
      if code.hasSuffix("//") { return String(code.dropLast(2)) }
      last = character
    }
    return code
  }
}
