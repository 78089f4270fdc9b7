import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// A packet that this machine, the network or a connection refused is one lost packet (RFC 3261 §17): it ends no call.
@Suite struct LostPacketTests {
  @Test func `an INVITE goes on through errors that end within three seconds`() throws {
    for errors in 1...3 {
      var (wire, invite) = try Wire.calling()
      var sent = 1
      for _ in 0..<errors {
        wire.input(.transportFailed(udp))
        sent += 1
        _ = wire.advance(.milliseconds(500))
      }
      #expect(wire.events().isEmpty)
      wire.receive(reply(invite, 100, tag: nil))
      wire.receive(reply(invite, 200, extra: ["Contact: <sip:c@203.0.113.7>"], sdp: answer))
      #expect(wire.events().map(\.name).last == "answered", "\(errors)")
    }
  }

  @Test func `a BYE is sent until its answer, whatever is refused on the way, and has 32 s`() throws {
    var (wire, leg, _, _) = try Wire.confirmed()
    let bye = try #require(wire.command(.bye(leg, nil)).first)
    wire.input(.transportFailed(udp))
    var at: [Int64] = []
    let start = wire.now
    while (wire.now - start) < .seconds(20) {
      let before = (wire.now - start).milliseconds
      at += wire.advance(.seconds(1)).filter { $0.message.method == .bye }.map { before + $0.ms }
      wire.input(.transportFailed(udp))
    }
    #expect(at == [500, 1500, 3500, 7500, 11500, 15500, 19500])
    #expect(!wire.events().contains { $0.name == "closed" })
    wire.receive(reply(bye, 200))
    #expect(wire.events().map(\.name) == ["closed"])
    // without any answer the call ends as well
    var (silent, other, _, _) = try Wire.confirmed()
    silent.command(.bye(other, nil))
    silent.input(.transportFailed(udp))
    _ = silent.advance(.seconds(33))
    #expect(silent.events().map(\.name) == ["closed"])
    #expect(silent.isEmpty)
  }

  @Test func `a request that went into a dead connection is sent once more, on a new one`() throws {
    var (wire, invite) = try Wire.calling(flow: tcp)
    let again = try #require(wire.input(.transportFailed(tcp, wasOpen: true)).first)
    #expect(again.bytes == invite.bytes)
    // the new connection fails as well: the peer is at fault
    wire.input(.transportFailed(tcp, wasOpen: true))
    #expect(wire.events().map(\.name) == ["failed 503 transport", "closed"])
    // a connection that was never open is not opened again
    var (refused, _) = try Wire.calling(flow: tcp)
    #expect(refused.input(.transportFailed(tcp)).isEmpty)
    #expect(refused.events().map(\.name) == ["failed 503 transport", "closed"])
  }

  @Test func `a BYE goes to the peer's own port when the connection it had opened is gone`() throws {
    var wire = Wire()
    wire.flow = tcp
    wire.receive(request("INVITE", via: "SIP/2.0/TCP 203.0.113.7:5088", sdp: offer))
    guard case .inviteReceived(let leg, _) = try #require(wire.events().first) else { throw Missing() }
    let tag = wire.command(.answer(leg, sdp: answer)).first?.toTag
    wire.receive(request("ACK", branch: "z9hG4bKack", toTag: tag, via: "SIP/2.0/TCP 203.0.113.7:5088"))
    let bye = try #require(wire.command(.bye(leg, nil)).first)
    #expect(wire.output.messages[0].flow.remote == tcp.remote)
    let again = try #require(wire.input(.transportFailed(tcp, wasOpen: true)).first)
    #expect(again.bytes == bye.bytes && wire.output.messages[0].flow.remote == SocketAddress("203.0.113.7:5060"))
  }

  @Test func `a connection on which a request ended without an answer is told`() throws {
    var (wire, _) = try Wire.calling(flow: tcp)
    let sent = wire.now
    _ = wire.advance(.seconds(33))
    #expect(wire.output.silent.map(\.flow) == [tcp] && wire.output.silent.map(\.since) == [sent])
    var (datagrams, _) = try Wire.calling()
    _ = datagrams.advance(.seconds(33))
    #expect(datagrams.output.silent.isEmpty)
  }
}
