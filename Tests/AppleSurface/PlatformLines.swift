import Foundation

/// Which lines of a file a system compiles, by its `#if`.
struct PlatformLines {
  /// Conditions that hold, as they are written: `os(Linux)`, `canImport(Darwin)`.
  struct System: Sendable {
    var holds: @Sendable (Substring) -> Bool

    static let linux = System { ["os(Linux)", "canImport(Glibc)", "canImport(FoundationEssentials)"].contains($0) }
    /// The compilation of `SurfaceBuild`.
    static let surface = System { linux.holds($0) || $0 == "APPLE_SURFACE" || $0.hasPrefix("canImport(AV") }
    static let iPhone = System {
      let others = ["canImport(Glibc)", "canImport(FoundationEssentials)", "APPLE_SURFACE", "os(Linux)", "os(macOS)", "true"]
      return !others.contains(String($0)) && !$0.hasPrefix("targetEnvironment")
    }
  }

  /// Lines, from 1, that are compiled.
  static func compiled(_ text: String, by system: System) -> Set<Int> {
    var lines: Set<Int> = []
    // of each `#if` around: whether this branch counts, and whether one did before
    var branches: [(isOn: Bool, wasOn: Bool)] = []
    for (index, line) in text.components(separatedBy: "\n").enumerated() {
      let code = line.trimmingCharacters(in: .whitespaces)
      if code.hasPrefix("#if ") {
        let isOn = holds(code.dropFirst(4), system)
        branches.append((isOn, isOn))
      } else if code.hasPrefix("#elseif "), let last = branches.popLast() {
        let isOn = !last.wasOn && holds(code.dropFirst(8), system)
        branches.append((isOn, last.wasOn || isOn))
      } else if code.hasPrefix("#else"), let last = branches.popLast() {
        branches.append((!last.wasOn, true))
      } else if code.hasPrefix("#endif") {
        branches.removeLast()
      } else if branches.allSatisfy(\.isOn) {
        lines.insert(index + 1)
      }
    }
    return lines
  }

  /// `a && b || !c`, with one level of parentheses.
  private static func holds(_ condition: Substring, _ system: System) -> Bool {
    var text = String(condition)
    while let inner = text.firstMatch(of: /(^|[ !(])\(([^()]*(\([A-Za-z]*\)[^()]*)*)\)/) {
      text.replaceSubrange(inner.range, with: String(inner.output.1) + (holds(inner.output.2, system) ? "true" : "false"))
    }
    return text.split(separator: "||").contains { terms in
      terms.split(separator: "&&").allSatisfy { term in
        let term = term.trimmingCharacters(in: .whitespaces)
        let atom = term.drop { $0 == "!" }
        let isTrue = atom == "true" || (atom != "false" && system.holds(atom))
        return term.hasPrefix("!") != isTrue
      }
    }
  }
}
