import Foundation

/// Imports of the client's inner modules. SwiftPM lets an app import each module of a package, product or not; only the products are
/// API, and the others change without notice.
enum AppImports {
  static let products = ["TrunklineCallKit", "TrunklineClient", "TrunklineCallDirectory"]
  /// Products of the stand-in and of the SIP stack, which an app's tests or a program may import.
  private static let others: Set<String> = [
    "TrunklinePhoneLog", "TrunklineAppCheck", "TrunklineSIP", "TrunklineSIPDialogs", "TrunklineSIPTransport", "TrunklineSIPTrace",
    "TrunklineResolver", "TrunklinePlatform", "TrunklineBytes", "TrunklineSDP", "TrunklineRTP", "CTrunklineOpenSSL",
  ]
  /// Longer sources are generated, and not read.
  private static let maximumBytes = 4 << 20

  /// The inner modules that a Swift source imports, each with its line.
  static func inner(_ text: String) -> [(line: Int, module: String)] {
    var found: [(line: Int, module: String)] = []
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let code = line.firstRange(of: "//").map { line[..<$0.lowerBound] } ?? line
      guard let module = module(importedBy: code), isInner(module) else { continue }
      found.append((index + 1, module))
    }
    return found
  }

  /// The module after `import`, with any attributes, access level and kind before it.
  private static func module(importedBy line: Substring) -> String? {
    let words = line.split { !$0.isLetter && !$0.isNumber && $0 != "_" && $0 != "@" && $0 != "." }
    guard let at = words.firstIndex(of: "import"), at + 1 < words.count,
      words[..<at].allSatisfy({ $0.hasPrefix("@") || accessLevels.contains($0) })
    else { return nil }
    let name = kinds.contains(words[at + 1]) && at + 2 < words.count ? words[at + 2] : words[at + 1]
    return name.split(separator: ".").first.map(String.init)
  }

  private static let accessLevels: Set<Substring> = ["public", "package", "internal", "private", "fileprivate"]
  private static let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]

  private static func isInner(_ module: String) -> Bool {
    (module.hasPrefix("Trunkline") || module.hasPrefix("CTrunkline")) && !products.contains(module) && !others.contains(module)
  }

  static func read(_ file: URL) -> String? {
    guard let size = try? file.resourceValues(forKeys: [.fileSizeKey]).fileSize, size <= maximumBytes,
      let data = FileManager.default.contents(atPath: file.path)
    else { return nil }
    return String(decoding: data, as: UTF8.self)
  }
}
