import Foundation
import Testing

/// Every Apple-only file is compiled on Linux, in its module, against the surfaces.
@Suite struct TypeCheckTests {
  @Test func `CFG-8: the SDK's modules compile in Swift 6 with their Apple-only files against the surfaces`() throws {
    let build = try SurfaceBuild.shared.get()
    for (name, _) in SurfaceBuild.modules {
      #expect(FileManager.default.fileExists(atPath: "\(build.folder)/\(name).swiftmodule"), "\(name)")
    }
  }

  @Test func `a call that the surface has not is refused, in each of these files`() throws {
    let wrong = [
      ("VoiceRender.swift", "AudioOutputUnitStart(unit)", "AudioOutputUnitStart(unit, 0)"),
      ("VoiceUnit.swift", "mode: .voiceChat", "mode: .voice"),
      ("KeychainSecrets.swift", "kSecMatchLimitOne", "kSecMatchLimit1"),
      ("NetworkPaths.swift", "pathUpdateHandler", "updateHandler"),
      ("URLSessionSockets.swift", "with: url, protocols:", "to: url, protocols:"),
      ("SystemLog.swift", "subsystem:", "system:"),
      ("NetworkSocket.swift", "requiredInterfaceType", "requiredInterface"),
      ("AppLife.swift", "AVAudioApplication.shared", "AVAudioApplication.sharedInstance"),
    ]
    let build = try SurfaceBuild.shared.get()
    var files = try SurfaceBuild.files("Sources/Client/TrunklineClient") + [build.folder + "/Exports.swift"]
    for (file, old, new) in wrong {
      let number = try #require(files.firstIndex { $0.hasSuffix("/Apple/" + file) })
      let text = try String(contentsOfFile: files[number], encoding: .utf8)
      #expect(text.contains(old), "\(file) has no \(old) any more")
      files[number] = "\(build.folder)/broken-\(file)"
      try text.replacing(old, with: new).write(toFile: files[number], atomically: true, encoding: .utf8)
    }
    // All in one compilation: it needs seconds, and each error names its file.
    let outcome = try build.compile("TrunklineClient", files)
    #expect(outcome.status != 0)
    for (file, _, _) in wrong { #expect(outcome.text.contains("broken-\(file):"), "\(outcome.text)") }
  }

  @Test func `each declaration of a surface names the header or the page that it is from`() throws {
    let source = /^\/\/\/ ([A-Za-z]+\/)?[A-Za-z+]+\.h($|[,: ])|^\/\/\/ developer\.apple\.com\/documentation\/[a-z\/]+/
    var count = 0
    for name in SurfaceBuild.surfaceModules + ["AudioToolbox"] {
      let file = "\(SurfaceBuild.surfaces)/\(name)/\(name).\(name == "AudioToolbox" ? "h" : "swift")"
      let lines = try String(contentsOfFile: file, encoding: .utf8).components(separatedBy: "\n")
      for (number, line) in lines.enumerated() where Self.isDeclaration(line) {
        count += 1
        let before = number > 0 ? lines[number - 1] : ""
        #expect(try source.firstMatch(in: before) != nil, "\(file):\(number + 1): \(line)")
      }
    }
    #expect(count > 60, "only \(count) declarations")
  }

  /// At the left margin; the header of an outer declaration covers the inner ones.
  private static func isDeclaration(_ line: String) -> Bool {
    ["public ", "open ", "@MainActor ", "typedef ", "enum ", "OSStatus ", "AudioComponent "].contains { line.hasPrefix($0) }
      && !line.hasPrefix("public import")
  }
}
