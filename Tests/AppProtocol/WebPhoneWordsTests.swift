import Foundation
import Testing
import TrunklineAppProtocol

@Suite struct WebPhoneWordsTests {
  /// Read as text: no module stands above both.
  private static let words: String = {
    let package = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let file = package.appendingPathComponent("Sources/Client/WebPhone/texts-en.js")
    return (try? String(contentsOf: file, encoding: .utf8)) ?? ""
  }()

  @Test(arguments: EndReason.allCases)
  func `the web phone has words for every end reason`(reason: EndReason) {
    #expect(Self.words.contains("\"reason.\(reason.rawValue)\": \""), "a text in texts-en.js")
  }

  @Test(arguments: ErrorCode.allCases)
  func `the web phone has words for every refusal`(code: ErrorCode) {
    #expect(Self.words.contains("\"reason.\(code.rawValue)\": \""), "a text in texts-en.js")
  }
}
