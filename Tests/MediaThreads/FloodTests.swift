import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineDTLS
import TrunklineMediaSession
import TrunklinePlatform

@testable import MediaThreads

// One after the other with the echo calls, which count threads.
extension EchoCallTests {
  /// A running call while others send junk. Counted, not timed: each frame's junk is read before the next frame is sent, 400
  /// datagrams a frame to each of the two ports being 20,000 a second.
  @Suite struct FloodTests {
    private static let frames = 60
    private static let junkEachFrame = 400

    @Test func `a scanner's junk at the app port and at the trunk port costs a call no packet`() throws {
      let log = EventLog()
      let plane = try MediaPlane(
        configuration: MediaPlaneConfiguration(
          addresses: [MediaPlaneConfiguration.Address(bind: .loopback)], threads: 1, appPort: 0, trunkPorts: 45_300...45_399),
        identity: try DTLSIdentity()
      ) { log.append($0) }
      defer { plane.stop() }
      let (id, leg) = (MediaSessionID(raw: 1), AppLegID(raw: 1))
      let reservation = try plane.reserve(session: id, user: "alice", toward: .loopback)
      let local = AppLegLocal(ufrag: "gwufrag1", password: "gatewaypasswordgateway", ssrc: 99)
      plane.send(.addAppLeg(id, leg, local))
      let (trunk, scanner) = (try TestTrunk(), try Scanner())
      let app = try TestApp(
        encoding: .opus, gateway: reservation.appCandidates[0], gatewayUfrag: local.ufrag, gatewayPassword: local.password,
        fingerprint: reservation.fingerprint)
      plane.send(.setAppRemote(id, leg, app.remote(encoding: .opus), newLocal: nil, newAssociation: true))
      // Only the signalled port is the trunk's: the scanner shares its address, loopback having no other.
      var parameters = trunk.parameters
      parameters.sourcePolicy = .strict
      plane.send(.setTrunk(id, parameters))
      let isReady = try drive {
        try app.step()
        return app.isReady && log.has { if case .keysInstalled = $0 { true } else { false } }
      }
      try #require(isReady, "\(log.all)")
      plane.send(.lockWinner(id, leg))
      plane.send(.connect(id, leg, keepsFirstWords: false))
      let quiet = [Int16](repeating: 0, count: 160)
      for frame in 0..<Self.frames {
        for part in 0..<4 {
          if part == 1 { try trunk.say(quiet, to: reservation.trunkAddress) }
          if part == 2 { try app.say(quiet) }
          let read = plane.metrics.packets[.trunkReceived].value + plane.metrics.packets[.appReceived].value
          let count =
            try scanner.send(Self.junkEachFrame / 4, to: reservation.appCandidates[0], seed: UInt64(frame))
            + scanner.send(Self.junkEachFrame / 4, to: reservation.trunkAddress, seed: UInt64(frame))
          let isRead = drive(seconds: 1) {
            plane.metrics.packets[.trunkReceived].value + plane.metrics.packets[.appReceived].value >= read + UInt64(count)
          }
          #expect(isRead, "frame \(frame)")
        }
        try app.step()
        try trunk.step()
      }
      plane.send(.close(id))
      let isClosed = drive { log.has { if case .closed(id, _) = $0 { true } else { false } } }
      #expect(isClosed)
      let closed = log.all.compactMap { if case .closed(_, let statistics) = $0 { statistics } else { nil } }
      let statistics = try #require(closed.first)
      #expect(statistics.fromTrunk.packets == UInt64(Self.frames) && statistics.fromTrunk.lost == 0)
      #expect(statistics.fromApp.packets == UInt64(Self.frames) && statistics.fromApp.lost == 0)
      #expect(statistics.fromTrunk.dropped >= UInt64(Self.frames * Self.junkEachFrame * 9 / 10))
      #expect(plane.metrics.packets[.stranger].value >= UInt64(Self.frames * Self.junkEachFrame * 9 / 10))
      #expect(plane.metrics.handshakes[.completed].value == 1)
    }
  }
}

/// Sends what scanners send: nothing in particular, and the beginnings of RTP, RTCP, STUN and DTLS.
private struct Scanner {
  private let socket: UDPSocket
  init() throws { socket = try UDPSocket(bind: SocketAddress(.loopback, 0)) }

  /// How many went out.
  func send(_ count: Int, to address: SocketAddress, seed: UInt64) throws -> Int {
    var random = SplitMix64(seed: seed)
    for _ in 0..<count {
      let word = random.next()
      var bytes = (0..<Int(word % 160 + 1)).map { UInt8(truncatingIfNeeded: word >> UInt64($0 % 56)) }
      bytes[0] = [0x80, 0x80, 0x00, 0x16, bytes[0]][Int(word >> 32 % 5)]
      try socket.send(bytes, to: address)
    }
    return count
  }
}
