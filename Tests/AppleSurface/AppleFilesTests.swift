import Foundation
import Testing

/// Apple-only code is in the listed files and nowhere else: code that no test can run must stay short.
@Suite struct AppleFilesTests {
  private static let sources = SurfaceBuild.root + "/Sources/"
  private static let apple = [
    "AppLife", "KeychainSecrets", "NetworkPaths", "NetworkRelay", "NetworkSocket", "SystemLog", "URLSessionSockets",
    "VoiceRender",
    "VoiceUnit",
  ].map {
    "Client/TrunklineClient/Apple/\($0).swift"
  }
  private static let imports = ["Client/TrunklineCallKit/Imports.swift"]
  /// Imports only: an extension does not link TrunklineCallKit.
  private static let directory = "Client/TrunklineCallDirectory/Imports.swift"

  private static func text(_ file: String) throws -> String { try String(contentsOfFile: sources + file, encoding: .utf8) }

  @Test func `Apple-only code is in nine files and one of imports, of some 770 lines together`() throws {
    let folder = "Client/TrunklineClient/Apple/"
    let found = try FileManager.default.contentsOfDirectory(atPath: Self.sources + folder).map { folder + $0 }.sorted()
    #expect(found == Self.apple)
    let counts = try (Self.apple + Self.imports).map { try Self.text($0).components(separatedBy: "\n").count - 1 }
    #expect((300...800).contains(counts.reduce(0, +)), "\(counts)")
    #expect(try Self.text(Self.directory).components(separatedBy: "\n").count < 10, "imports, and nothing else")
    for file in Self.apple {
      let lines = try Self.text(file).components(separatedBy: "\n")
      #expect(lines.first?.hasPrefix("#if ") == true && lines.suffix(2) == ["#endif", ""], "\(file) is not Apple's whole")
    }
  }

  // Made once, since a literal in a function is compiled again at each call. Never changed, and used by one thread at a time.
  nonisolated(unsafe) private static let comment = /(^|[^:])\/\/.*/
  nonisolated(unsafe) private static let conditions =
    /(os\(iOS\)|targetEnvironment\(|canImport\((CallKit|PushKit|UIKit|AVFAudio|AVFoundation|Network|Security|Intents|os)\))/
  nonisolated(unsafe) private static let frameworks =
    /^ *(?:@_exported )?(?:public )?import (CallKit|PushKit|UIKit|AVFAudio|AVFoundation|AudioToolbox|Network|Security|Intents|os)$/

  /// The first expression of a line that only an Apple-only file may contain.
  static func offence(_ line: String) -> String? {
    let code = line.replacing(comment, with: "")
    if let match = code.firstMatch(of: conditions) { return String(match.output.1) }
    return code.firstMatch(of: frameworks).map { "import " + $0.output.1 }
  }

  @Test func `nothing else asks for Apple's frameworks or for iOS`() throws {
    let allowed = Set(Self.apple + Self.imports + [Self.directory])
    let files = FileManager.default.enumerator(atPath: Self.sources)?.compactMap { $0 as? String } ?? []
    var count = 0
    for file in files where file.hasSuffix(".swift") && !allowed.contains(file) {
      count += 1
      for (number, line) in try Self.text(file).components(separatedBy: "\n").enumerated()
      where line.contains("import ") || line.contains("#") {
        #expect(Self.offence(line) == nil, "\(file):\(number + 1): \(line)")
      }
    }
    #expect(count > 400, "only \(count) files")
  }

  @Test func `the rule refuses what it should`() {
    for line in [
      "#if canImport(CallKit) && os(iOS)", "  #if os(iOS)", "#elseif os(iOS)", "import CallKit", "  public import AVFAudio",
      "@_exported public import Intents", "#if targetEnvironment(simulator)", "#if canImport(Network)",
    ] { #expect(Self.offence(line) != nil, "\(line)") }
    for line in ["// #if os(iOS)", "#if canImport(Darwin)", "#if os(Linux)", "import AppleStandIn", "let network = Network()"] {
      #expect(Self.offence(line) == nil, "\(line)")
    }
  }

  @Test func `CFG-7: one function asks for the simulator, and its phone reports that pushes do not arrive`() throws {
    #expect(try Self.text("Client/TrunklineClient/Apple/AppLife.swift").contains("#if targetEnvironment(simulator)"))
    let phone = try Self.text("Client/TrunklineCallKit/Phone+CallKit.swift")
    #expect(phone.contains("Application.isSimulator") && phone.contains("NoCallSystem(saysUnsupported: true)"))
  }

  @Test func `the unit's callbacks hold no word that allocates, locks or logs`() throws {
    let text = try Self.text("Client/TrunklineClient/Apple/VoiceRender.swift")
    let hot = try #require(text.components(separatedBy: "// HOT").last)
    #expect(text.contains("// HOT") && hot.count > 1_000)
    for word in ["print(", "Mutex", "withLock", "queue", "[Int16]", "Array(", "String", "async", "class ", ".append"] {
      #expect(!hot.contains(word), "\(word)")
    }
  }
}
