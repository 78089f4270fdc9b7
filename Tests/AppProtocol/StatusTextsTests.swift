import Foundation
import Testing
import TrunklineAppProtocol

@Suite struct StatusTextsTests {
  /// Read as text: no module stands above both.
  private static let texts: String = {
    let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let file = package.appendingPathComponent("Sources/Client/WebStatus/status/texts.js")
    return (try? String(contentsOf: file, encoding: .utf8)) ?? ""
  }()

  @Test(arguments: EndReason.allCases)
  func `the status page has words for every end reason`(reason: EndReason) {
    #expect(Self.texts.contains(" \(reason.rawValue): \""), "a row of REASONS in texts.js")
  }
}
