import Foundation
import TestSockets
import Testing
import TrunklineBytes
import TrunklinePlatform
import WebServer

/// Requests that a stranger can send before it has a token, on real sockets. `Tests/Interop/Adversary` sends the same to the
/// whole gateway.
@Suite(.serialized) struct HostileHTTPTests {
  /// The protocols of RFC 9110 §7.8 and others that clients and attackers name there. An earlier version's process ended at `h2c`
  /// with its settings and 4 KB of frames after it.
  static let tokens = [
    "h2c", "h2", "HTTP/2.0", "TLS/1.0", "TLS/1.2", "SHTTP/1.3", "IRC/6.9", "RTA/x11", "WebTransport", "connect-udp", "foo", "",
    "websocket, h2c", "h2c, websocket", "websocketx", "websocket/13",
  ]

  @Test(arguments: [0, 100, 4_000, 40_000]) func `only websocket is an upgrade, whatever follows it`(count: Int) throws {
    let fixture = try Fixture()
    let bystander = try fixture.connect()
    let admin = try Fixture.plain { $1(.text(200, "ok")) }
    defer { admin.stop() }
    let behind = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    for address in [fixture.address, admin.address] {
      for token in Self.tokens {
        for settings in ["AAMAAABkAAQAoAAAAAIAAAAA", String(repeating: "A", count: 5_000)] {
          let socket = try TestSocket(address)
          let head =
            "GET /v1/connect HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: \(token)\r\n"
            + "HTTP2-Settings: \(settings)\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: trunkline.v1\r\n"
            + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
          socket.write(Array(head.utf8) + (count == 0 ? [] : behind))
          #expect(socket.response()?.head.hasPrefix("HTTP/1.1 400") == true, "\(token)")
          #expect(socket.next() == .end)
        }
      }
    }
    #expect(fixture.echoes(bystander))
  }

  /// Two requests in one segment, the second a POST with a body, made libwebsockets call back without end.
  @Test func `every order of up to five requests is answered in order, in one piece and in many`() throws {
    let fixture = try Fixture(handler: { $1(.text($0.method == "GET" ? 200 : 405, "page")) })
    let admin = try Fixture.plain { request, answer in
      DispatchQueue.global().async { answer(.text(200, "\(request.body.count)")) }
    }
    defer { admin.stop() }
    let kinds: [(text: String, app: String, admin: String)] = [
      ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "200", "200"),
      ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", "405", "200"),
      ("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "405", "200"),
    ]
    for count in 1...5 {
      var order = [Int](repeating: 0, count: count)
      for number in 0..<Int(pow(3.0, Double(count))) {
        var rest = number
        for index in 0..<count { (order[index], rest) = (rest % 3, rest / 3) }
        let octets = Array(order.map { kinds[$0].text }.joined().utf8)
        for (address, isAdmin) in [(fixture.address, false), (admin.address, true)] {
          let socket = try TestSocket(address)
          var random = SplitMix64(seed: UInt64(number))
          var offset = 0
          while offset < octets.count {
            let end = number % 2 == 0 ? octets.count : min(octets.count, offset + Int.random(in: 1...40, using: &random))
            socket.write(Array(octets[offset..<end]))
            offset = end
          }
          let statuses = order.map { _ in socket.response()?.head.split(separator: " ")[1] }
          #expect(statuses == order.map { Substring(isAdmin ? kinds[$0].admin : kinds[$0].app) }, "\(order)")
        }
      }
    }
  }

  @Test func `hundreds of pipelined requests starve no other client`() throws {
    let fixture = try Fixture(handler: { $1(.text(200, String(repeating: "a", count: 60_000))) })
    let bystander = try fixture.connect()
    let greedy = try TestSocket(fixture.address, receiveBuffer: 4_096)
    greedy.write(String(repeating: "GET / HTTP/1.1\r\nHost: a\r\n\r\n", count: 500))
    for _ in 0..<20 { #expect(fixture.echoes(bystander)) }
  }

  @Test func `an origin of more than 4,096 octets is 403`() throws {
    let fixture = try Fixture()
    for count in [4_097, 8_000, 15_000] {
      #expect(try TestSocket(fixture.address).upgrade(origin: "https://" + String(repeating: "a", count: count)) == 403)
    }
  }

  @Test func `a second or wrong key, version or method is no upgrade`() throws {
    let fixture = try Fixture()
    let good = [
      "Host: a", "Connection: keep-alive, Upgrade", "Upgrade: WebSocket", "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Protocol: trunkline.v1", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ]
    func status(_ lines: [String], _ request: String = "GET /v1/connect HTTP/1.1", body: String = "") throws -> Substring? {
      let socket = try TestSocket(fixture.address)
      socket.write(([request] + lines).joined(separator: "\r\n") + "\r\n\r\n" + body)
      return socket.response()?.head.split(separator: " ")[1]
    }
    #expect(try status(good) == "101")
    #expect(try status(good + ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]) == "400")
    #expect(try status(good.dropLast() + ["Sec-WebSocket-Key: abc"]) == "400")
    #expect(try status(good.filter { !$0.contains("Version") } + ["Sec-WebSocket-Version: 8"]) == "426")
    #expect(try status(good.filter { !$0.contains("Connection") }) == "400")
    #expect(try status(good + ["Content-Length: 1"], body: "x") == "400")
    #expect(try status(good, "POST /v1/connect HTTP/1.1") == "400")
    #expect(try status(good, "GET /v1/connect HTTP/1.0") == "400")
    #expect(try status(["Host: a"]) == "426")
  }

  @Test func `frames that are no messages are counted, and a flood of them closes with 1008`() throws {
    let fixture = try Fixture()
    let bystander = try fixture.connect()
    for (name, opcode) in [("pings", UInt8(9)), ("pongs", 10)] {
      let socket = try fixture.connect()
      for _ in 0..<100 { socket.write([UInt8](repeating: 0, count: 20).flatMap { _ in TestSocket.frame(opcode, []) }) }
      #expect(socket.closeCode() == 1008, "\(name)")
    }
    let empty = try fixture.connect()
    empty.write(TestSocket.frame(1, [], final: false))
    for _ in 0..<100 { empty.write((0..<20).flatMap { _ in TestSocket.frame(0, [], final: false) }) }
    #expect(empty.closeCode() == 1008)
    #expect(fixture.echoes(bystander))
  }

  @Test func `frames without a mask close with 1002`() throws {
    let fixture = try Fixture()
    let socket = try fixture.connect()
    socket.write([0x81, 0x0c] + Array(#"{"t":"ping"}"#.utf8))
    #expect(socket.closeCode() == 1002)
  }

  @Test func `the oldest connection without a request makes room when half the slots are silent`() throws {
    let fixture = try Fixture { $0.connections = 8 }
    let bystander = try fixture.connect()
    // One octet each, since the kernel withholds connections without data for a while.
    let silent = try (0..<6).map { _ in
      let socket = try TestSocket(fixture.address)
      socket.write("G")
      return socket
    }
    #expect(try fixture.echoes(fixture.connect()))
    #expect(silent[0].next() == .end)
    silent[5].write("ET /nothing HTTP/1.1\r\nHost: a\r\n\r\n")
    #expect(silent[5].response()?.head.contains(" 404 ") == true)
    #expect(fixture.echoes(bystander))
  }

  @Test func `a connection that sends nothing for two seconds is closed`() throws {
    let fixture = try Fixture()
    let socket = try TestSocket(fixture.address)
    let begun = try TestSocket(fixture.address)
    begun.write("GET / HTTP/1.1\r\n")
    #expect(socket.next() == .end)
    begun.write("Host: a\r\n\r\n")
    #expect(begun.response()?.head.contains(" 404 ") == true)
  }

  @Test func `the last forwarded address counts from a trusted proxy, and none from any other peer`() throws {
    func fixture(_ proxies: [String]) throws -> Fixture {
      try Fixture {
        $0.connectionsPerAddress = 2
        $0.proxies = proxies.compactMap { IPNetwork($0) }
      }
    }
    func upgrade(_ fixture: Fixture, _ forwarded: String) throws -> (TestSocket, String) {
      let socket = try TestSocket(fixture.address)
      socket.write(
        "GET /v1/connect HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: \(forwarded)\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
          + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: trunkline.v1\r\n\r\n"
      )
      return (socket, String(socket.response()?.head.split(separator: " ")[1] ?? "closed"))
    }
    let behind = try fixture(["127.0.0.0/8"])
    var kept: [TestSocket] = []
    for (forwarded, status) in [
      ("1.2.3.4, 203.0.113.1", "101"), ("203.0.113.2, 203.0.113.1", "101"), ("203.0.113.1", "429"), ("203.0.113.2", "101"),
      ("2001:db8::1", "101"), ("[2001:db8::2]:4711", "101"), ("2001:db8::3", "429"), ("rubbish", "101"),
    ] {
      let (socket, answer) = try upgrade(behind, forwarded)
      #expect(answer == status, "\(forwarded)")
      kept.append(socket)
    }
    let open = try fixture([])
    for (number, status) in ["101", "101", "closed"].enumerated() {
      let (socket, answer) = try upgrade(open, "203.0.113.\(number)")
      #expect(answer == status)
      kept.append(socket)
    }
  }

  @Test func `without descriptors the oldest silent connection gives its own, and log-ins continue`() throws {
    let fixture = try Fixture()
    let bystander = try fixture.connect()
    let silent = try (0..<4).map { _ in
      let socket = try TestSocket(fixture.address)
      socket.write("G")
      return socket
    }
    let waiting = try TestSocket(fixture.address)  // this process's own end of a connection, made while there are descriptors
    #expect(fixture.echoes(bystander))
    try withoutDescriptors {
      waiting.write(
        "GET /v1/connect HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
          + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: trunkline.v1\r\n\r\n")
      #expect(waiting.response()?.head.hasPrefix("HTTP/1.1 101") == true)
      #expect(silent[0].next() == .end)
      #expect(fixture.echoes(bystander))
    }
  }

  /// Runs `body` with the soft limit at the number of open descriptors.
  private func withoutDescriptors(_ body: () throws -> Void) throws {
    var before = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &before)
    let lowest = dup(0)
    close(lowest)
    // Every descriptor below the highest open one must be in use, too.
    var fillers: [Int32] = []
    let highest = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").compactMap { Int32($0) }.max() ?? lowest
    while case let filler = dup(0), filler >= 0 {
      fillers.append(filler)
      if filler >= highest { break }
    }
    var limit = before
    limit.rlim_cur = rlim_t((fillers.last ?? highest) + 1)
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    defer {
      setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &before)
      for filler in fillers { close(filler) }
    }
    try body()
  }
}
