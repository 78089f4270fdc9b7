import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP
import TrunklineSRTP
import TrunklineSTUN

/// A connected call whose both sides send whatever the bytes say: datagrams as they are to each of its three doors, and
/// payloads of any type, number and time that carry a good tag. The first byte chooses the codecs and the SRTP profile.
@Sendable func fuzzSession(_ bytes: [UInt8]) {
  guard let first = bytes.first, var call = FuzzedCall(first) else { return }
  var input = FuzzInput(bytes)
  while !input.isEmpty { call.step(&input) }
  for _ in 0..<3 { call.tick() }
}

struct FuzzInput {
  private let bytes: [UInt8]
  private var position = 1
  init(_ bytes: [UInt8]) { self.bytes = bytes }
  var isEmpty: Bool { position >= bytes.count }
  mutating func byte() -> UInt8 {
    guard position < bytes.count else { return 0 }
    position += 1
    return bytes[position - 1]
  }
  mutating func word() -> UInt32 { (0..<4).reduce(UInt32(0)) { value, _ in value << 8 | UInt32(byte()) } }
  mutating func take(_ count: Int) -> [UInt8] {
    let end = min(bytes.count, position + count)
    defer { position = end }
    return Array(bytes[position..<end])
  }
}

private struct FuzzedCall: ~Copyable {
  private var session: MediaSession
  private var output = MediaOutput()
  private var now = Instant(nanoseconds: 1_000_000_000)
  private var appSender: SRTPSender
  private var sequence: (app: UInt16, trunk: UInt16) = (65_530, 65_530)
  private var timestamp: (app: UInt32, trunk: UInt32) = (0xffff_f000, 0xffff_f000)
  private let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 2_048, alignment: 16)

  private static let id = MediaSessionID(raw: 7)
  private static let leg = AppLegID(raw: 1)
  private static let trunk = SocketAddress(IPAddress(192, 0, 2, 1), 30_000)
  private static let app = SocketAddress(IPAddress(198, 51, 100, 9), 50_000)
  private static let route = (trunk: PacketRoute(raw: 10), control: PacketRoute(raw: 11), app: PacketRoute(raw: 12))

  init?(_ choice: UInt8) {
    let encodings: [AudioEncoding] = [.opus, .pcmu, .pcma]
    let (appEncoding, trunkEncoding) = (encodings[Int(choice) % 3], encodings[1 + Int(choice >> 2) % 2])
    let profile = SRTPProfile.allCases[Int(choice >> 4) % SRTPProfile.allCases.count]
    func master(_ base: UInt8) -> SRTPMasterKey {
      SRTPMasterKey(
        key: [UInt8](repeating: base, count: profile.keyBytes), salt: [UInt8](repeating: base, count: profile.saltBytes))
    }
    let keys = SRTPKeyMaterial(profile: profile, client: master(1), server: master(2))
    guard let sender = try? SRTPSender(profile, keys.client) else { return nil }
    appSender = sender
    session = MediaSession(
      id: Self.id,
      setup: MediaSessionSetup(trunkRoute: Self.route.trunk, trunkControlRoute: Self.route.control, random: .seeded(42)))
    command(.addAppLeg(Self.id, Self.leg, AppLegLocal(ufrag: "gwuf", password: "gatewaypasswordgateway", ssrc: 0xabcd_0001)))
    let remote = AppLegRemote(
      generation: 1, ufrag: "appu", password: "apppasswordapppassword", fingerprintAlgorithm: "sha-256",
      fingerprint: [UInt8](repeating: 9, count: 32), encoding: appEncoding, payloadType: 111, telephoneEvent48: 110,
      telephoneEvent8: 126)
    command(.setAppRemote(Self.id, Self.leg, remote, newLocal: nil, newAssociation: true))
    nominate()
    let key = HandshakeKey(session: Self.id, leg: Self.leg, association: 0)
    session.handle(.completed(key, keys), at: now, into: &output)
    command(
      .setTrunk(
        Self.id,
        TrunkLegParameters(remote: Self.trunk, encoding: trunkEncoding, payloadType: 0, telephoneEventPayloadType: 101)))
    command(.lockWinner(Self.id, Self.leg))
    command(.connect(Self.id, Self.leg, keepsFirstWords: choice & 0x80 != 0))
  }
  deinit { room.deallocate() }

  mutating func step(_ input: inout FuzzInput) {
    let what = input.byte()
    switch what & 7 {
    case 0: tick()
    case 1: datagram(input.take(Int(input.byte()) * 6), at: .trunk)
    case 2: datagram(input.take(Int(input.byte()) * 2), at: .control)
    case 3: datagram(input.take(Int(input.byte()) * 6), at: .app)
    case 4: fromTrunk(what, &input)
    case 5, 6: fromApp(what, &input)
    default: now = now + .milliseconds(Int64(what >> 3) * 40)
    }
    drain()
  }

  mutating func tick() {
    for direction in AudioDirection.allCases { session.tick(direction, at: now, into: &output) }
    now = now + .milliseconds(20)
    drain()
  }

  private enum Door { case trunk, control, app }

  private mutating func datagram(_ bytes: [UInt8], at door: Door) {
    switch door {
    case .trunk: bytes.withUnsafeBytes { session.handleTrunk($0, from: Self.trunk, at: now, into: &output) }
    case .control:
      let source = SocketAddress(Self.trunk.ip, Self.trunk.port + 1)
      bytes.withUnsafeBytes { session.handleTrunkControl($0, from: source, at: now, into: &output) }
    case .app:
      room.copyBytes(from: bytes)
      app(bytes.count)
    }
  }

  private mutating func app(_ count: Int) {
    session.handleApp(
      UnsafeMutableRawBufferPointer(rebasing: room[..<count]), leg: session.index(of: Self.leg) ?? -1, from: Self.app,
      route: Self.route.app, at: now, into: &output)
  }

  /// A header that is mostly the next one, with odd numbers, times, types and bits now and then, and any payload.
  private static func packet(
    _ what: UInt8, _ sequence: inout UInt16, _ timestamp: inout UInt32, _ type: UInt8, _ input: inout FuzzInput
  ) -> [UInt8] {
    let odd = what >> 3
    sequence &+= odd & 1 == 0 ? 1 : UInt16(truncatingIfNeeded: input.word())
    timestamp = odd & 2 == 0 ? timestamp &+ 960 : input.word()
    let flags: UInt8 = odd & 4 == 0 ? 0x80 : 0x80 | input.byte() & 0x3f
    let ssrc: UInt8 = odd & 8 == 0 ? 1 : input.byte()
    let payload = input.take(odd & 16 == 0 ? Int(input.byte()) : Int(input.byte()) * 6)
    return [flags, type, UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence)]
      + (0..<4).map { UInt8(truncatingIfNeeded: timestamp >> UInt32(24 - 8 * $0)) } + [0, 0, 0, ssrc] + payload
  }

  private mutating func fromTrunk(_ what: UInt8, _ input: inout FuzzInput) {
    let type: UInt8 = [0, 0, 101, 13, input.byte()][Int(input.byte()) % 5]
    let bytes = Self.packet(what, &sequence.trunk, &timestamp.trunk, type, &input)
    datagram(bytes, at: .trunk)
  }

  private mutating func fromApp(_ what: UInt8, _ input: inout FuzzInput) {
    let type: UInt8 = [111, 111, 110, 126, input.byte()][Int(input.byte()) % 5]
    let isControl = what & 7 == 6 && type & 1 == 0
    var bytes = Self.packet(what, &sequence.app, &timestamp.app, type, &input)
    if isControl { bytes[1] = 200 + type % 8 }
    room.copyBytes(from: bytes)
    var count = bytes.count
    do throws(SRTPError) {
      if isControl { try appSender.protectRTCP(room, count: &count) } else { try appSender.protect(room, count: &count) }
    } catch { return }
    app(count)
  }

  private mutating func command(_ command: MediaCommand) {
    session.handle(command, at: now, into: &output)
    drain()
  }

  /// What goes to the trunk is RTP with a payload, whatever came in.
  private mutating func drain() {
    for index in 0..<output.packets.count where output.packets[entry: index].route == Self.route.trunk {
      let bytes = Array(output.packets[bytes: index])
      guard let header = try? RTPHeader(parsing: bytes.span) else { preconditionFailure("what goes to the trunk is RTP") }
      precondition(header.payloadLength > 0, "no empty packets go to the trunk")
    }
    output.packets.removeAll()
    output.events.removeAll()
    output.handshakes.removeAll()
    output.bindings.removeAll()
    output.sources.removeAll()
  }

  private mutating func nominate() {
    var writer = STUNWriter(.request, transaction: TransactionID(high: 1, low: 2), into: room)
    writer.addUsername(recipient: Array("gwuf".utf8), sender: Array("appu".utf8))
    writer.addPriority(100)
    writer.addControlling(tieBreaker: 5)
    writer.addUseCandidate()
    writer.addIntegrity(IntegrityKey(password: "gatewaypasswordgateway"))
    writer.addFingerprint()
    app(writer.finish() ?? 0)
  }
}
