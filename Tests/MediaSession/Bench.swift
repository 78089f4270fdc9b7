import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineICE
import TrunklineRTP
import TrunklineSRTP
import TrunklineSTUN

@testable import TrunklineMediaSession

/// One session on virtual time with both far ends played by the test: a trunk of a stateless codec and an app with its own SRTP
/// contexts.
struct Bench: ~Copyable {
  static let id = MediaSessionID(raw: 7)
  static let leg = AppLegID(raw: 1)
  static let trunkRoute = PacketRoute(raw: 10)
  static let controlRoute = PacketRoute(raw: 11)
  static let appRoute = PacketRoute(raw: 12)
  static let trunkAddress = SocketAddress(IPAddress(192, 0, 2, 1), 30_000)
  static let appAddress = SocketAddress(IPAddress(198, 51, 100, 9), 50_000)

  var session: MediaSession
  var output = MediaOutput()
  var now = Instant(nanoseconds: 1_000_000_000)
  /// Ticks that the session let pass.
  var rested = 0
  let trunk: TrunkLegParameters
  let app: AppLegRemote

  // What came out, decoded.
  var events: [MediaEvent] = []
  var handshakes: [HandshakeRequest] = []
  var toTrunk: [Packet] = []
  var toTrunkControl: [[UInt8]] = []
  var toApp: [Packet] = []
  var toAppControl: [[UInt8]] = []
  var toAppOther: [[UInt8]] = []
  var heardByTrunk: [Int16] = []
  var heardByApp: [Int16] = []

  // The app's end.
  var appSender: SRTPSender
  var appReceiver: SRTPReceiver
  var appEncoder: AudioEncoder
  var appDecoder: AudioDecoder
  // The trunk's end, for codecs with state.
  var trunkEncoder: AudioEncoder
  var trunkDecoder: AudioDecoder
  var appSequence: UInt16 = 65_530
  var appTimestamp: UInt32 = 0xffff_f000
  var appSSRC: UInt32 = 0x9999
  var trunkSequence: UInt16 = 100
  var trunkTimestamp: UInt32 = 5_000
  let keys: SRTPKeyMaterial

  struct Packet {
    var header: RTPHeader
    var payload: [UInt8]
    var destination: SocketAddress
    var at: Instant
  }

  static func keyMaterial(_ seed: UInt8 = 1, _ profile: SRTPProfile = .aeadAES128GCM) -> SRTPKeyMaterial {
    func master(_ base: UInt8) -> SRTPMasterKey {
      SRTPMasterKey(
        key: (0..<profile.keyBytes).map { base &+ UInt8($0) }, salt: (0..<profile.saltBytes).map { base &+ 100 &+ UInt8($0) })
    }
    return SRTPKeyMaterial(profile: profile, client: master(seed), server: master(seed &+ 50))
  }

  init(
    app appEncoding: AudioEncoding = .opus, trunk trunkEncoding: AudioEncoding = .pcmu, telephoneEvents: Bool = true,
    trunkTakesEvents: Bool? = nil,
    packetTime: Int = 20, policy: SourcePolicy = .signalledIP, peers: [IPNetwork] = [], comfortNoise: UInt8? = nil,
    preferences: OpusPreferences = OpusPreferences(), band: AudioBand = .narrowband, id: MediaSessionID = Bench.id,
    adjust: (inout TrunkLegParameters) -> Void = { _ in }
  ) throws {
    var trunk = TrunkLegParameters(
      remote: Self.trunkAddress, encoding: trunkEncoding, payloadType: trunkEncoding.row.payloadType,
      telephoneEventPayloadType: trunkTakesEvents ?? telephoneEvents ? 101 : nil, packetTimeMilliseconds: packetTime,
      sourcePolicy: policy,
      mediaPeers: peers, comfortNoisePayloadType: comfortNoise)
    adjust(&trunk)
    self.trunk = trunk
    var app = AppLegRemote(
      generation: 1, ufrag: "appu", password: "apppasswordapppassword", fingerprintAlgorithm: "sha-256",
      fingerprint: [UInt8](repeating: 9, count: 32), encoding: appEncoding, payloadType: appEncoding == .opus ? 111 : 0,
      telephoneEvent48: telephoneEvents ? 110 : nil, telephoneEvent8: telephoneEvents ? 126 : nil)
    app.opus = preferences
    self.app = app
    keys = Self.keyMaterial()
    let keys = self.keys
    let sender = try SRTPSender(keys.profile, keys.client)
    let receiver = try SRTPReceiver(keys.profile, keys.server)
    // As browsers do: with copies from the start.
    let encoder = try AudioEncoder(
      encoding: appEncoding, band: band,
      control: EncoderControl(bitrate: 28_000, repairBitrate: 28_000, expectedLossPercent: 5))
    let decoder = try AudioDecoder(encoding: appEncoding, band: band)
    let trunkEncoder = try AudioEncoder(
      encoding: trunkEncoding, band: band, control: EncoderControl(bitrate: 40_000, repairBitrate: 40_000))
    let trunkDecoder = try AudioDecoder(encoding: trunkEncoding, band: band)
    session = MediaSession(
      id: id,
      setup: MediaSessionSetup(trunkRoute: Self.trunkRoute, trunkControlRoute: Self.controlRoute, random: .seeded(42)))
    appSender = sender
    appReceiver = receiver
    appEncoder = encoder
    appDecoder = decoder
    self.trunkEncoder = trunkEncoder
    self.trunkDecoder = trunkDecoder
  }

  // MARK: Steps of a call

  mutating func command(_ command: MediaCommand) {
    session.handle(command, at: now, into: &output)
    collect()
  }

  /// Leg added, described, nominated, keys there; trunk set. Nothing is connected.
  mutating func prepare() {
    command(.addAppLeg(Self.id, Self.leg, AppLegLocal(ufrag: "gwuf", password: "gatewaypasswordgateway", ssrc: 0xabcd_0001)))
    command(.setAppRemote(Self.id, Self.leg, app, newLocal: nil, newAssociation: true))
    check(nominate: true)
    complete(keys)
    command(.setTrunk(Self.id, trunk))
  }

  /// An incoming call up to the 200 and the device's play-out.
  mutating func connect(keeps: Bool = false) {
    prepare()
    command(.lockWinner(Self.id, Self.leg))
    command(.connect(Self.id, Self.leg, keepsFirstWords: keeps))
  }

  mutating func complete(_ keys: SRTPKeyMaterial, association: UInt32 = 0) {
    let key = HandshakeKey(session: Self.id, leg: Self.leg, association: association)
    session.handle(.completed(key, keys), at: now, into: &output)
    collect()
  }

  mutating func check(
    nominate: Bool, from address: SocketAddress = Bench.appAddress, ufrag: String = "gwuf", sender: String = "appu",
    password: String = "gatewaypasswordgateway"
  ) {
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 256, alignment: 8)
    defer { room.deallocate() }
    var writer = STUNWriter(.request, transaction: TransactionID(high: 1, low: UInt64(now.nanoseconds)), into: room)
    writer.addUsername(recipient: Array(ufrag.utf8), sender: Array(sender.utf8))
    writer.addPriority(100)
    writer.addControlling(tieBreaker: 5)
    if nominate { writer.addUseCandidate() }
    writer.addIntegrity(IntegrityKey(password: password))
    writer.addFingerprint()
    let count = writer.finish() ?? 0
    appDatagram(UnsafeMutableRawBufferPointer(rebasing: room[..<count]), from: address)
  }

  mutating func appDatagram(_ packet: UnsafeMutableRawBufferPointer, from address: SocketAddress = Bench.appAddress) {
    session.handleApp(packet, leg: session.index(of: Self.leg) ?? -1, from: address, route: Self.appRoute, at: now, into: &output)
    collect()
  }

  // MARK: Media of both ends

  /// 20 ms of the trunk's talk.
  mutating func trunkSays(_ samples: [Int16], from source: SocketAddress = Bench.trunkAddress) {
    guard trunk.encoding.row.isStateless else { return trunkSaysCoded(samples) }
    var octets = [UInt8](repeating: 0, count: samples.count * trunk.encoding.row.octetsPerUnit)
    var span = octets.mutableSpan
    _ = trunk.encoding.encodeSamples(samples.span, into: &span)
    trunkSends(octets, payloadType: trunk.payloadType, from: source)
    trunkTimestamp &+= UInt32(samples.count)
  }

  private mutating func trunkSaysCoded(_ samples: [Int16]) {
    var octets = [UInt8](repeating: 0, count: 1_275)
    var span = octets.mutableSpan
    let count = (try? trunkEncoder.encode(samples.span, into: &span)) ?? 0
    trunkSends(Array(octets[..<count]), payloadType: trunk.payloadType)
    trunkTimestamp &+= UInt32(trunkEncoder.units(ofSamples: samples.count))
  }

  mutating func trunkSends(
    _ payload: [UInt8], payloadType: UInt8, timestamp: UInt32? = nil, marker: Bool = false, ssrc: UInt32 = 0x1234,
    from source: SocketAddress = Bench.trunkAddress
  ) {
    let packet = rtp(payload, payloadType, trunkSequence, timestamp ?? trunkTimestamp, ssrc, marker)
    trunkSequence &+= 1
    packet.withUnsafeBytes { session.handleTrunk($0, from: source, at: now, into: &output) }
    collect()
  }

  /// 20 ms of the app's talk.
  mutating func appSays(_ samples: [Int16]) throws {
    var octets = [UInt8](repeating: 0, count: 400)
    var span = octets.mutableSpan
    let count = try appEncoder.encode(samples.span, into: &span)
    try appSends(Array(octets[..<count]), payloadType: app.payloadType)
    appTimestamp &+= UInt32(appEncoder.units(ofSamples: samples.count))
  }

  mutating func appSends(_ payload: [UInt8], payloadType: UInt8, timestamp: UInt32? = nil, from: SocketAddress = Bench.appAddress)
    throws
  {
    let packet = rtp(payload, payloadType, appSequence, timestamp ?? appTimestamp, appSSRC, false)
    appSequence &+= 1
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1_600, alignment: 8)
    defer { room.deallocate() }
    room.copyBytes(from: packet)
    var count = packet.count
    try appSender.protect(room, count: &count)
    appDatagram(UnsafeMutableRawBufferPointer(rebasing: room[..<count]), from: from)
  }

  /// A report of the app, protected: a sender's, if it says how many packets it has sent.
  mutating func appReports(_ block: ReportBlock, sent: UInt32? = nil) throws {
    let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 256, alignment: 8)
    defer { room.deallocate() }
    var datagram = MutableSpan(_unsafeElements: UnsafeMutableBufferPointer(rebasing: room.bindMemory(to: UInt8.self).prefix(200)))
    var writer = RTCPWriter()
    let sender = sent.map {
      SenderInfo(ntp: NTPTimestamp(raw: 1 << 40), timestamp: RTPTimestamp(raw: appTimestamp), packets: $0, octets: $0 &* 60)
    }
    #expect(writer.report(from: SSRC(raw: appSSRC), sender: sender, block: block, into: &datagram))
    var count = writer.count
    try appSender.protectRTCP(room, count: &count)
    appDatagram(UnsafeMutableRawBufferPointer(rebasing: room[..<count]))
  }

  private func rtp(_ payload: [UInt8], _ type: UInt8, _ sequence: UInt16, _ timestamp: UInt32, _ ssrc: UInt32, _ marker: Bool)
    -> [UInt8]
  {
    let header = RTPHeader(
      payloadType: type, marker: marker, sequence: SequenceNumber(raw: sequence), timestamp: RTPTimestamp(raw: timestamp),
      ssrc: SSRC(raw: ssrc))
    var packet = [UInt8](repeating: 0, count: 12)
    var span = packet.mutableSpan
    _ = header.write(into: &span)
    return packet + payload
  }

  /// One tick of each direction, unless the session lets it pass as on a media thread; then 20 ms go by.
  mutating func tick() {
    for direction in AudioDirection.allCases {
      if !session.skipsTick(direction) {
        session.tick(direction, at: now, into: &output)
      } else if direction == .appToTrunk {
        rested += 1
      }
    }
    collect()
    now = now + .milliseconds(20)
  }

  /// `frames` × 20 ms in which the given ends talk (nil: nothing is sent).
  mutating func run(frames: Int, trunk: (Int) -> [Int16]? = { _ in nil }, app: (Int) -> [Int16]? = { _ in nil }) throws {
    for index in 0..<frames {
      if let samples = trunk(index) { trunkSays(samples) }
      if let samples = app(index) { try appSays(samples) }
      tick()
    }
  }

  // MARK: What came out

  mutating func collect() {
    for index in 0..<output.packets.count {
      let entry = output.packets[entry: index]
      let bytes = output.packets[bytes: index]
      switch entry.route {
      case Self.trunkRoute: takeTrunk(Array(bytes), entry.destination)
      case Self.controlRoute: toTrunkControl.append(Array(bytes))
      default: takeApp(bytes, entry)
      }
    }
    output.packets.removeAll()
    events += output.events
    output.events.removeAll()
    handshakes += output.handshakes
    output.handshakes.removeAll()
    output.bindings.removeAll()
    output.sources.removeAll()
  }

  private mutating func takeTrunk(_ bytes: [UInt8], _ destination: SocketAddress) {
    guard let header = try? RTPHeader(parsing: bytes.span) else {
      Issue.record("no RTP went to the trunk")
      return
    }
    let payload = Array(bytes[header.length...])
    toTrunk.append(Packet(header: header, payload: payload, destination: destination, at: now))
    guard header.payloadType == trunk.payloadType else { return }
    guard trunk.encoding.row.isStateless else {
      var samples = [Int16](repeating: 0, count: 1_920)
      var span = samples.mutableSpan
      let length = trunkDecoder.decode(payload.span, into: &span)
      return heardByTrunk += samples[..<length]
    }
    var samples = [Int16](repeating: 0, count: payload.count / trunk.encoding.row.octetsPerUnit)
    var span = samples.mutableSpan
    _ = trunk.encoding.decodeSamples(payload.span, into: &span)
    heardByTrunk += samples
  }

  private mutating func takeApp(_ bytes: UnsafeMutableRawBufferPointer, _ entry: OutgoingBatch.Entry) {
    var count = bytes.count
    switch PacketKind(Array(bytes).span) {
    case .rtp:
      guard (try? appReceiver.unprotect(bytes, count: &count)) != nil else { return unopened() }
    case .rtcp:
      guard (try? appReceiver.unprotectRTCP(bytes, count: &count)) != nil else { return unopened() }
      return toAppControl.append(Array(bytes[..<count]))
    default: return toAppOther.append(Array(bytes))
    }
    let clear = Array(bytes[..<count])
    guard let header = try? RTPHeader(parsing: clear.span) else {
      Issue.record("no RTP went to the app")
      return
    }
    let payload = Array(clear[header.length...])
    toApp.append(Packet(header: header, payload: payload, destination: entry.destination, at: now))
    guard header.payloadType == app.payloadType else { return }
    var samples = [Int16](repeating: 0, count: 1_920)
    var span = samples.mutableSpan
    let length = appDecoder.decode(payload.span, into: &span)
    heardByApp += samples[..<length]
  }
}

private func unopened() { Issue.record("the app cannot open a packet") }

/// A tone of 20 ms frames, continuous from frame to frame.
func tone(_ frame: Int, hertz: Double = 440, amplitude: Double = 8_000) -> [Int16] {
  // Without a closure: tests are not optimised, and `map` took a third of the time of those that send many packets.
  var samples = quiet
  var k = 0
  while k < 160 {
    let phase = Double(frame * 160 + k) * hertz / 8_000
    samples[k] = Int16(amplitude * sine(phase - phase.rounded(.down)))
    k += 1
  }
  return samples
}

/// The sine of a phase in turns, 0…1.
private func sine(_ turns: Double) -> Double {
  let x = (turns - 0.5) * 2  // −1…1, sin(π(x+1)) = −sin(πx)
  return -(4 * x * (1 - abs(x))) * (0.775 + 0.225 * abs(4 * x * (1 - abs(x))))
}

let quiet = [Int16](repeating: 0, count: 160)

/// Real speech at 8 kHz in 20 ms frames.
let speech: [[Int16]] = {
  let octets = DemoSpeech.telephone
  var samples = [Int16](repeating: 0, count: octets.count)
  var span = samples.mutableSpan
  _ = G711.decode(octets.span, law: .mu, into: &span)
  return stride(from: 0, to: samples.count - 159, by: 160).map { Array(samples[$0..<$0 + 160]) }
}()

/// Root mean square.
func level(_ samples: some Collection<Int16>) -> Double {
  samples.isEmpty ? 0 : (samples.reduce(0.0) { $0 + Double($1) * Double($1) } / Double(samples.count)).squareRoot()
}

extension [Bench.Packet] {
  /// Sequence numbers without a gap and timestamps that grow by at least nothing.
  var isContinuous: Bool {
    zip(self, dropFirst()).allSatisfy { $1.header.sequence.raw == $0.header.sequence.raw &+ 1 }
  }
}
