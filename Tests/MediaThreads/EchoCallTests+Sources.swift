import Testing
import TrunklineBytes
import TrunklineDTLS
import TrunklineMediaSession
import TrunklinePlatform

@testable import MediaThreads

/// RTP bleed: a third host sends to a call's port before the trunk does. One after the other with the echo calls, which count threads.
extension EchoCallTests {
  private static let stranger = IPAddress(127, 0, 0, 9)

  @Test(arguments: [SourcePolicy.symmetric, .signalledIP])
  func `a third host that sends first hears nothing and is not heard`(_ policy: SourcePolicy) throws {
    let log = EventLog()
    let plane = try MediaPlane(
      configuration: MediaPlaneConfiguration(
        addresses: [MediaPlaneConfiguration.Address(bind: .loopback)], threads: 1, appPort: 0, trunkPorts: 45_400...45_499),
      identity: try DTLSIdentity()
    ) { log.append($0) }
    defer { plane.stop() }
    // A bridge makes the session send without an app: the trunk hears what another trunk says.
    let (id, other) = (MediaSessionID(raw: 1), MediaSessionID(raw: 2))
    let ports = [
      try plane.reserve(session: id, user: "alice", toward: .loopback).trunkAddress,
      try plane.reserve(session: other, user: "alice", toward: .loopback).trunkAddress,
    ]
    let (trunk, far) = (try TestTrunk(), try TestTrunk())
    let third = try UDPSocket(bind: SocketAddress(Self.stranger, 0))
    var parameters = trunk.parameters
    (parameters.sourcePolicy, parameters.signalling) = (policy, [.loopback])
    plane.send(.setTrunk(id, parameters))
    plane.send(.setTrunk(other, far.parameters))
    plane.send(.bridge(id, to: other, connects: true))
    plane.send(.bridge(other, to: id, connects: true))
    let quiet = [Int16](repeating: 0, count: 160)
    let packet: [UInt8] = [0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9] + [UInt8](repeating: 0x10, count: 160)
    for sequence in 0..<100 {
      var next = packet
      next[3] = UInt8(sequence)
      try third.send(next, to: ports[0])
    }
    let isRead = drive { plane.metrics.packets[.trunkReceived].value >= 100 }
    #expect(isRead)
    let isSent = try drive {
      try far.say(quiet, to: ports[1])
      try trunk.step()
      return trunk.received >= 50
    }
    #expect(isSent, "the trunk heard \(trunk.received)")
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 2_000, alignment: 8)
    defer { buffer.deallocate() }
    #expect(try third.receive(into: buffer) == nil, "the third host is sent the call")
    plane.send(.close(id))
    plane.send(.close(other))
    let isClosed = drive { log.has { if case .closed(id, _) = $0 { true } else { false } } }
    #expect(isClosed)
    let closed = log.all.compactMap { if case .closed(id, let statistics) = $0 { statistics } else { nil } }
    #expect(closed.first?.fromTrunk.packets == 0 && closed.first?.fromTrunk.dropped == 100)
    #expect(log.has { if case .trunkSourceRejected(id, let from, _) = $0 { from.ip == Self.stranger } else { false } })
  }
}
