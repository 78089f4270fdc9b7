import Glibc
import MediaThreads
import Synchronization
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineDTLS
import TrunklineICE
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineRTP
import TrunklineSRTP

/// An app on one loopback socket: controlling ICE, DTLS client or server, SRTP, one codec. Driven by `step` on the test's own thread.
final class TestApp {
  let socket: UDPSocket
  let ufrag = "appu"
  let password = "apppasswordapppassword"
  let identity: DTLSIdentity
  var agent: ControllingAgent
  var association: DTLSAssociation
  var sender: SRTPSender?
  var receiver: SRTPReceiver?
  var encoder: AudioEncoder
  var decoder: AudioDecoder
  var heard: [Int16] = []
  var received = 0
  private var nominated: SocketAddress?
  private var isShaking = false
  private var sequence: UInt16 = 1
  private var timestamp: UInt32 = 0
  private let payloadType: UInt8

  init(
    encoding: AudioEncoding, gateway: SocketAddress, gatewayUfrag: String, gatewayPassword: String, fingerprint: [UInt8],
    isDTLSServer: Bool = false
  ) throws {
    socket = try UDPSocket(bind: SocketAddress(.loopback, 0))
    identity = try DTLSIdentity()
    agent = ControllingAgent(ufrag: ufrag, password: password, random: .system)
    agent.addLocal(Candidate(socket.localAddress))
    agent.addRemote(Candidate(gateway))
    agent.setRemote(ufrag: gatewayUfrag, password: gatewayPassword)
    association = try DTLSAssociation(
      isDTLSServer ? .server : .client, identity: identity,
      remoteFingerprint: DTLSFingerprint(algorithm: "sha-256", bytes: fingerprint))
    encoder = try AudioEncoder(encoding: encoding)
    decoder = try AudioDecoder(encoding: encoding)
    payloadType = encoding == .opus ? 111 : 0
  }

  func remote(fingerprint: [UInt8]? = nil, encoding: AudioEncoding) -> AppLegRemote {
    var remote = AppLegRemote(
      generation: 1, ufrag: ufrag, password: password, fingerprintAlgorithm: "sha-256",
      fingerprint: fingerprint ?? identity.fingerprint.bytes, encoding: encoding, payloadType: payloadType)
    remote.isDTLSServer = association.role == .server
    return remote
  }

  var isReady: Bool { sender != nil }

  /// Everything that is waiting or due.
  func step() throws {
    let now = MonotonicClock.now()
    var output = ControllingAgent.Output()
    agent.handleTimeout(at: now, into: &output)
    try take(output)
    if isShaking { association.handleTimeout() }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 2_000, alignment: 8)
    defer { buffer.deallocate() }
    while let (count, source) = try socket.receive(into: buffer) {
      try receive(UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]), source, now)
    }
    try drain()
  }

  private func take(_ output: ControllingAgent.Output) throws {
    for datagram in output.datagrams { try socket.send(datagram.bytes, to: datagram.pair.remote) }
    for event in output.events {
      if case .nominated(let pair) = event, nominated == nil {
        nominated = pair.remote
        association.start()
        isShaking = true
      }
    }
  }

  private func drain() throws {
    guard let nominated else { return }
    var flight: [[UInt8]] = []
    association.drain { flight.append(Array($0)) }
    for datagram in flight { try socket.send(datagram, to: nominated) }
    if sender == nil, let keys = association.keyMaterial {
      let isServer = association.role == .server
      sender = try SRTPSender(keys.profile, isServer ? keys.server : keys.client)
      receiver = try SRTPReceiver(keys.profile, isServer ? keys.client : keys.server)
    }
  }

  private func receive(_ packet: UnsafeMutableRawBufferPointer, _ source: SocketAddress, _ now: Instant) throws {
    let bytes = Array(packet)
    switch PacketKind(bytes.span) {
    case .stun:
      var output = ControllingAgent.Output()
      agent.handle(UnsafeRawBufferPointer(packet), from: source, to: socket.localAddress, at: now, into: &output)
      try take(output)
    case .dtls: association.receive(UnsafeRawBufferPointer(packet))
    case .rtp:
      var count = packet.count
      guard (try? receiver?.unprotect(packet, count: &count)) != nil else { return }
      let clear = Array(packet[..<count])
      let header = try RTPHeader(parsing: clear.span)
      var samples = [Int16](repeating: 0, count: 960)
      var span = samples.mutableSpan
      let length = decoder.decode(clear.span.extracting(header.length..<count), into: &span)
      heard += samples[..<length]
      received += 1
    default: break
    }
  }

  func say(_ samples: [Int16]) throws {
    guard let nominated, sender != nil else { return }
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1_500, alignment: 8)
    defer { room.deallocate() }
    var octets = [UInt8](repeating: 0, count: 1_000)
    var span = octets.mutableSpan
    let length = try encoder.encode(samples.span, into: &span)
    let packet = rtp(payloadType, sequence, timestamp, 0x77) + octets[..<length]
    room.copyBytes(from: packet)
    var count = packet.count
    try sender?.protect(room, count: &count)
    try socket.send(UnsafeRawBufferPointer(rebasing: room[..<count]), to: nominated)
    sequence &+= 1
    timestamp &+= UInt32(encoder.units(ofSamples: samples.count))
  }
}

/// A carrier's RTP end on one loopback socket.
final class TestTrunk {
  let socket: UDPSocket
  var heard: [Int16] = []
  var received = 0
  private var sequence: UInt16 = 1
  private var timestamp: UInt32 = 0

  init() throws { socket = try UDPSocket(bind: SocketAddress(.loopback, 0)) }

  var parameters: TrunkLegParameters { TrunkLegParameters(remote: socket.localAddress, encoding: .pcmu, payloadType: 0) }

  func step() throws {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 2_000, alignment: 8)
    defer { buffer.deallocate() }
    while let (count, _) = try socket.receive(into: buffer) {
      let bytes = Array(buffer[..<count])
      let header = try RTPHeader(parsing: bytes.span)
      var samples = [Int16](repeating: 0, count: count)
      var span = samples.mutableSpan
      let length = G711.decode(bytes.span.extracting(header.length..<count), law: .mu, into: &span)
      heard += samples[..<length]
      received += 1
    }
  }

  func say(_ samples: [Int16], to gateway: SocketAddress) throws {
    var octets = [UInt8](repeating: 0, count: samples.count)
    var span = octets.mutableSpan
    _ = G711.encode(samples.span, law: .mu, into: &span)
    try socket.send(rtp(0, sequence, timestamp, 0x55) + octets, to: gateway)
    sequence &+= 1
    timestamp &+= UInt32(samples.count)
  }
}

private func rtp(_ payloadType: UInt8, _ sequence: UInt16, _ timestamp: UInt32, _ ssrc: UInt32) -> [UInt8] {
  let header = RTPHeader(
    payloadType: payloadType, marker: false, sequence: SequenceNumber(raw: sequence), timestamp: RTPTimestamp(raw: timestamp),
    ssrc: SSRC(raw: ssrc))
  var packet = [UInt8](repeating: 0, count: 12)
  var span = packet.mutableSpan
  _ = header.write(into: &span)
  return packet
}

/// Media events as they come from the plane's threads.
final class EventLog: Sendable {
  private let events = Mutex<[MediaEvent]>([])
  func append(_ event: MediaEvent) { events.withLock { $0.append(event) } }
  var all: [MediaEvent] { events.withLock { $0 } }
  func has(_ matches: (MediaEvent) -> Bool) -> Bool { all.contains(where: matches) }
}

/// Runs `step` about every millisecond until it says true; false after `seconds`.
func drive(seconds: Int = 10, _ step: () throws -> Bool) rethrows -> Bool {
  let end = MonotonicClock.now() + .seconds(seconds)
  while MonotonicClock.now() < end {
    if try step() { return true }
    usleep(1_000)
  }
  return false
}

/// What this process has open, by kind (`socket`, `anon_inode`, a path), sorted.
func openDescriptors() -> [String] {
  let folder = "/proc/self/fd"
  guard let directory = opendir(folder) else { return [] }
  defer { closedir(directory) }
  var kinds: [String] = []
  while let entry = readdir(directory) {
    let name = withUnsafePointer(to: &entry.pointee.d_name) {
      $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
    guard name != ".", name != "..", name != "\(dirfd(directory))" else { continue }
    var target = [CChar](repeating: 0, count: 256)
    guard readlink("\(folder)/\(name)", &target, target.count - 1) > 0 else { continue }
    let kind = String(decoding: target.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    // The number of a socket says nothing.
    kinds.append(kind.hasPrefix("socket:") ? "socket" : kind)
  }
  return kinds.sorted()
}
