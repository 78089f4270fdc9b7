import Foundation
import Testing

@testable import Configuration

@Suite struct FileCheckTests {
  private let folder: TemporaryFolder
  init() throws { folder = try TemporaryFolder() }

  /// `NAME.pem` with `NAME.key`.
  private func make(_ name: String, days: Int = 30, more: [String] = []) throws {
    try openssl(
      [
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-days", "\(days)", "-keyout", "\(name).key",
        "-out", "\(name).pem", "-subj", "/CN=\(name).example",
      ] + (more.isEmpty ? ["-nodes"] : more))
  }

  private func openssl(_ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: folder.path)
    (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0)
  }

  private func read(_ name: String) throws -> String { try String(contentsOfFile: folder.path + "/" + name, encoding: .utf8) }
  private func write(_ text: String, _ name: String) throws {
    try text.write(toFile: folder.path + "/" + name, atomically: true, encoding: .utf8)
  }

  /// Problems, or warnings where there are none, without the position.
  private func found(_ text: String) -> [String] { folder.checked("auth: { jwt: { key_file: jwt.key } }\n" + text) }
  private func app(_ certificate: String, _ key: String) -> [String] {
    found("listen: { app: { tls: { cert: \(certificate), key: \(key) } } }")
  }

  private func open(_ name: String, to mode: Int) throws {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: folder.path + "/" + name)
  }

  /// A temporary folder of the machine may be closed itself, and then nothing in it is open to all.
  private static var isTemporaryOpen: Bool { SecretFile.isOpenToAll(FileManager.default.temporaryDirectory.path) }

  @Test(.enabled(if: isTemporaryOpen)) func `a secret that everybody may read is a warning, for every key that names one`() throws
  {
    try write(PushSettingsTests.p256, "a.p8")
    for file in ["jwt.key", "a.p8"] { try open(file, to: 0o644) }
    let settings = try folder.parse(ConfigurationKeysTests.whole)
    let warned = Set(settings.warnings.filter { $0.message.contains("every user of this machine can read") }.map(\.path))
    #expect(
      warned.isSuperset(of: [
        "listen.sip.tls.key", "listen.sip.tls.certificates[0].key", "listen.app.tls.key", "listen.admin.token_file",
        "listen.admin.tls.key", "admin.tokens[0].token_file", "auth.jwt.key_file", "turn.secret_file",
        "events.webhooks[0].key_file",
        "trunks[0].auth.password_file", "trunks[0].peer_auth.password_file", "trunks[0].tls.key", "push.apns.key_file",
        "push.webpush.key_file",
      ]), "\(warned.sorted())")
    #expect(!warned.contains { $0.hasSuffix(".cert") || $0.hasSuffix(".ca") })
    for mode in [0o600, 0o640, 0o440] {
      for file in ["jwt.key", "a.p8"] { try open(file, to: mode) }
      #expect(try folder.parse(ConfigurationKeysTests.whole).warnings.isEmpty)
    }
    try open("jwt.key", to: 0o644)
    try open("", to: 0o700)
    #expect(found("").isEmpty, "nobody else gets into the folder")
  }

  @Test func `every key whose name says so is one of a secret, and a public key may be read by all`() throws {
    for section in ConfigurationKeys.sections {
      for key in section.keys {
        let names = ["key", "key_file", "password_file", "token_file", "secret_file", "service_account"].contains(key.name)
        switch key.value {
        case .secretFile: #expect(names, "\(section.paths) \(key.name)")
        case .file: #expect(!names, "\(section.paths) \(key.name)")
        default: break
        }
      }
    }
    #expect(SecretFile.isPublic(Data("-----BEGIN PUBLIC KEY-----\nAA==\n-----END PUBLIC KEY-----\n".utf8)))
    for text in ["secret", "-----BEGIN PRIVATE KEY-----\n", "-----BEGIN PUBLIC KEY-----\n-----BEGIN EC PRIVATE KEY-----\n"] {
      #expect(!SecretFile.isPublic(Data(text.utf8)))
    }
  }

  @Test func `a certificate with its key is taken, another key is not`() throws {
    try make("a")
    try make("b")
    #expect(app("a.pem", "a.key").isEmpty)
    #expect(
      app("a.pem", "b.key") == [
        "gateway.yaml:2:43: listen.app.tls.key: DIR/b.key is not the key of DIR/a.pem: name the two files that were made together"
      ])
    #expect(app("a.pem", "jwt.key").map(\.sentence) == ["DIR/jwt.key holds no private key in PEM"])
  }

  @Test func `an encrypted key is refused without asking the terminal`() throws {
    try make("a", more: ["-passout", "pass:secret"])
    #expect(
      app("a.pem", "a.key").map(\.sentence) == [
        "DIR/a.key is encrypted, and the gateway cannot ask for its passphrase: openssl pkey -in DIR/a.key -out NEW.key"
      ])
  }

  @Test func `an expired certificate is a problem, one of the next 14 days a warning`() throws {
    try make("new", days: 15)
    try make("soon", days: 13)
    try make("old")
    try openssl(["x509", "-in", "old.pem", "-signkey", "old.key", "-days", "-1", "-out", "expired.pem"])
    #expect(app("new.pem", "new.key").isEmpty)
    #expect(
      app("soon.pem", "soon.key") == [
        "gateway.yaml:2:31: warning: listen.app.tls.cert: /CN=soon.example in DIR/soon.pem expires within 13 days: renew it"
      ])
    #expect(app("expired.pem", "old.key").map(\.sentence) == ["/CN=old.example in DIR/expired.pem has expired: renew it"])
  }

  @Test func `a chain is read to its end, and authorities hold a certificate`() throws {
    try make("a")
    try write(try read("a.pem") + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "chain.pem")
    #expect(
      app("chain.pem", "a.key").map(\.sentence) == [
        "certificate 2 of 2 in DIR/chain.pem cannot be read: copy the file again"
      ])
    #expect(app("jwt.key", "a.key").map(\.sentence) == ["DIR/jwt.key holds no readable certificate in PEM"])
    #expect(
      found("verifier: { url: https://verifier.example, ca: jwt.key }").map(\.sentence) == [
        "DIR/jwt.key holds no readable certificate in PEM"
      ])
  }

  @Test func `a certificate for another name than push_gateway is a warning`() throws {
    try make("a")
    try write("{}", "fcm.json")
    try make("vapid")
    let push = { (host: String) in
      """
      listen: { app: { tls: { cert: a.pem, key: a.key } } }
      push: { gateway: "wss://\(host)/v1/connect", webpush: { key_file: vapid.key, subject: "mailto:a@b.example" } }
      """
    }
    #expect(found(push("a.example")).isEmpty)
    #expect(
      found(push("b.example")).map(\.sentence) == ["DIR/a.pem is not for b.example, where push.gateway sends apps"])
  }

  @Test func `a further certificate of the SIP listener is for a name that can be asked for, and has its key`() throws {
    func listener(_ certificate: String, _ key: String, advertise: String = "a.example") -> [String] {
      found(
        "listen: { sip: { tls: { address: 127.0.0.1:5061, advertise: \(advertise), cert: a.pem, key: a.key, "
          + "certificates: [ { cert: \(certificate), key: \(key) } ] } } }")
    }
    try make("a")
    try make("b")
    try make("middle", more: ["-nodes", "-addext", "subjectAltName=DNS:a.*.example"])
    try make(
      "many", more: ["-nodes", "-addext", "subjectAltName=" + (0..<1_001).map { "DNS:h\($0).example" }.joined(separator: ",")])
    #expect(listener("b.pem", "b.key").isEmpty)
    #expect(listener("b.pem", "b.key", advertise: "b.example").isEmpty)
    #expect(
      listener("b.pem", "b.key", advertise: "c.example").map(\.sentence) == [
        "DIR/a.pem is not for c.example, where advertise sends peers"
      ])
    #expect(
      listener("b.pem", "a.key").map(\.sentence) == [
        "DIR/a.key is not the key of DIR/b.pem: name the two files that were made together"
      ])
    #expect(
      listener("middle.pem", "middle.key").map(\.sentence) == [
        "DIR/middle.pem cannot be one of several: it has no name that a client could request"
      ])
    #expect(
      listener("many.pem", "many.key").map(\.sentence) == [
        "DIR/many.pem cannot be one of several: it has 1001 names, more than the limit of 1000"
      ])
  }

  @Test func `folders of store and records must be there, and their files be files`() throws {
    try FileManager.default.createDirectory(atPath: folder.path + "/inner", withIntermediateDirectories: true)
    #expect(found("store: { sqlite: inner/a.db }\nrecords: { file: inner/calls.jsonl }").isEmpty)
    #expect(
      found("store: { sqlite: none/a.db }") == [
        "gateway.yaml:2:18: store.sqlite: the folder DIR/none is not there: mkdir -p DIR/none"
      ])
    #expect(found("records: { file: inner }").map(\.sentence) == ["DIR/inner is a folder: name a file in it"])
    #expect(
      found("records: { file: jwt.key/calls }").map(\.sentence) == ["DIR/jwt.key is a file, not a folder: name another path"])
    #expect(found("store: { sqlite: jwt.key }").map(\.sentence) == ["DIR/jwt.key is not an SQLite database: name another file"])
  }
}

extension String {
  /// Of a problem that is shown: without file, line, column and key.
  fileprivate var sentence: String {
    components(separatedBy: ": ").drop { $0.hasPrefix("gateway.yaml") || $0 == "warning" }.dropFirst().joined(separator: ": ")
  }
}
