import HTTP
import Logging
import TestSockets
import Testing
import TrunklineBytes
import TrunklinePlatform
import WebServer

/// Answers requests with a closure, and echoes the messages of WebSockets.
final class EchoDelegate: WebSocketDelegate {
  typealias Handler = @Sendable (HTTPRequest, @escaping HTTPRequest.Answer) -> Void
  private let handler: Handler
  private unowned let sender: any WebSocketSender

  init(_ sender: any WebSocketSender, _ handler: @escaping Handler) { (self.sender, self.handler) = (sender, handler) }

  func trusts(_ request: HTTPRequest) -> Bool { request.authorization != nil }
  func requestReceived(_ request: HTTPRequest, answer: @escaping HTTPRequest.Answer) { handler(request, answer) }
  func step(_ now: Instant) -> Instant? { nil }
  func allows(origin: String) -> Bool { origin == "https://friend.example" }
  func webSocketOpened(_ id: WebSocketID, from address: IPAddress) {}
  func webSocketReceived(_ id: WebSocketID, _ bytes: [UInt8]) {
    if bytes == Array("close".utf8) { return sender.close(id, 4_001) }
    sender.send(id, bytes)
  }
  func webSocketAlive(_ id: WebSocketID) {}
  func webSocketCongested(_ id: WebSocketID) { sender.close(id, 4_008) }
  func webSocketClosed(_ id: WebSocketID, _ code: UInt16?) {}
}

/// A delegate of plain HTTP.
final class HandlerDelegate: HTTPServerDelegate {
  private let handler: EchoDelegate.Handler
  init(_ handler: @escaping EchoDelegate.Handler) { self.handler = handler }
  func trusts(_ request: HTTPRequest) -> Bool { false }
  func requestReceived(_ request: HTTPRequest, answer: @escaping HTTPRequest.Answer) { handler(request, answer) }
  func step(_ now: Instant) -> Instant? { nil }
}

/// A server with WebSockets on a free loopback port; `deinit` stops it.
final class Fixture {
  static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
  static let endpoint = WebSocketEndpoint(
    path: "/v1/connect", subprotocol: "trunkline.v1", messageBytes: 65_536, pathSetting: "path", originsSetting: "origins")
  static func settings(connections: Int = 20_000) -> HTTPServer.Settings {
    HTTPServer.Settings(name: "test", address: SocketAddress(.loopback, 0), setting: "test", connections: connections)
  }

  let server: HTTPServer
  var address: SocketAddress { server.address }

  init(
    _ change: (inout HTTPServer.Settings) -> Void = { _ in },
    handler: @escaping EchoDelegate.Handler = { $1(.text(404, "no such page")) }
  ) throws {
    var settings = Self.settings()
    change(&settings)
    server = try HTTPServer.start(settings, webSockets: Self.endpoint, logger: Self.logger) { sender, _ in
      EchoDelegate(sender, handler)
    }
  }

  /// Plain HTTP that closes the idlest connection for a new one, as the admin port does.
  static func plain(_ handler: @escaping EchoDelegate.Handler) throws -> HTTPServer {
    var settings = settings(connections: 64)
    (settings.makesRoom, settings.reportsProblems) = (true, true)
    return try HTTPServer.start(settings, logger: logger, delegate: HandlerDelegate(handler))
  }

  deinit { server.stop() }

  func connect() throws -> TestSocket {
    let socket = try TestSocket(address)
    #expect(socket.upgrade() == 101)
    return socket
  }

  func echoes(_ socket: TestSocket) -> Bool {
    socket.text("echo")
    while true {
      switch socket.next() {
      case .text(let text): return text == "echo"
      case .ping: continue
      case .close, .end, .timeout: return false
      }
    }
  }
}
