import Foundation
import Testing

@testable import Configuration
@testable import trunkline

@Suite struct CertificateTests {
  private func made(_ days: [Int]) throws -> String {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("certificates-\(UUID().uuidString.prefix(8))").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    var chain = "no certificate yet\n"
    for (index, count) in days.enumerated() {
      let process = Process()
      process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
      process.arguments = [
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "\(count)", "-keyout", "x.key",
        "-out", "\(index).pem", "-subj", "/CN=\(index)",
      ]
      process.currentDirectoryURL = URL(fileURLWithPath: folder)
      (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
      try process.run()
      process.waitUntilExit()
      chain += try String(contentsOfFile: folder + "/\(index).pem", encoding: .utf8)
    }
    try chain.write(toFile: folder + "/chain.pem", atomically: true, encoding: .utf8)
    return folder
  }

  @Test func `a chain expires with the first of its certificates`() throws {
    let folder = try made([30, 10, 90])
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let expires = try #require(CertificateFile(use: .sip, path: folder + "/chain.pem").expires())
    let days = (Double(expires) - Date().timeIntervalSince1970) / 86_400
    #expect(days > 9.9 && days <= 10)
  }

  @Test func `a file without a certificate, or none at all, expires never`() throws {
    let folder = try made([])
    defer { try? FileManager.default.removeItem(atPath: folder) }
    #expect(CertificateFile(use: .sip, path: folder + "/chain.pem").expires() == nil)
    #expect(CertificateFile(use: .sip, path: folder + "/nothing.pem").expires() == nil)
    #expect(CertificateFile(use: .sip, path: folder).expires() == nil)
  }

  @Test func `every certificate that we show is watched: of apps, of SIP, of each trunk that has one`() {
    var settings = Settings()
    #expect(settings.certificates.isEmpty && settings.certificatePaths.isEmpty)
    settings.listen.appTLS = .init(certificate: "/app.pem", key: "/app.key")
    settings.listen.sipTLS = [settings.listen.app]
    settings.listen.sipServer = .init(
      identity: .init(certificate: "/sip.pem", key: "/sip.key", authorities: "/ca.pem"),
      others: [.init(certificate: "/other.pem", key: "/other.key")])
    var trunk = Settings.Trunk(routing: .init(name: "carrier"))
    trunk.tls = .init(certificate: "/trunk.pem", key: "/trunk.key")
    settings.trunks = [Settings.Trunk(routing: .init(name: "plain")), trunk]
    #expect(
      settings.certificates == [
        .init(use: .app, path: "/app.pem"), .init(use: .sip, path: "/sip.pem"), .init(use: .sip, path: "/other.pem"),
        .init(use: .trunk, trunk: "carrier", path: "/trunk.pem"),
      ])
    #expect(
      settings.certificatePaths == [
        "/app.pem", "/app.key", "/sip.pem", "/sip.key", "/ca.pem", "/other.pem", "/other.key", "/trunk.pem", "/trunk.key",
      ])
  }

  @Test func `of several certificates of the SIP listener the metric has the one that expires first, in one row`() {
    let (one, other) = (CertificateFile(use: .sip, path: "/a.pem"), CertificateFile(use: .sip, path: "/b.pem"))
    let trunk = CertificateFile(use: .trunk, trunk: "t", path: "/c.pem")
    let rows = CertificateWatch.earliest(
      [one, other, trunk, .init(use: .app, path: "/unread.pem")], [one: 30, other: 10, trunk: 20])
    #expect(rows.map(\.labels) == [["sip", ""], ["trunk", "t"]] && rows.map(\.expires) == [10, 20])
  }

  @Test(arguments: [
    ("control", true), ("app-0", true), ("app-1", true), ("admin", true), ("media-0", true), ("media-63", true), ("dtls-0", true),
    ("store", false), ("push", false), ("dns", false), ("webhook", false), ("verify", false), ("certificates", false),
    ("log", false),
  ])
  func `a hang of those that calls need ends the process, of others only health says so`(thread: String, isVital: Bool) {
    #expect(VitalThreads.contains(thread) == isVital)
  }
}
