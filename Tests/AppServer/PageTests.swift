import AppServer
import Foundation
import Synchronization
import TestSockets
import Testing
import TrunklineBytes
import TrunklinePlatform
import WebServer

@Suite(.serialized) struct PageTests {
  func fixture() throws -> Fixture {
    try Fixture {
      $0.pages = [
        "/": Page(contentType: "text/html; charset=utf-8", bytes: Array("<html>".utf8)),
        "/big.js": Page(contentType: "text/javascript", bytes: [UInt8](repeating: 0x61, count: 300_000)),
      ]
    }
  }
  func get(_ socket: TestSocket, _ path: String, method: String = "GET", extra: String = "") -> (head: String, body: [UInt8])? {
    socket.write("\(method) \(path) HTTP/1.1\r\nHost: gateway.test:8080\r\n\(extra)\r\n")
    return socket.response()
  }

  @Test func `a page is served with the headers that keep it to itself`() throws {
    let fixture = try fixture()
    let socket = try TestSocket(fixture.app.address)
    let (head, body) = try #require(get(socket, "/"))
    #expect(head.hasPrefix("HTTP/1.1 200"))
    #expect(String(decoding: body, as: UTF8.self) == "<html>")
    let lines = head.lowercased()
    #expect(lines.contains("content-type: text/html; charset=utf-8"))
    #expect(lines.contains("script-src 'self';") && lines.contains("connect-src 'self' ws://gateway.test:8080;"))
    #expect(lines.contains("manifest-src 'self';") && lines.contains("worker-src 'self';"))
    #expect(lines.contains("x-content-type-options: nosniff") && lines.contains("frame-ancestors 'none'"))
    #expect(!lines.contains("unsafe-inline") && !lines.contains("strict-transport-security"))
  }

  @Test func `a script may be imported by pages of other origins, a page may not be read by them`() throws {
    let fixture = try fixture()
    let socket = try TestSocket(fixture.app.address)
    let script = try #require(get(socket, "/big.js")).head.lowercased()
    #expect(script.contains("access-control-allow-origin: *") && script.contains("cross-origin-resource-policy: cross-origin"))
    #expect(try !#require(get(socket, "/")).head.lowercased().contains("access-control-allow-origin"))
  }

  @Test func `everything is below the path that the settings say, and at the root for a proxy that takes it away`() throws {
    let fixture = try Fixture {
      $0.path = "/phone"
      $0.pages = ["/": Page(contentType: "text/html", bytes: Array("<html>".utf8))]
    }
    for (path, status) in [
      ("/phone/", "200"), ("/", "200"), ("/phone/v1/ready", "200"), ("/phone/none", "404"), ("/phones/", "404"),
    ] {
      let socket = try TestSocket(fixture.app.address)
      #expect(try #require(get(socket, path)).head.hasPrefix("HTTP/1.1 \(status)"), "\(path)")
    }
    for path in ["/phone/v1/connect", "/v1/connect"] {
      let (head, why) = try #require(get(try TestSocket(fixture.app.address), path))
      #expect(head.hasPrefix("HTTP/1.1 426") && String(decoding: why, as: UTF8.self).contains("proxy"), "\(path)")
    }
    let bare = try #require(get(try TestSocket(fixture.app.address), "/phone")).head
    #expect(bare.hasPrefix("HTTP/1.1 308") && bare.lowercased().contains("location: /phone/\r\n"))
  }

  @Test func `load balancers are told whether new sessions are welcome`() throws {
    let ready = Mutex(true)
    let fixture = try Fixture { $0.isReady = { ready.withLock { $0 } } }
    let socket = try TestSocket(fixture.app.address)
    let (head, body) = try #require(get(socket, "/v1/ready"))
    #expect(head.hasPrefix("HTTP/1.1 200") && head.lowercased().contains("content-type: application/json"))
    #expect(String(decoding: body, as: UTF8.self) == #"{"host":"gateway.test:8080","ready":true}"#)
    ready.withLock { $0 = false }
    let (refused, why) = try #require(get(socket, "/v1/ready"))
    #expect(
      refused.hasPrefix("HTTP/1.1 503") && String(decoding: why, as: UTF8.self) == #"{"host":"gateway.test:8080","ready":false}"#)
  }

  @Test(arguments: [
    ("http://gateway.test:8080", true), ("https://gateway.test:8080", true), ("https://shop.test", false), ("null", false),
    ("\"x", false),
  ])
  func `a page that does not get in may ask whether its origin is why`(origin: String, mayConnect: Bool) throws {
    let fixture = try fixture()
    let socket = try TestSocket(fixture.app.address)
    let (head, body) = try #require(get(socket, "/v1/ready", extra: "Origin: \(origin)\r\n"))
    #expect(head.lowercased().contains("access-control-allow-origin: *"))
    #expect(String(decoding: body, as: UTF8.self) == #"{"host":"gateway.test:8080","page":\#(mayConnect),"ready":true}"#)
  }

  @Test func `a page may connect to what it names beside its own server, another page may not`() throws {
    let fixture = try Fixture {
      $0.pages = [
        "/": Page(contentType: "text/html", bytes: []),
        "/worker.js": Page(contentType: "text/javascript", bytes: [], connects: ["wss://other.test", "https://other.test"]),
      ]
    }
    let socket = try TestSocket(fixture.app.address)
    let worker = try #require(get(socket, "/worker.js")).head
    #expect(worker.contains("connect-src 'self' ws://gateway.test:8080 wss://other.test https://other.test;"))
    #expect(try !#require(get(socket, "/")).head.contains("other.test"))
  }

  @Test(arguments: ["::1", "::", "0.0.0.0"]) func `any kind of address can be listened on`(text: String) throws {
    let ip = try #require(IPAddress(text))
    let fixture = try Fixture {
      $0.address = SocketAddress(ip, 0)
      $0.pages = ["/": Page(contentType: "text/plain", bytes: [0x61])]
    }
    let six = SocketAddress(try #require(IPAddress("::1")), fixture.app.address.port)
    let four = SocketAddress(.loopback, fixture.app.address.port)
    for address in text == "0.0.0.0" ? [four] : text == "::1" ? [six] : [six, four] {
      #expect(try get(TestSocket(address), "/")?.body == [0x61], "\(address)")
    }
  }

  @Test func `large pages come whole, several on one connection`() throws {
    let fixture = try fixture()
    let socket = try TestSocket(fixture.app.address)
    for _ in 0..<3 { #expect(get(socket, "/big.js")?.body == [UInt8](repeating: 0x61, count: 300_000)) }
    #expect(get(socket, "/")?.body.count == 6)
  }

  @Test func `a client that shuts its side down behind its request gets the whole answer`() throws {
    let fixture = try fixture()
    for more in ["", "Connection: close\r\n"] {
      let socket = try TestSocket(fixture.app.address, receiveBuffer: 4_096)
      socket.write("GET /big.js HTTP/1.1\r\nHost: a\r\n\(more)\r\n")
      _ = shutdown(socket.fd, Int32(SHUT_WR))
      #expect(socket.response()?.body.count == 300_000, "\(more)")
    }
  }

  @Test func `what is not there is 404, also outside the table by any spelling`() throws {
    let fixture = try fixture()
    for path in ["/nothing", "/../etc/passwd", "/%2e%2e/etc/passwd", "/index.html", "/big.js/", "/..%2f..%2fetc/passwd"] {
      let head = try get(TestSocket(fixture.app.address), path)?.head ?? "closed"
      #expect(head == "closed" || head.contains(" 404 ") || head.contains(" 403 "), "\(path) \(head)")
    }
    #expect(try get(TestSocket(fixture.app.address), "/?login=abc")?.head.contains(" 200 ") == true)
  }

  @Test func `HEAD gives the headers only, other methods 405`() throws {
    let fixture = try fixture()
    let socket = try TestSocket(fixture.app.address)
    socket.write("HEAD /big.js HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    var head = ""
    while case let next = socket.nextBytes(), !next.isEmpty { head += String(decoding: next, as: UTF8.self) }
    #expect(head.hasPrefix("HTTP/1.1 200") && head.hasSuffix("\r\n\r\n"))
    #expect(
      try get(TestSocket(fixture.app.address), "/", method: "POST", extra: "Content-Length: 0\r\n")?.head.contains(" 405 ")
        == true)
  }

  @Test func `files that do not fit are refused at start, good ones serve TLS and are read again on request`() throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("trunkline-tls-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    let (certificate, key) = (folder.appendingPathComponent("c.pem").path, folder.appendingPathComponent("k.pem").path)
    func make(_ name: String) throws {
      _ = try run(
        "openssl",
        [
          "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
          "/CN=\(name)",
          "-keyout", key, "-out", certificate,
        ])
    }
    let files = TLSFiles(certificate: certificate, key: key)
    #expect(throws: TLSFailure.self) { try Fixture { $0.tls = files } }
    try make("first")
    let fixture = try Fixture { settings in
      settings.tls = files
      settings.pages = ["/": Page(contentType: "text/plain", bytes: Array("over TLS".utf8))]
    }
    func subject() throws -> String {
      try run("openssl", ["s_client", "-connect", "\(fixture.app.address)", "-alpn", "h2,http/1.1"])
    }
    #expect(try subject().contains("CN = first"))
    #expect(try subject().contains("ALPN protocol: http/1.1"))
    #expect(try run("curl", ["-sk", "https://\(fixture.app.address)/"]) == "over TLS")
    func suite(_ options: String...) throws -> String {
      try run("openssl", ["s_client", "-connect", "\(fixture.app.address)"] + options).split(separator: "\n").map(String.init)
        .first { $0.contains("Cipher is") } ?? "none"
    }
    #expect(try suite("-tls1_3").contains("TLSv1.3, Cipher is TLS_"))
    #expect(try suite("-tls1_2").contains("GCM"))
    for refused in [
      ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256"], ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-SHA"],
      ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"], ["-alpn", "h2"],
    ] {
      let said = try run("openssl", ["s_client", "-connect", "\(fixture.app.address)"] + refused)
      #expect(!said.contains("Cipher is ECDHE") && !said.contains("Cipher is TLS_"), "\(refused)")
    }
    try make("second")
    #expect(reload(fixture) == nil)
    #expect(try subject().contains("CN = second"))
    try Data("rubbish".utf8).write(to: URL(fileURLWithPath: certificate))
    #expect(reload(fixture) != nil)
    #expect(try subject().contains("CN = second"))
  }

  private func reload(_ fixture: Fixture) -> TLSFailure? {
    nonisolated(unsafe) var result: TLSFailure?
    let done = DispatchSemaphore(value: 0)
    fixture.app.reloadCertificates { error in
      result = error
      done.signal()
    }
    done.wait()
    return result
  }

  private func run(_ tool: String, _ arguments: [String]) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = [tool] + arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    process.standardInput = FileHandle.nullDevice
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return String(decoding: data, as: UTF8.self)
  }
}

extension TestSocket {
  /// What comes, empty at the end.
  func nextBytes() -> [UInt8] {
    var chunk = [UInt8](repeating: 0, count: 65_536)
    let count = recv(fd, &chunk, chunk.count, 0)
    return count > 0 ? Array(chunk.prefix(count)) : []
  }
}
