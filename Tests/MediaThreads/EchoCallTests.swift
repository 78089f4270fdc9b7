import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineDTLS
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineRTP

@testable import MediaThreads

@Suite(.serialized) struct EchoCallTests {
  private let loopback = MediaPlaneConfiguration.Address(bind: .loopback)

  private func configuration(threads: Int = 1, ports: ClosedRange<UInt16> = 45_000...45_099) -> MediaPlaneConfiguration {
    MediaPlaneConfiguration(addresses: [loopback], threads: threads, appPort: 0, trunkPorts: ports)
  }

  /// Three seconds of a talker at 8 kHz.
  private var talk: [[Int16]] {
    var samples = [Int16](repeating: 0, count: 24_000)
    var span = samples.mutableSpan
    let octets = DemoSpeech.telephone
    _ = G711.decode(octets.span.extracting(0..<24_000), law: .mu, into: &span)
    return stride(from: 0, to: samples.count, by: 160).map { Array(samples[$0..<$0 + 160]) }
  }

  @Test(arguments: [false, true])
  func `a call with ICE, DTLS and SRTP carries speech both ways and leaves nothing behind`(relays: Bool) throws {
    let encoding: AudioEncoding = relays ? .pcmu : .opus
    let (threads, descriptors) = (NamedThread.live.value, openDescriptors())
    try call(encoding)
    try call(encoding, isDTLSServer: true)
    #expect(NamedThread.live.value == threads)
    // What others of the process had open before may be closed by now: only more of a kind is left behind by the call.
    var left = openDescriptors()
    for kind in descriptors { if let index = left.firstIndex(of: kind) { left.remove(at: index) } }
    #expect(left.isEmpty)
  }

  private func call(_ encoding: AudioEncoding, isDTLSServer: Bool = false) throws {
    let log = EventLog()
    let identity = try DTLSIdentity()
    let plane = try MediaPlane(configuration: configuration(), identity: identity) { log.append($0) }
    defer { plane.stop() }
    let (id, leg) = (MediaSessionID(raw: 1), AppLegID(raw: 1))
    let reservation = try plane.reserve(session: id, user: "alice", toward: .loopback)
    #expect(reservation.fingerprint == identity.fingerprint.bytes)
    #expect(reservation.trunkAddress.port % 2 == 0 && reservation.trunkAddress.ip == .loopback)
    let local = AppLegLocal(ufrag: "gwufrag1", password: "gatewaypasswordgateway", ssrc: 99)
    plane.send(.addAppLeg(id, leg, local))
    let trunk = try TestTrunk()
    let app = try TestApp(
      encoding: encoding, gateway: reservation.appCandidates[0], gatewayUfrag: local.ufrag, gatewayPassword: local.password,
      fingerprint: reservation.fingerprint, isDTLSServer: isDTLSServer)
    plane.send(.setAppRemote(id, leg, app.remote(encoding: encoding), newLocal: nil, newAssociation: true))
    plane.send(.setTrunk(id, trunk.parameters))
    let isReady = try drive {
      try app.step()
      return app.isReady && log.has { if case .keysInstalled = $0 { true } else { false } }
    }
    try #require(isReady, "\(log.all)")
    #expect(log.has { if case .nominated(id, leg, 1, app.socket.localAddress) = $0 { true } else { false } })

    plane.send(.lockWinner(id, leg))
    plane.send(.connect(id, leg, keepsFirstWords: false))
    let frames = talk
    var next = MonotonicClock.now()
    var sent = 0
    _ = try drive {
      if MonotonicClock.now() >= next {
        next = next + .milliseconds(20)
        try trunk.say(sent < frames.count ? frames[sent] : Array(repeating: 0, count: 160), to: reservation.trunkAddress)
        try app.say(sent < frames.count ? frames[sent] : Array(repeating: 0, count: 160))
        sent += 1
      }
      try app.step()
      try trunk.step()
      return sent == frames.count + 10
    }
    for (side, heard) in [("app", app.heard), ("trunk", trunk.heard)] {
      let comparison = try #require(SpeechComparison(played: frames.flatMap { $0 }, heard: heard), "\(side) heard \(heard.count)")
      // Real clocks on a machine that may be busy: that the speech arrives is tested here, how well on virtual time.
      #expect(comparison.heardShare > 0.7 && comparison.similarity > 0.4, "\(side): \(comparison)")
    }
    plane.send(.close(id))
    let isClosed = drive { log.has { if case .closed(id, _) = $0 { true } else { false } } }
    #expect(isClosed)
    let statistics = log.all.compactMap { if case .closed(_, let statistics) = $0 { statistics } else { nil } }
    #expect(statistics.count == 1 && statistics[0].fromTrunk.packets >= UInt64(frames.count))
    #expect(plane.metrics.sessions.value == 0)
    #expect(plane.metrics.appAddresses.value == 0)
    #expect(plane.metrics.handshakes[.completed].value == 1)
  }

  @Test(arguments: [false, true]) func `another certificate than the SDP names fails the leg and sends no keys`(
    isDTLSServer: Bool
  ) throws {
    let log = EventLog()
    let plane = try MediaPlane(configuration: configuration(), identity: try DTLSIdentity()) { log.append($0) }
    defer { plane.stop() }
    let (id, leg) = (MediaSessionID(raw: 1), AppLegID(raw: 1))
    let reservation = try plane.reserve(session: id, user: "alice", toward: nil)
    let local = AppLegLocal(ufrag: "gwufrag1", password: "gatewaypasswordgateway", ssrc: 99)
    plane.send(.addAppLeg(id, leg, local))
    let app = try TestApp(
      encoding: .opus, gateway: reservation.appCandidates[0], gatewayUfrag: local.ufrag, gatewayPassword: local.password,
      fingerprint: reservation.fingerprint, isDTLSServer: isDTLSServer)
    let wrong = [UInt8](repeating: 1, count: 32)
    plane.send(.setAppRemote(id, leg, app.remote(fingerprint: wrong, encoding: .opus), newLocal: nil, newAssociation: true))
    let failed = try drive {
      try app.step()
      return log.has { if case .appLegFailed(_, _, .fingerprintMismatch) = $0 { true } else { false } }
    }
    #expect(failed, "\(log.all)")
    #expect(!log.has { if case .keysInstalled = $0 { true } else { false } })
    #expect(plane.metrics.handshakes[.failed].value == 1)
    #expect(plane.metrics.associations.value == 0)
  }

  @Test func `a handshake that finishes before the SDP arrives waits for its fingerprint`() throws {
    let log = EventLog()
    let plane = try MediaPlane(configuration: configuration(), identity: try DTLSIdentity()) { log.append($0) }
    defer { plane.stop() }
    let (id, leg) = (MediaSessionID(raw: 1), AppLegID(raw: 1))
    let reservation = try plane.reserve(session: id, user: "alice", toward: nil)
    let local = AppLegLocal(ufrag: "gwufrag1", password: "gatewaypasswordgateway", ssrc: 99)
    plane.send(.addAppLeg(id, leg, local))
    let app = try TestApp(
      encoding: .opus, gateway: reservation.appCandidates[0], gatewayUfrag: local.ufrag, gatewayPassword: local.password,
      fingerprint: reservation.fingerprint)
    let shaken = try drive {
      try app.step()
      return app.isReady
    }
    #expect(shaken)
    #expect(!log.has { if case .keysInstalled = $0 { true } else { false } })
    plane.send(.setAppRemote(id, leg, app.remote(encoding: .opus), newLocal: nil, newAssociation: true))
    let installed = drive { log.has { if case .keysInstalled = $0 { true } else { false } } }
    #expect(installed)
  }

  @Test func `strangers and a second DTLS client at the app's address disturb nothing`() throws {
    let log = EventLog()
    let plane = try MediaPlane(configuration: configuration(), identity: try DTLSIdentity()) { log.append($0) }
    defer { plane.stop() }
    let (id, leg) = (MediaSessionID(raw: 1), AppLegID(raw: 1))
    let reservation = try plane.reserve(session: id, user: "alice", toward: nil)
    let local = AppLegLocal(ufrag: "gwufrag1", password: "gatewaypasswordgateway", ssrc: 99)
    plane.send(.addAppLeg(id, leg, local))
    let gateway = reservation.appCandidates[0]
    let app = try TestApp(
      encoding: .opus, gateway: gateway, gatewayUfrag: local.ufrag, gatewayPassword: local.password,
      fingerprint: reservation.fingerprint)
    plane.send(.setAppRemote(id, leg, app.remote(encoding: .opus), newLocal: nil, newAssociation: true))
    let isReady = try drive {
      try app.step()
      return app.isReady && log.has { if case .keysInstalled = $0 { true } else { false } }
    }
    #expect(isReady)
    var other = try DTLSAssociation(.client, identity: try DTLSIdentity())
    other.start()
    var hello: [[UInt8]] = []
    other.drain { hello.append(Array($0)) }
    let stranger = try UDPSocket(bind: SocketAddress(.loopback, 0))
    for datagram in hello {
      try app.socket.send(datagram, to: gateway)
      try stranger.send(datagram, to: gateway)
    }
    var random = SplitMix64(seed: 4)
    for _ in 0..<200 {
      try stranger.send((0..<100).map { _ in UInt8(truncatingIfNeeded: random.next()) }, to: gateway)
    }
    let isCounted = drive { plane.metrics.packets[.stranger].value >= 200 }
    #expect(isCounted)
    plane.send(.setTrunk(id, try TestTrunk().parameters))
    plane.send(.lockWinner(id, leg))
    plane.send(.connect(id, leg, keepsFirstWords: false))
    let before = plane.metrics.packets[.appReceived].value
    for _ in 0..<10 { try app.say(Array(repeating: 0, count: 160)) }
    // A command may overtake packets that still wait in the socket.
    let areRead = drive { plane.metrics.packets[.appReceived].value >= before + 10 }
    #expect(areRead)
    plane.send(.close(id))
    let isClosed = drive {
      log.has { if case .closed(_, let statistics) = $0 { statistics.fromApp.packets == 10 } else { false } }
    }
    #expect(isClosed, "\(log.all)")
    #expect(plane.metrics.handshakes[.completed].value == 1 && plane.metrics.handshakes[.failed].value == 0)
  }

  @Test func `an exhausted port range is refused, and a closed call gives its pair back`() throws {
    let log = EventLog()
    let plane = try MediaPlane(configuration: configuration(ports: 45_200...45_203), identity: try DTLSIdentity()) {
      log.append($0)
    }
    defer { plane.stop() }
    for raw in 1...2 { _ = try plane.reserve(session: MediaSessionID(raw: UInt64(raw)), user: "alice", toward: nil) }
    #expect(throws: MediaReservationError.portsExhausted) {
      _ = try plane.reserve(session: MediaSessionID(raw: 3), user: "bob", toward: nil)
    }
    plane.send(.close(MediaSessionID(raw: 1)))
    let isClosed = drive { log.has { if case .closed = $0 { true } else { false } } }
    #expect(isClosed)
    let isFree = drive { (try? plane.reserve(session: MediaSessionID(raw: 4), user: "bob", toward: nil)) != nil }
    #expect(isFree)
  }

  @Test func `media of a trunk is at the address that it asked, unless media goes another way`() throws {
    var configuration = configuration(ports: 45_300...45_319)
    let (first, second) = (IPAddress.loopback, IPAddress(127, 0, 0, 9))
    configuration.addresses.append(.init(bind: second))
    let plane = try MediaPlane(configuration: configuration, identity: try DTLSIdentity()) { _ in }
    defer { plane.stop() }
    var last: UInt64 = 0
    func reserved(_ toward: IPAddress, _ own: IPAddress?, _ peer: IPAddress = .loopback) throws -> IPAddress {
      last += 1
      return try plane.reserve(
        session: MediaSessionID(raw: last), user: "alice", toward: toward, asked: own.map { ($0, peer) }
      ).trunkAddress.ip
    }
    #expect(try reserved(.loopback, nil) == first)
    #expect(try reserved(.loopback, first) == first && reserved(.loopback, second) == second)
    // media beside the signalling, by the same route
    #expect(try reserved(IPAddress(127, 0, 0, 5), second) == second)
    // media elsewhere, and an address of ours that media is not on
    #expect(try reserved(IPAddress(192, 0, 2, 77), second) == first)
    #expect(try reserved(.loopback, IPAddress(127, 0, 0, 10)) == first)
  }

  @Test func `a call beyond what the threads can carry is refused, one that ends makes room again`() throws {
    let log = EventLog()
    var configuration = configuration()
    (configuration.loadLimit, configuration.assumedCallCost) = (0.25, 0.08)
    let plane = try MediaPlane(configuration: configuration, identity: try DTLSIdentity()) { log.append($0) }
    defer { plane.stop() }
    // At full complexity there is room for two; lower complexity makes room for a third and a fourth.
    var taken = 0
    for raw in 1...40 {
      do throws(MediaReservationError) {
        _ = try plane.reserve(session: MediaSessionID(raw: UInt64(raw)), user: "user\(raw)", toward: nil)
        taken += 1
      } catch {
        #expect(error == .overloaded)
      }
    }
    #expect((2...7).contains(taken), "\(taken)")
    for raw in 1...40 { plane.send(.close(MediaSessionID(raw: UInt64(raw)))) }
    let isFree = drive { (try? plane.reserve(session: MediaSessionID(raw: 50), user: "bob", toward: nil)) != nil }
    #expect(isFree)
  }

  @Test func `an app port that another process holds is an error that names the setting`() throws {
    let taken = try UDPSocket(bind: SocketAddress(.loopback, 0))
    let configuration = MediaPlaneConfiguration(
      addresses: [loopback], threads: 1, appPort: taken.localAddress.port, trunkPorts: 45_000...45_099)
    let error = #expect(throws: SystemError.self) {
      _ = try MediaPlane(configuration: configuration, identity: try DTLSIdentity()) { _ in }
    }
    #expect(error?.description.contains("media.app_port") == true)
    #expect(error?.isAddressInUse == true)
  }

  @Test func `calls of one user share a thread and stop ends them all`() throws {
    let log = EventLog()
    let plane = try MediaPlane(configuration: configuration(threads: 3), identity: try DTLSIdentity()) { log.append($0) }
    var ports: Set<UInt16> = []
    for raw in 1...6 {
      let reservation = try plane.reserve(session: MediaSessionID(raw: UInt64(raw)), user: "alice", toward: nil)
      ports.insert(reservation.appCandidates[0].port)
    }
    #expect(ports.count == 1)
    plane.stop()
    plane.stop()
    #expect(log.all.filter { if case .closed = $0 { true } else { false } }.count == 6)
    #expect(throws: MediaReservationError.stopped) {
      _ = try plane.reserve(session: MediaSessionID(raw: 9), user: "alice", toward: nil)
    }
  }
}
