import BenchKit
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineICE
import TrunklineMediaSession
import TrunklineRTP
import TrunklineSRTP
import TrunklineSTUN

/// A whole connected call on virtual time, as a media thread runs it, without sockets: one packet from each side and one tick per
/// operation.
struct SessionBench: ~Copyable {
  static let id = MediaSessionID(raw: 7)
  static let leg = AppLegID(raw: 1)
  static let trunkAddress = SocketAddress(IPAddress(192, 0, 2, 1), 30_000)
  static let appAddress = SocketAddress(IPAddress(198, 51, 100, 9), 50_000)
  static let appRoute = PacketRoute(raw: 12)

  private var session: MediaSession
  private var output = MediaOutput()
  private var now = Instant(nanoseconds: 1_000_000_000)
  private var trunkPackets: [[UInt8]]
  private var appPackets: [[UInt8]]
  private let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1600, alignment: 8)
  private var number = 0
  private var tap: AudioTap?
  /// Packets sent, to either side.
  private(set) var sent = 0

  deinit { room.deallocate() }

  /// The audio that the two sides send, and the settings that the app requested.
  struct Plan {
    var app = AudioEncoding.opus
    var trunk = AudioEncoding.pcmu
    var profile = SRTPProfile.aeadAES128GCM
    /// 20 ms each, over and over; nil while the side is silent and does not send.
    var fromTrunk: [[UInt8]?]
    var fromApp: [[UInt8]?]
    var opus = OpusPreferences()
    var complexity = 5
    /// A recorder is attached; its own thread's work with the frames is not counted.
    var isTapped = false
  }

  /// - Parameter packets: number to prepare for each side; an SRTP packet can be used only once.
  static func make(_ plan: Plan, packets: Int) throws -> SessionBench {
    func master(_ base: UInt8) -> SRTPMasterKey {
      SRTPMasterKey(
        key: (0..<plan.profile.keyBytes).map { base &+ UInt8($0) },
        salt: (0..<plan.profile.saltBytes).map { base &+ 100 &+ UInt8($0) })
    }
    let keys = SRTPKeyMaterial(profile: plan.profile, client: master(1), server: master(51))
    let payloadType: UInt8 = plan.app == .opus ? 111 : 0
    let fromTrunk = stream(plan.fromTrunk, plan.trunk, payloadType: trunkPayloadType(plan), ssrc: 0x1234, count: packets)
    var sender = try SRTPSender(plan.profile, keys.client)
    let clear = stream(plan.fromApp, plan.app, payloadType: payloadType, ssrc: 0x9999, count: packets)
    let fromApp = try protect(clear, by: &sender)
    return SessionBench(plan, payloadType: payloadType, keys: keys, fromTrunk: fromTrunk, fromApp: fromApp)
  }

  private static func trunkPayloadType(_ plan: Plan) -> UInt8 { plan.trunk == .g722 ? 9 : 0 }

  private init(_ plan: Plan, payloadType: UInt8, keys: SRTPKeyMaterial, fromTrunk: [[UInt8]], fromApp: [[UInt8]]) {
    trunkPackets = fromTrunk
    appPackets = fromApp
    var setup = MediaSessionSetup(trunkRoute: PacketRoute(raw: 10), trunkControlRoute: PacketRoute(raw: 11), random: .seeded(42))
    setup.opusComplexity = plan.complexity
    session = MediaSession(id: Self.id, setup: setup)
    let local = AppLegLocal(ufrag: "gwuf", password: "gatewaypasswordgateway", ssrc: 0xabcd_0001)
    var remote = AppLegRemote(
      generation: 1, ufrag: "appu", password: "apppasswordapppassword", fingerprintAlgorithm: "sha-256",
      fingerprint: [UInt8](repeating: 9, count: 32), encoding: plan.app, payloadType: payloadType)
    remote.opus = plan.opus
    command(.addAppLeg(Self.id, Self.leg, local))
    command(.setAppRemote(Self.id, Self.leg, remote, newLocal: nil, newAssociation: true))
    nominate()
    let key = HandshakeKey(session: Self.id, leg: Self.leg, association: 0)
    session.handle(.completed(key, keys), at: now, into: &output)
    command(
      .setTrunk(
        Self.id, TrunkLegParameters(remote: Self.trunkAddress, encoding: plan.trunk, payloadType: Self.trunkPayloadType(plan))))
    command(.lockWinner(Self.id, Self.leg))
    command(.connect(Self.id, Self.leg, keepsFirstWords: false))
    if plan.isTapped {
      let made = AudioTap()
      tap = made
      command(.tap(Self.id, made))
    }
    drain()
    sent = 0
  }

  /// A tick without a payload is empty: the number stays, the timestamp advances (RFC 3551 §4.1).
  private static func stream(_ payloads: [[UInt8]?], _ encoding: AudioEncoding, payloadType: UInt8, ssrc: UInt32, count: Int)
    -> [[UInt8]]
  {
    var sequence = 0
    return (0..<count).map { number in
      guard let payload = payloads[number % payloads.count] else { return [] }
      let header = RTPHeader(
        payloadType: payloadType, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: sequence)),
        timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: number * Int(encoding.clockRateHz) / 50)), ssrc: SSRC(raw: ssrc))
      sequence += 1
      var packet = [UInt8](repeating: 0, count: 12)
      var span = packet.mutableSpan
      _ = header.write(into: &span)
      return packet + payload
    }
  }

  private static func protect(_ packets: [[UInt8]], by sender: inout SRTPSender) throws -> [[UInt8]] {
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1600, alignment: 8)
    defer { room.deallocate() }
    var protected: [[UInt8]] = []
    for packet in packets {
      room.copyBytes(from: packet)
      var count = packet.count
      if count > 0 { try sender.protect(room, count: &count) }
      protected.append(Array(room[..<count]))
    }
    return protected
  }

  private mutating func command(_ command: MediaCommand) { session.handle(command, at: now, into: &output) }

  private mutating func nominate() {
    var writer = STUNWriter(.request, transaction: TransactionID(high: 1, low: 2), into: room)
    writer.addUsername(recipient: Array("gwuf".utf8), sender: Array("appu".utf8))
    writer.addPriority(100)
    writer.addControlling(tieBreaker: 5)
    writer.addUseCandidate()
    writer.addIntegrity(IntegrityKey(password: "gatewaypasswordgateway"))
    writer.addFingerprint()
    let count = writer.finish() ?? 0
    fromApp(UnsafeMutableRawBufferPointer(rebasing: room[..<count]))
  }

  private mutating func fromApp(_ packet: UnsafeMutableRawBufferPointer) {
    let index = session.index(of: Self.leg) ?? -1
    session.handleApp(packet, leg: index, from: Self.appAddress, route: Self.appRoute, at: now, into: &output)
  }

  private mutating func drain() {
    sent += output.packets.count
    output.packets.removeAll()
    output.events.removeAll(keepingCapacity: true)
    output.handshakes.removeAll(keepingCapacity: true)
    output.bindings.removeAll(keepingCapacity: true)
    output.sources.removeAll(keepingCapacity: true)
  }

  /// Releases the bench's own packets, but not its output buffer, so that the session's memory remains.
  mutating func forget() { (trunkPackets, appPackets) = ([], []) }

  /// Runs 20 ms of the call; returns how many packets were sent.
  mutating func step() -> UInt64 {
    let before = sent
    if number < trunkPackets.count {
      if !trunkPackets[number].isEmpty {
        trunkPackets[number].withUnsafeBytes { session.handleTrunk($0, from: Self.trunkAddress, at: now, into: &output) }
      }
      let count = appPackets[number].count
      if count > 0 {
        appPackets[number].withUnsafeBytes { room.copyMemory(from: $0) }
        fromApp(UnsafeMutableRawBufferPointer(rebasing: room[..<count]))
      }
    }
    for direction in AudioDirection.allCases where !session.skipsTick(direction) {
      session.tick(direction, at: now, into: &output)
    }
    drain()
    if let tap { while tap.pop({ _, _ in }) {} }
    now = now + .milliseconds(20)
    number += 1
    return UInt64(sent - before)
  }
}
