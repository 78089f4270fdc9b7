import Foundation
import Testing

/// Deploy/alerts.yml: each alert has a runbook, fires after its time, and recovers.
@Suite struct AlertTests {
  private let deploy = DocumentsTests.root.appendingPathComponent("Deploy")

  @Test func `each alert has its section in docs/runbooks.md, and is made to fire`() throws {
    let alerts = try String(contentsOf: deploy.appendingPathComponent("alerts.yml"), encoding: .utf8)
    let tests = try String(contentsOf: deploy.appendingPathComponent("alerts.test.yml"), encoding: .utf8)
    let page = try String(contentsOf: DocumentsTests.root.appendingPathComponent("docs/runbooks.md"), encoding: .utf8)
    let names = alerts.matches(of: /- alert: (\w+)/).map { String($0.1) }
    #expect(names.count >= 10)
    for name in names {
      #expect(page.contains("\n## \(name)\n"), "\(name) has no runbook")
      #expect(alerts.contains("runbook_url: docs/runbooks.md#\(name.lowercased())\n"))
      let fires = tests.components(separatedBy: "alertname: \(name)\n        exp_alerts:").count > 1
      #expect(fires && tests.contains("alertname: \(name) }"), "alerts.test.yml makes \(name) fire, and recover")
    }
    let sections = page.matches(of: /\n## (\w+)\n/).map { String($0.1) }
    #expect(Set(sections) == Set(names), "each runbook has its alert")
  }

  @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/promtool"), "needs Debian's package prometheus"))
  func `promtool: the rules are valid, each fires after its time, and recovers`() throws {
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts.test.yml"]] {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/usr/bin/promtool")
      process.currentDirectoryURL = deploy
      process.arguments = arguments
      let output = Pipe()
      (process.standardOutput, process.standardError) = (output, output)
      try process.run()
      let said = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      process.waitUntilExit()
      #expect(process.terminationStatus == 0, "\(said)")
    }
  }
}
