import Foundation
import Glibc
import Synchronization
import Testing
import TrunklineClient

/// The SDK's one POST on Linux, if another node has the call (docs/reference/protocol.md, Many nodes).
@Suite struct RedirectTests {
  /// Answers each connection with the same text and keeps the requests.
  private final class Listener: Sendable {
    let port: UInt16
    private let socket: Int32
    private let asked = Mutex<[String]>([])
    private let answer = Mutex("")

    init() throws {
      let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
      var size = socklen_t(MemoryLayout<sockaddr_in>.size)
      let isBound = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
          bind(socket, generic, size) == 0 && listen(socket, 8) == 0 && getsockname(socket, generic, &size) == 0
        }
      }
      try #require(isBound)
      (self.socket, port) = (socket, UInt16(bigEndian: address.sin_port))
    }

    func serve(_ status: String) {
      answer.withLock { $0 = "HTTP/1.1 \(status)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" }
      Thread { [self] in
        while true {
          let connection = accept(socket, nil, nil)
          guard connection >= 0 else { return }
          var text = ""
          var bytes = [UInt8](repeating: 0, count: 4_096)
          while !text.hasSuffix("}") {
            let count = recv(connection, &bytes, bytes.count, 0)
            guard count > 0 else { break }
            text += String(decoding: bytes.prefix(count), as: UTF8.self)
          }
          asked.withLock { $0.append(text) }
          let reply = Array(answer.withLock { $0 }.utf8)
          _ = send(connection, reply, reply.count, Int32(MSG_NOSIGNAL))
          close(connection)
        }
      }.start()
    }

    var requests: [String] { asked.withLock { $0 } }
    func stop() {
      shutdown(socket, Int32(SHUT_RDWR))
      close(socket)
    }
  }

  private func eventually(within rounds: Int = 200, _ isTrue: () -> Bool) async -> Bool {
    for _ in 0..<rounds {
      if isTrue() { return true }
      try? await Task.sleep(for: .milliseconds(25))
    }
    return false
  }

  @Test func `a 307 takes the same request, its token too, to the other node`() async throws {
    let (first, second) = (try Listener(), try Listener())
    defer { [first, second].forEach { $0.stop() } }
    let path = "/v1/calls/7f0c2f0e-6a1d-4f0e-8f57-0d7c3f9b1a10/reject"
    first.serve("307 Temporary Redirect\r\nLocation: http://localhost:\(second.port)\(path)")
    second.serve("200 OK")
    WebSockets().post("http://127.0.0.1:\(first.port)\(path)", bearer: "w1", body: Array(#"{"scope":"all"}"#.utf8))
    #expect(await eventually { !second.requests.isEmpty })
    let request = try #require(second.requests.first)
    #expect(request.hasPrefix("POST \(path) ") && request.contains("Authorization: Bearer w1\r\n"))
    #expect(request.hasSuffix(#"{"scope":"all"}"#))
  }

  @Test func `nodes that send to each other are followed three times, and no other redirection is`() async throws {
    let (first, second) = (try Listener(), try Listener())
    defer { [first, second].forEach { $0.stop() } }
    first.serve("307 Temporary Redirect\r\nLocation: http://127.0.0.1:\(first.port)/again")
    second.serve("302 Found\r\nLocation: http://127.0.0.1:\(first.port)/other")
    let sockets = WebSockets()
    sockets.post("http://127.0.0.1:\(first.port)/", bearer: "w1", body: Array("{}".utf8))
    #expect(await eventually { first.requests.count == 4 })
    sockets.post("http://127.0.0.1:\(second.port)/", bearer: "w1", body: Array("{}".utf8))
    #expect(await eventually { second.requests.count == 1 })
    // waits long after both have their answers
    #expect(await !eventually(within: 20) { first.requests.count > 4 || second.requests.count > 1 })
  }
}
