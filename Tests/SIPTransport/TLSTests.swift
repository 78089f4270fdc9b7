import CTrunklineOpenSSL
import Foundation
import Testing
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

@testable import TrunklineSIPTransport

/// A root and certificates that it signed, made by `openssl` in a folder that is removed with the test.
final class Certificates {
  let folder: String
  struct Failed: Error { var text: String }

  init() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-\(UUID().uuidString.prefix(8))").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try run(["-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test root"])
  }
  deinit { try? FileManager.default.removeItem(atPath: folder) }

  var authorities: String { folder + "/ca.pem" }

  /// A certificate of the root; `names` as `DNS:a.example,URI:sip:a.example`, `purposes` as `serverAuth,clientAuth`.
  @discardableResult func make(_ file: String, _ names: String?, commonName: String = "x", purposes: String? = nil) throws
    -> TLSFiles
  {
    var arguments = [
      "-keyout", file + ".key", "-out", file + ".pem", "-subj", "/CN=" + commonName, "-CA", "ca.pem", "-CAkey", "ca.key",
    ]
    if let names, names.utf8.count < 65_536 {
      arguments += ["-addext", "subjectAltName=" + names]
    } else if let names {
      // the names may be longer than one argument of a process
      let rows = names.split(separator: ",").enumerated().map { index, name in
        name.replacing(":", with: ".\(index)=", maxReplacements: 1) + "\n"
      }
      let sections = "[req]\ndistinguished_name=dn\nx509_extensions=ext\n[dn]\n[ext]\nsubjectAltName=@alt\n[alt]\n"
      try (sections + rows.joined()).write(toFile: "\(folder)/\(file).cnf", atomically: true, encoding: .utf8)
      arguments += ["-config", file + ".cnf"]
    }
    if let purposes { arguments += ["-addext", "extendedKeyUsage=" + purposes] }
    try run(arguments)
    return TLSFiles(certificate: "\(folder)/\(file).pem", key: "\(folder)/\(file).key", authorities: authorities)
  }

  private func run(_ arguments: [String]) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
    process.arguments =
      ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"] + arguments
    process.currentDirectoryURL = URL(fileURLWithPath: folder)
    (process.standardOutput, process.standardError) = (FileHandle.nullDevice, FileHandle.nullDevice)
    try process.run()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else { throw Failed(text: arguments.joined(separator: " ")) }
  }
}

extension Rig {
  /// Messages alone: a refused connection before them is a failure that does not count.
  func whole(_ count: Int) -> [(text: String, flow: Flow, trunk: String)] {
    var seen = 0
    while seen < count + 8, messages(0).count < count {
      if wait(seen + 1).count <= seen { break }
      seen = wait(0).count
    }
    return messages(0)
  }

  /// Waits for a message of this peer, at most 5 s after the last event, whatever else arrives.
  func message(of peer: SocketAddress?) -> (text: String, flow: Flow, trunk: String)? {
    var seen = -1
    while wait(seen + 1).count > seen {
      seen = wait(0).count
      if let found = messages(0).first(where: { $0.flow.remote == peer }) { return found }
    }
    return nil
  }
}

@Suite struct TLSTests {
  private static let options =
    "OPTIONS sip:a@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/TLS 127.0.0.1;branch=z9hG4bK1\r\nContent-Length: 0\r\n\r\n"

  /// Two rigs with TLS listeners: one is called, one calls.
  private func pair(_ server: TLSServerSettings, _ client: TLSClientSettings) throws -> (Rig, Rig, Flow) {
    let (callee, caller) = (try Rig(tls: [SocketAddress(.loopback, 0)]), try Rig(tls: [SocketAddress(.loopback, 0)]))
    _ = try callee.onLoop { sockets in
      sockets.setTLS(server: server, trunks: [:])
      return true
    }
    _ = try caller.onLoop { sockets in
      sockets.setTLS(server: nil, trunks: ["carrier": client])
      return true
    }
    let address = try #require(callee.sockets.tlsAddresses.first)
    let flow = try #require(try caller.flow(.tls, toward: address))
    return (callee, caller, flow)
  }

  @Test func `messages go both ways over one connection`() throws {
    let certificates = try Certificates()
    let own = try certificates.make("server", "DNS:carrier.example")
    let (callee, caller, flow) = try pair(
      TLSServerSettings(identity: own),
      TLSClientSettings(identity: TLSFiles(authorities: certificates.authorities), host: "carrier.example"))
    defer {
      callee.stop()
      caller.stop()
    }
    let large = Self.options.replacingOccurrences(
      of: "Content-Length: 0\r\n\r\n", with: "Content-Length: 60000\r\n\r\n" + String(repeating: "x", count: 60_000))
    for text in [Self.options, large, Self.options] { caller.send(text, flow) }
    let got = callee.whole(3)
    #expect(got.map(\.text.utf8.count) == [Self.options, large, Self.options].map(\.utf8.count) && got[0].flow.transport == .tls)
    callee.send(Self.options, try #require(got.first).flow)
    #expect(caller.whole(1).first?.text == Self.options)
    #expect(callee.reaches(1, "trunkline_sip_connections"))
  }

  @Test(arguments: [
    ("DNS:other.example", "x", false), ("DNS:carrier.example", "other", true), (nil, "carrier.example", true),
    ("URI:sip:carrier.example", "x", true), ("URI:sip:other.example,DNS:carrier.example", "x", false),
    ("URI:https://other.example,DNS:carrier.example", "x", true), ("DNS:*.example", "x", false),
    ("DNS:CARRIER.example", "x", true),
    ("DNS:other.example", "carrier.example", false), ("URI:sip:bob@carrier.example", "carrier.example", true),
  ])
  func `a certificate must be for the trunk's host (RFC 5922 §7)`(names: String?, commonName: String, isGood: Bool) throws {
    let certificates = try Certificates()
    let own = try certificates.make("server", names, commonName: commonName)
    let (callee, caller, flow) = try pair(
      TLSServerSettings(identity: own),
      TLSClientSettings(identity: TLSFiles(authorities: certificates.authorities), host: "carrier.example"))
    defer {
      callee.stop()
      caller.stop()
    }
    caller.send(Self.options, flow)
    if isGood {
      #expect(callee.whole(1).count == 1)
    } else {
      #expect(caller.failures(1) == [flow])
      #expect(callee.messages(0).isEmpty)
    }
  }

  /// The certificate's names, what the trunk expects, and whether that suffices.
  private static let expectations: [(names: String?, expected: [String], isGood: Bool)] = [
    ("DNS:*.example", ["*.example"], true), ("DNS:*.example", ["carrier.example"], false),
    ("DNS:sip1.example", ["*.example"], true), ("DNS:sip1.example", ["sip1.example"], true),
    ("DNS:sip1.example", ["sip2.example", "SIP1.example"], true), ("DNS:carrier.example", ["sip1.example"], false),
    ("DNS:a.b.example", ["*.example"], false), ("DNS:example", ["*.example"], false), ("DNS:a.*.example", ["*.example"], false),
    ("DNS:s*.example", ["*.example"], false), ("DNS:a.*.example", ["a.b.example"], false),
    ("URI:sip:other.example,DNS:sip1.example", ["*.example"], true),
    ("URI:sip:other.test,DNS:sip1.example", ["*.example"], false),
    (nil, ["x.example"], false), (nil, ["x"], true),
  ]

  @Test(arguments: expectations)
  func `a trunk says what its certificate is for, a wildcard only by choice`(names: String?, expected: [String], isGood: Bool)
    throws
  {
    let certificates = try Certificates()
    let own = try certificates.make("server", names)
    let client = TLSClientSettings(
      identity: TLSFiles(authorities: certificates.authorities), host: "carrier.example",
      names: expected.compactMap { ExpectedName($0) })
    #expect(client.names.count == expected.count)
    let (callee, caller, flow) = try pair(TLSServerSettings(identity: own), client)
    defer {
      callee.stop()
      caller.stop()
    }
    caller.send(Self.options, flow)
    if isGood {
      #expect(callee.whole(1).count == 1)
    } else {
      #expect(caller.failures(1) == [flow] && callee.messages(0).isEmpty)
    }
  }

  /// Why the certificate of a file is refused; nil if it is accepted.
  private func refusal(_ files: TLSFiles, for host: String, expecting: [ExpectedName] = []) throws -> String? {
    let file = try #require(BIO_new_file(files.certificate ?? "", "r"))
    defer { BIO_free(file) }
    let certificate = try #require(PEM_read_bio_X509(file, nil, nil, nil))
    defer { X509_free(certificate) }
    return TrunklineSIPTransport.refusal(of: certificate, for: host, expecting: expecting)
  }

  @Test func `a refusal says what the certificate is for, in a line that its names cannot fill`() throws {
    let certificates = try Certificates()
    let wild = try #require(ExpectedName("*.carrier.example"))
    #expect(
      try refusal(certificates.make("none", nil, commonName: "x"), for: "carrier.example")
        == "the certificate is not for carrier.example, but for x")
    #expect(
      try refusal(certificates.make("middle", "DNS:a.*.example"), for: "a.b.example", expecting: [wild])
        == "the certificate is not for *.carrier.example, but for a.*.example")
    let long = String(repeating: "y", count: 200)
    let five = try certificates.make("five", "DNS:a,DNS:\(long),DNS:c,DNS:d,DNS:e")
    #expect(
      try refusal(five, for: "carrier.example")
        == "the certificate is not for carrier.example, but for a, \(long.prefix(64)), c and 2 more")
  }

  @Test func `ten thousand names are not looked at, and end the handshake`() throws {
    let certificates = try Certificates()
    let many = try certificates.make("many", (0..<10_000).map { "DNS:h\($0).carrier.example" }.joined(separator: ","))
    let some = try certificates.make("some", (0..<1_001).map { "DNS:h\($0).carrier.example" }.joined(separator: ","))
    for (files, count) in [(many, 10_000), (some, 1_001)] {
      #expect(
        try refusal(files, for: "h1.carrier.example")
          == "the certificate is not accepted for h1.carrier.example: it has \(count) names, more than the limit of 1000")
      let (callee, caller, flow) = try pair(
        TLSServerSettings(identity: files),
        TLSClientSettings(identity: TLSFiles(authorities: certificates.authorities), host: "h1.carrier.example"))
      defer {
        callee.stop()
        caller.stop()
      }
      caller.send(Self.options, flow)
      #expect(caller.failures(1) == [flow] && callee.messages(0).isEmpty)
    }
  }

  @Test func `an unknown authority is refused, unless the operator said otherwise`() throws {
    let (certificates, others) = (try Certificates(), try Certificates())
    let own = try certificates.make("server", "DNS:carrier.example")
    let strict = TLSClientSettings(identity: TLSFiles(authorities: others.authorities), host: "carrier.example")
    let (callee, caller, flow) = try pair(TLSServerSettings(identity: own), strict)
    defer {
      callee.stop()
      caller.stop()
    }
    caller.send(Self.options, flow)
    #expect(caller.failures(1) == [flow])
    _ = try caller.onLoop { sockets in
      sockets.setTLS(server: nil, trunks: ["carrier": TLSClientSettings(host: "carrier.example", verifies: false)])
      return true
    }
    caller.send(Self.options, flow)
    #expect(callee.whole(1).count == 1)
  }

  @Test func `mutual: without a certificate nobody is heard, with one of the right authority they are`() throws {
    let certificates = try Certificates()
    let own = try certificates.make("server", "DNS:carrier.example")
    let theirs = try certificates.make("client", "DNS:gateway.example")
    let server = TLSServerSettings(identity: own, clients: .required)
    let (callee, caller, flow) = try pair(
      server, TLSClientSettings(identity: TLSFiles(authorities: certificates.authorities), host: "carrier.example"))
    defer {
      callee.stop()
      caller.stop()
    }
    caller.send(Self.options, flow)
    #expect(caller.failures(1) == [flow])
    _ = try caller.onLoop { sockets in
      sockets.setTLS(server: nil, trunks: ["carrier": TLSClientSettings(identity: theirs, host: "carrier.example")])
      return true
    }
    caller.send(Self.options, flow)
    #expect(callee.whole(1).map(\.text) == [Self.options])
  }

  @Test(arguments: ["serverAuth", "clientAuth", "serverAuth,clientAuth", "emailProtection", nil])
  func
    `mutual: a certificate of the authority is taken for whatever purpose it was made, since public ones have serverAuth alone`(
      purposes: String?
    ) throws
  {
    let certificates = try Certificates()
    let own = try certificates.make("server", "DNS:carrier.example")
    let theirs = try certificates.make("client", "DNS:gateway.example", purposes: purposes)
    let (callee, caller, flow) = try pair(
      TLSServerSettings(identity: own, clients: .required), TLSClientSettings(identity: theirs, host: "carrier.example"))
    defer {
      callee.stop()
      caller.stop()
    }
    caller.send(Self.options, flow)
    #expect(callee.whole(1).map(\.text) == [Self.options])
  }

  @Test func `mutual: a certificate of another authority is refused, whatever its purpose`() throws {
    let (certificates, others) = (try Certificates(), try Certificates())
    let own = try certificates.make("server", "DNS:carrier.example")
    var theirs = try others.make("client", "DNS:gateway.example", purposes: "clientAuth")
    theirs.authorities = certificates.authorities
    let (callee, caller, flow) = try pair(
      TLSServerSettings(identity: own, clients: .required), TLSClientSettings(identity: theirs, host: "carrier.example"))
    defer {
      callee.stop()
      caller.stop()
    }
    caller.send(Self.options, flow)
    #expect(caller.failures(1) == [flow] && callee.messages(0).isEmpty)
  }

  @Test func `new certificates serve new connections, old connections stay, and bad files change nothing`() throws {
    let certificates = try Certificates()
    let first = try certificates.make("first", "DNS:first.example")
    let second = try certificates.make("second", "DNS:carrier.example")
    let (callee, caller, flow) = try pair(
      TLSServerSettings(identity: first),
      TLSClientSettings(identity: TLSFiles(authorities: certificates.authorities), host: "carrier.example"))
    defer {
      callee.stop()
      caller.stop()
    }
    caller.send(Self.options, flow)
    #expect(caller.failures(1) == [flow])
    func serve(_ identity: TLSFiles) throws {
      _ = try callee.onLoop { sockets in
        sockets.setTLS(server: TLSServerSettings(identity: identity), trunks: [:])
        return true
      }
    }
    try serve(second)
    caller.send(Self.options, flow)
    #expect(callee.whole(1).count == 1)
    try serve(TLSFiles(certificate: second.certificate, key: first.key))
    try serve(TLSFiles(certificate: "/nowhere", key: "/nowhere"))
    caller.send(Self.options, flow)
    #expect(callee.whole(2).count == 2)
    #expect(callee.reaches(1, "trunkline_sip_connections"))
  }

  /// Whether a caller that asks for `asked` is shown a certificate for `name`.
  private func shows(_ name: String, to asked: String, _ callee: Rig, _ authorities: String) throws -> Bool {
    let caller = try Rig(tls: [SocketAddress(.loopback, 0)])
    defer { caller.stop() }
    let client = TLSClientSettings(
      identity: TLSFiles(authorities: authorities), host: asked, names: [ExpectedName(name)].compactMap(\.self))
    _ = try caller.onLoop { sockets in
      sockets.setTLS(server: nil, trunks: ["carrier": client])
      return true
    }
    let before = callee.messages(0).count
    let address = try #require(callee.sockets.tlsAddresses.first)
    caller.send(Self.options, try #require(try caller.flow(.tls, toward: address)))
    let start = MonotonicClock.now()
    while MonotonicClock.now() - start < .seconds(5) {
      if callee.messages(0).count > before { return true }
      if !caller.failures(0).isEmpty { return false }
      usleep(1_000)
    }
    return false
  }

  @Test func `one listener has a certificate for each of its names (SNI), and each is renewed by itself`() throws {
    let certificates = try Certificates()
    let usual = try certificates.make("usual", "DNS:usual.example")
    let second = try certificates.make("second", "DNS:second.example,DNS:third.example,DNS:usual.example")
    let wild = try certificates.make("wild", "DNS:*.wild.example")
    let callee = try Rig(tls: [SocketAddress(.loopback, 0)])
    defer { callee.stop() }
    func serve(_ others: [TLSFiles]) throws {
      _ = try callee.onLoop { sockets in
        sockets.setTLS(server: TLSServerSettings(identity: usual, others: others), trunks: [:])
        return true
      }
    }
    func isShown(_ name: String, to asked: String) throws -> Bool { try shows(name, to: asked, callee, certificates.authorities) }
    try serve([second, wild])
    for (asked, name) in [
      ("usual.example", "usual.example"), ("second.example", "second.example"), ("THIRD.example", "third.example"),
      ("a.wild.example", "*.wild.example"), ("a.b.wild.example", "usual.example"), ("wild.example", "usual.example"),
      ("other.example", "usual.example"), ("127.0.0.1", "usual.example"),
    ] {
      #expect(try isShown(name, to: asked), "\(asked)")
    }
    // one is renewed, one is broken: the new one serves, and the broken one's names are served as before
    try certificates.make("second", "DNS:second.example,DNS:renewed.example")
    try FileManager.default.removeItem(atPath: wild.key ?? "")
    try serve([second, wild])
    #expect(try isShown("renewed.example", to: "second.example"))
    #expect(try isShown("*.wild.example", to: "a.wild.example"))
    #expect(try isShown("usual.example", to: "third.example"))
    // removed from the settings
    try serve([second])
    #expect(try isShown("usual.example", to: "a.wild.example"))
  }

  @Test func `mutual TLS holds whatever name is asked for`() throws {
    let certificates = try Certificates()
    let (usual, second) = (
      try certificates.make("usual", "DNS:usual.example"), try certificates.make("second", "DNS:second.example")
    )
    let theirs = try certificates.make("client", "DNS:gateway.example", purposes: "serverAuth")
    let server = TLSServerSettings(identity: usual, others: [second, second], clients: .required)
    for (identity, isGood) in [(TLSFiles(authorities: certificates.authorities), false), (theirs, true)] {
      let (callee, caller, flow) = try pair(server, TLSClientSettings(identity: identity, host: "second.example"))
      defer {
        callee.stop()
        caller.stop()
      }
      caller.send(Self.options, flow)
      if isGood {
        #expect(callee.whole(1).map(\.text) == [Self.options])
      } else {
        #expect(caller.failures(1) == [flow] && callee.messages(0).isEmpty)
      }
    }
  }

  @Test func `a certificate that no client can ask for is not added`() throws {
    let certificates = try Certificates()
    let usual = try certificates.make("usual", "DNS:usual.example")
    let many = (0..<1_001).map { "DNS:h\($0).example" }.joined(separator: ",")
    for (names, why) in [
      ("DNS:a.*.example", "has no name that a client could request"), ("IP:192.0.2.1", "has no name that a client could request"),
      (many, "it has 1001 names, more than the limit of 1000"),
    ] {
      let other = try certificates.make("other", names, commonName: "no name")
      let context = try TLSContext(server: TLSServerSettings(identity: usual, others: [other]))
      #expect(context.failures.count == 1 && context.failures[0].description.contains(why), "\(context.failures)")
    }
  }

  @Test func `a connection without TLS is closed at whatever byte it breaks, one with too few bytes at its deadline`() throws {
    let certificates = try Certificates()
    let own = try certificates.make("server", "DNS:carrier.example")
    let rig = try Rig(tls: [SocketAddress(.loopback, 0)])
    defer { rig.stop() }
    _ = try rig.onLoop { sockets in
      sockets.setTLS(server: TLSServerSettings(identity: own), trunks: [:])
      return true
    }
    let address = try #require(rig.sockets.tlsAddresses.first)
    for (text, isWhole) in [(Self.options, true), ("\u{16}\u{03}\u{01}\u{00}\u{05}hello", true), ("\r\n\r\n", false)] {
      // four octets are not even the head of a record: this one is closed by its deadline
      let limit: Duration = isWhole ? Limits.handshakeTime : .milliseconds(50)
      _ = try rig.onLoop { sockets in
        sockets.handshakeTime = limit
        return true
      }
      let socket = try TCPSocket(connect: address)
      let event = try EventLoop(name: "client")
      try event.register(socket.fd, [.writable, .readable]) { events in
        if events.contains(.writable) {
          _ = try? Array(text.utf8).withUnsafeBytes { raw in try socket.write(raw) }
          try? event.modify(socket.fd, .readable)
        }
        if events.contains(.readable) || events.hasFailure { event.stop() }
      }
      event.run()
      event.unregister(socket.fd)
    }
    #expect(rig.messages(0).isEmpty && rig.reaches(0, "trunkline_sip_connections"))
  }
}
