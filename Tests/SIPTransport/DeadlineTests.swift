import Glibc
import Testing
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

@testable import TrunklineSIPTransport

/// A connection's deadlines on virtual time: the sockets are real, the clock is an argument.
@Suite struct DeadlineTests {
  private let start = Instant(nanoseconds: 1_000_000_000)
  private let listener: TCPListener
  private let peer: TCPSocket
  private let socket: TCPSocket

  init() throws {
    listener = try TCPListener(bind: SocketAddress(.loopback, 0))
    peer = try TCPSocket(connect: listener.localAddress)
    #expect(ready(listener.fd))
    let accepted = try listener.accept()
    socket = try #require(accepted)
  }

  private func connection(isGuest: Bool = false) -> TCPConnection {
    let flow = Flow(transport: .tcp, local: listener.localAddress, remote: socket.remoteAddress)
    return TCPConnection(accepted: socket, flow: flow, trunk: "carrier", isGuest: isGuest, at: start)
  }

  /// Has the peer say something and reads it at `now`.
  private func receive(_ connection: inout TCPConnection, _ text: String, at now: Instant) throws -> [String] {
    try peer.say(text)
    #expect(ready(socket.fd))
    var received: [String] = []
    var buffer = [UInt8](repeating: 0, count: 4_096)
    let outcome = buffer.withUnsafeMutableBytes { raw in
      connection.read(into: raw, at: now, message: { received.append(String(decoding: $0, as: UTF8.self)) }, broken: { _ in })
    }
    #expect(outcome == .continues)
    return received
  }

  @Test func `a peer that connects and trickles has 32 s for its first message`() throws {
    var connection = connection()
    #expect(connection.deadline == start + .seconds(32))
    #expect(try receive(&connection, String(options.prefix(10)), at: start + .seconds(30)).isEmpty)
    #expect(connection.deadline == start + .seconds(32), "bytes do not lengthen it")
    #expect(connection.lateness == .framing)
  }

  @Test func `a message has 20 s from its first byte, then the connection may idle for hours`() throws {
    var connection = connection()
    #expect(try receive(&connection, options, at: start).count == 1)
    #expect(connection.deadline == start + .seconds(5 * 3_600))
    #expect(connection.lateness == nil)
    let later = start + .seconds(100)
    #expect(try receive(&connection, String(options.prefix(10)), at: later).isEmpty)
    #expect(connection.deadline == later + .seconds(20))
    #expect(try receive(&connection, String(options.dropFirst(10).prefix(5)), at: later + .seconds(19)).isEmpty)
    #expect(connection.deadline == later + .seconds(20), "the clock runs from the first byte")
    #expect(try receive(&connection, String(options.dropFirst(15)), at: later + .seconds(19)) == [options])
    #expect(connection.deadline == later + .seconds(19 + 5 * 3_600))
  }

  @Test func `the TLS handshake has 10 s from the accept`() throws {
    let certificates = try Certificates()
    let own = try certificates.make("server", "DNS:carrier.example")
    let session = TLSSession(try TLSContext(server: TLSServerSettings(identity: own)), isServer: true)
    let flow = Flow(transport: .tls, local: listener.localAddress, remote: socket.remoteAddress)
    var connection = TCPConnection(accepted: socket, flow: flow, trunk: "carrier", tls: session, at: start)
    #expect(connection.deadline == start + .seconds(10))
    #expect(try receive(&connection, "\r\n\r\n", at: start + .seconds(9)).isEmpty)
    #expect(connection.deadline == start + .seconds(10), "bytes do not lengthen it")
    #expect(connection.lateness == .handshake)
    let end = connection.expired(at: start + .seconds(10))
    #expect(end == .ended)
  }

  @Test func `a guest has 30 s without traffic and 60 s in all, until it has authenticated`() throws {
    var connection = connection(isGuest: true)
    #expect(connection.deadline == start + .seconds(30) && connection.lateness == .unauthenticated)
    #expect(try receive(&connection, options, at: start + .seconds(25)).count == 1)
    #expect(connection.deadline == start + .seconds(55))
    #expect(try receive(&connection, "\r\n\r\n", at: start + .seconds(50)).isEmpty)
    #expect(connection.deadline == start + .seconds(60), "traffic does not lengthen it for ever")
    #expect(connection.lateness == .unauthenticated)
    connection.authenticated(at: start + .seconds(59))
    #expect(connection.deadline == start + .seconds(59 + 5 * 3_600) && connection.lateness == nil)
    #expect(try receive(&connection, options, at: start + .seconds(70)).count == 1)
    #expect(connection.deadline == start + .seconds(70 + 5 * 3_600))
  }

  @Test func `a guest's message that trickles has the same 20 s as anybody's`() throws {
    var connection = connection(isGuest: true)
    #expect(try receive(&connection, String(options.prefix(10)), at: start).isEmpty)
    #expect(connection.deadline == start + .seconds(20) && connection.lateness == .framing)
  }

  @Test func `a connection being made has 10 s`() throws {
    let flow = Flow(transport: .tcp, local: socket.remoteAddress, remote: listener.localAddress)
    var connection = TCPConnection(connecting: peer, flow: flow, trunk: "carrier", at: start)
    #expect(connection.deadline == start + .seconds(10) && connection.isConnecting)
    #expect(connection.interest == [.readable, .writable])
    #expect(ready(peer.fd, POLLOUT))
    let outcome = connection.write(at: start + .seconds(1))
    #expect(outcome == .continues)
    #expect(!connection.isConnecting && connection.interest == .readable)
    #expect(connection.deadline == start + .seconds(1 + 95), "the next ping")
  }

  @Test func `our connections are pinged, and one whose peer stops answering pings is closed (RFC 5626 §4.4.1)`() throws {
    let flow = Flow(transport: .tcp, local: socket.remoteAddress, remote: listener.localAddress)
    var connection = TCPConnection(connecting: peer, flow: flow, trunk: "carrier", at: start)
    #expect(ready(peer.fd, POLLOUT))
    var buffer = [UInt8](repeating: 0, count: 64)
    func step(_ seconds: Int) -> [TCPConnection.Outcome] {
      let now = start + .seconds(seconds)
      return [connection.expired(at: now), connection.write(at: now)]
    }
    func receive(_ seconds: Int) -> TCPConnection.Outcome {
      buffer.withUnsafeMutableBytes {
        connection.read(into: $0, at: start + .seconds(seconds), message: { _ in }, broken: { _ in })
      }
    }
    _ = connection.write(at: start)
    let pinged = step(96)
    #expect(pinged == [.continues, .continues] && ready(socket.fd))
    let read = try buffer.withUnsafeMutableBytes { try socket.read(into: $0) }
    #expect(read == .bytes(4) && buffer.prefix(4) == [13, 10, 13, 10])
    try socket.say("\r\n")
    #expect(ready(peer.fd))
    let received = receive(97)
    #expect(received == .continues && connection.deadline > start + .seconds(180))
    let again = step(193)
    #expect(again.first == .continues && connection.deadline == start + .seconds(193 + 10))
    let late = step(204)
    #expect(late.first == .failed)
  }

  @Test func `512 KiB wait for a peer, not a byte more`() {
    var connection = connection()
    let half = [UInt8](repeating: 1, count: 262_144)
    let taken = [connection.append(half), connection.append(half), connection.append([1])]
    #expect(taken == [true, true, false])
  }

  @Test(arguments: [
    ("INVITE sip:a SIP/2.0", "INVITE"), ("SIP/2.0 486 Busy", "486"), ("SIP/2.0 4", "other"), ("SIP/2.0 abc", "other"),
    ("SIP/2.0 099 x", "other"), ("invite sip:a", "other"), ("FOO sip:a", "other"), ("", "other"), ("\u{0}\u{1}", "other"),
  ])
  func `messages are counted by method or code, whatever they are`(_ text: String, _ kind: String) {
    #expect(TransportMetrics.kind(Array(text.utf8)) == kind)
  }
}
