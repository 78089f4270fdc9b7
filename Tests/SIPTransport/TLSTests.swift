import Bytes
import Foundation
import Platform
import SIPDialogs
import Testing

@testable import SIPTransport

/// A root and certificates of it, made by `openssl` in a folder that goes with the test.
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

  /// A certificate of the root; `names` as `DNS:a.example,URI:sip:a.example`.
  @discardableResult func make(_ file: String, _ names: String?, commonName: String = "x") throws -> TLSFiles {
    var arguments = [
      "-keyout", file + ".key", "-out", file + ".pem", "-subj", "/CN=" + commonName, "-CA", "ca.pem", "-CAkey", "ca.key",
    ]
    if let names { arguments += ["-addext", "subjectAltName=" + names] }
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

  /// Waits for a message of this peer, at most 5 s after what came last, whatever else comes.
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

  @Test func `what is no TLS is closed, at whatever byte it breaks, and what is too short to tell when its time is over`() throws
  {
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
