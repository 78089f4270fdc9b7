import Foundation
import Synchronization
import TestSockets
import Testing
import TrunklineBytes
import TrunklinePlatform

@testable import WebServer

/// Answers that are made while they are read (`ResponseStream.hasEnd`), and how much one connection gets in one step.
@Suite(.serialized) struct LongAnswerTests {
  /// A number of pieces of equal size, read one at a time.
  private final class Pieces: ResponseStream {
    private struct State {
      var left: Int
      var asked = 0
    }
    private let state: Mutex<State>
    private let bytes: Int
    let isBroken: Bool
    var hasEnd: Bool { true }
    var asked: Int { state.withLock { $0.asked } }

    init(_ count: Int, bytes: Int, isBroken: Bool = false) {
      state = Mutex(State(left: count))
      (self.bytes, self.isBroken) = (bytes, isBroken)
    }

    func next() -> [UInt8]? {
      state.withLock { state in
        guard state.left > 0 else { return nil }
        state.left -= 1
        state.asked += 1
        return [UInt8](repeating: UInt8(ascii: "x"), count: bytes)
      }
    }
  }

  private func server(_ make: @escaping @Sendable () -> Pieces) throws -> HTTPServer {
    try Fixture.plain { request, answer in
      var response = HTTPResponse(200, contentType: "text/plain", body: Array("begin ".utf8))
      if request.path == "/long" { response.stream = make() }
      answer(response)
    }
  }

  private func curl(_ server: HTTPServer, _ arguments: String...) throws -> (status: Int32, output: String) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments =
      ["curl", "-s", "--max-time", "20"] + arguments.map { $0.replacing("HOST", with: "http://\(server.address)") }
    let pipe = Pipe()
    process.standardOutput = pipe
    try process.run()
    let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: data, as: UTF8.self))
  }

  @Test func `a request without an answer gets 504, one whose body has a sink later than others, and its late answer is dropped`()
    throws
  {
    let held = Mutex<[HTTPRequest.Answer]>([])
    var settings = Fixture.settings()
    (settings.answerTime, settings.sinkAnswerTime) = (.milliseconds(300), .seconds(2))
    settings.hasSink = { $0.method == "PUT" }
    settings.sink = { $0.method == "PUT" ? Sink() : nil }
    let delegate = HandlerDelegate { request, answer in
      if request.path == "/well" { return answer(.text(200, "well")) }
      held.withLock { $0.append(answer) }
    }
    let server = try HTTPServer.start(settings, logger: Fixture.logger, delegate: delegate)
    defer { server.stop() }
    let began = MonotonicClock.now()
    let get = try curl(server, "HOST/get", "-w", " %{http_code}")
    #expect(get.status == 0 && get.output.hasSuffix(" 504") && get.output.contains("may still be carried out"), "\(get)")
    let put = try curl(server, "HOST/put", "-X", "PUT", "--data-binary", "1", "-w", " %{http_code}")
    #expect(put.status == 0 && put.output.hasSuffix(" 504"), "\(put)")
    #expect(MonotonicClock.now() - began >= .milliseconds(2_300))
    for answer in held.withLock({ $0 }) { answer(.text(200, "late")) }
    #expect(try curl(server, "HOST/well").output == "well\n")
    let usual = Fixture.settings()
    #expect(usual.answerTime == .seconds(30) && usual.sinkAnswerTime == .seconds(120))
  }

  private final class Sink: BodySink {
    func receive(_ octets: [UInt8]) {}
  }

  @Test func `a long answer comes in chunks, and the connection takes the next request`() throws {
    let server = try server { Pieces(30, bytes: 70_000) }
    defer { server.stop() }
    let (status, output) = try curl(server, "HOST/long", "HOST/short", "-w", " %{num_connects} %{http_version}")
    #expect(status == 0 && output.hasPrefix("begin xxxx") && output.hasSuffix(" 1 1.1begin  0 1.1"))
    #expect(output.count { $0 == "x" } == 30 * 70_000)
  }

  /// If any of the server's timers delayed each piece, the answer would take longer than curl's limit.
  @Test func `a piece that is written at once is followed by the next at once`() throws {
    let server = try server { Pieces(400, bytes: 10) }
    defer { server.stop() }
    let (status, output) = try curl(server, "HOST/long", "HOST/short")
    #expect(status == 0 && output == "begin " + String(repeating: "x", count: 4_000) + "begin ")
  }

  @Test func `for HTTP/1.0 the connection's end is the answer's, and HEAD has no body`() throws {
    let server = try server { Pieces(3, bytes: 10) }
    defer { server.stop() }
    let (status, output) = try curl(server, "-0", "-i", "HOST/long")
    #expect(status == 0 && output.hasSuffix("\r\n\r\nbegin " + String(repeating: "x", count: 30)))
    #expect(!output.lowercased().contains("transfer-encoding") && output.lowercased().contains("connection: close"))
    let head = try curl(server, "-I", "HOST/long")
    #expect(head.status == 0 && head.output.contains("200") && !head.output.contains("xxx"))
  }

  @Test func `what breaks off is no whole answer for anybody`() throws {
    let server = try server { Pieces(3, bytes: 10, isBroken: true) }
    defer { server.stop() }
    #expect(try curl(server, "HOST/long").status == 18, "curl: a partial file")
  }

  @Test func `who does not read is given no more than the kernel takes, and pieces are not made ahead`() throws {
    let made = Mutex<Pieces?>(nil)
    let server = try server {
      let pieces = Pieces(10_000, bytes: 100_000)
      made.withLock { $0 = pieces }
      return pieces
    }
    defer { server.stop() }
    let socket = try TestSocket(server.address)
    socket.write("GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n")
    // other requests are answered meanwhile, many times over
    for _ in 0..<20 { #expect(try curl(server, "HOST/short").output == "begin ") }
    let asked = made.withLock { $0 }?.asked ?? 0
    #expect((1..<200).contains(asked), "\(asked) pieces of 100 kB for a peer that reads nothing")
  }

  @Test func `a turn writes no more than its bound to one connection`() throws {
    let listener = try TCPListener(bind: SocketAddress(.loopback, 0), setting: "test")
    let socket = try TCPSocket(connect: listener.localAddress)
    var ready = pollfd(fd: listener.fd, events: Int16(POLLIN), revents: 0)
    #expect(poll(&ready, 1, 10_000) == 1)
    let peer = accept(listener.fd, nil, nil)
    try #require(peer >= 0)
    _ = fcntl(peer, F_SETFL, O_NONBLOCK)
    defer { close(peer) }
    let connection = HTTPConnection(
      number: 1, socket: socket, tls: nil, peer: .loopback, isProxy: false, bodyBytes: { _ in 0 }, hasSink: { _ in false },
      at: .zero)
    connection.append([UInt8](repeating: 1, count: 3 << 20))
    var turns = 0
    while connection.queuedBytes > 0, turns < 100_000 {
      let before = connection.queuedBytes
      #expect(connection.flush())
      #expect(before - connection.queuedBytes <= Limits.writeBytes)
      turns += 1
      var sink = [UInt8](repeating: 0, count: 1 << 20)
      while read(peer, &sink, sink.count) > 0 {}
    }
    #expect(turns >= 12 && connection.queuedBytes == 0)
  }
}
