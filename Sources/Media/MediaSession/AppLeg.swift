import TrunklineBytes
import TrunklineICE
import TrunklineRTP
import TrunklineSRTP

/// The SRTP contexts of one DTLS association, both directions.
struct LegSecurity: ~Copyable {
  var sender: SRTPSender
  var receiver: SRTPReceiver

  /// Each side protects with the keys of its DTLS role (RFC 5764 §4.2).
  init(_ keys: SRTPKeyMaterial, isClient: Bool, seed: UInt64) throws(SRTPError) {
    let (own, peers) = isClient ? (keys.client, keys.server) : (keys.server, keys.client)
    let sender = try SRTPSender(keys.profile, own)
    let receiver = try SRTPReceiver(keys.profile, peers, seed: seed)
    self.sender = sender
    self.receiver = receiver
  }
}

/// One device's leg: ICE, the keys, and the numbers of both streams. The audio itself is the session's, for the winner only.
///
/// | event | pair | keys |
/// |---|---|---|
/// | authenticated STUN | the address may send DTLS and SRTP | – |
/// | … with USE-CANDIDATE | sent to from now on | – |
/// | SRTP from an address that was checked since the pair fell silent, a second ago | sent to from now on | – |
/// | five packets of SRTP in a row from an address that was not, the pair silent for 2.5 s | sent to from now on | – |
/// | handshake complete | – | wait for the fingerprint |
/// | fingerprint matches | – | installed; beside present keys: pending until their first valid packet |
/// | fingerprint differs | – | the leg failed |
/// | restart, same fingerprint | new credentials; the old pair is received for 5 s more | stay |
struct AppLeg: ~Copyable {
  let id: AppLegID
  // Fields that every packet touches come first, in as few cache lines as possible.
  /// The route of our packets: the nominated pair's, before a nomination the last validated address's.
  var route = PacketRoute(raw: -1)
  var encoding = AudioEncoding.opus
  /// 255 until the remote description is known.
  var payloadType: UInt8 = 255
  var payloadLength = PayloadLength(.opus)
  var telephoneEvent48: UInt8 = 255
  var telephoneEvent8: UInt8 = 255
  var isNominated = false
  var isSilent = false
  var failed = false
  var address: SocketAddress?
  var lastAuthenticated: Instant?
  /// When the last valid packet from `address` arrived.
  var lastReceived = Instant.zero
  /// The address of the last valid packets that were not from `address`, and how many came in a row.
  var elsewhere: (address: SocketAddress, count: Int)?
  /// The SSRC that was reported in `MediaOutput.sources`.
  var saidSource: UInt32?
  var pending: LegSecurity?
  var security: LegSecurity?
  var stream: OutgoingStream
  var budget = PacketBudget()
  /// Duration of the last audio packet.
  var packetMilliseconds = Double(Frame.milliseconds)
  var bytesReceived: UInt64 = 0
  var dropped: UInt64 = 0
  var reception = ReceiverStatistics(clockRateHz: 48_000)
  var reports = ReportState(interval: Limits.appReportInterval)

  /// The SRTP profile of the keys that were installed last.
  var profileName: String?
  /// Counts the DTLS associations.
  var association: UInt32 = 0
  /// Our ClientHello of this association was requested.
  var isHandshakeStarted = false
  var handshakeBudget = RateLimit(
    perSecond: Limits.handshakeDatagramsPerSecond, burst: Limits.handshakeDatagramBurst)
  /// The source of the last DTLS datagram, for the answer.
  var handshakeRoute = PacketRoute(raw: -1)
  var handshakeAddress: SocketAddress?
  var local: AppLegLocal
  var remote: AppLegRemote?
  /// Also answers the checks of the old pair after a restart.
  var agent: LiteAgent
  /// Local ufrags of all generations that may still be checked.
  private(set) var ufrags: [String]

  init(_ id: AppLegID, _ local: AppLegLocal, sequence: UInt16, timestamp: UInt32) {
    self.id = id
    self.local = local
    agent = LiteAgent(ufrag: local.ufrag, password: local.password)
    ufrags = [local.ufrag]
    stream = OutgoingStream(ssrc: local.ssrc, sequence: sequence, timestamp: timestamp, clockRateHz: 48_000)
  }

  var isReady: Bool { security != nil && address != nil && payloadType != 255 }

  /// Copies the remote description's codec and payload types to the fields that packets are compared with.
  mutating func apply(_ remote: AppLegRemote) {
    self.remote = remote
    if encoding != remote.encoding || payloadType == 255 {
      reception = ReceiverStatistics(clockRateHz: remote.encoding.clockRateHz)
      stream.unitsPerFrame = remote.encoding.clockRateHz / 50
    }
    (encoding, payloadType) = (remote.encoding, remote.payloadType)
    payloadLength = PayloadLength(encoding)
    (telephoneEvent48, telephoneEvent8) = (remote.telephoneEvent48 ?? 255, remote.telephoneEvent8 ?? 255)
  }

  /// Applies the ICE credentials of the description: the first one, a restart with new local ones, or another session's that
  /// starts over.
  mutating func applyCredentials(_ remote: AppLegRemote, newLocal: AppLegLocal?, startsOver: Bool) {
    if startsOver {
      agent.startOver(remoteUfrag: remote.ufrag, generation: remote.generation)
      (address, isNominated) = (nil, false)
    } else if let newLocal {
      local = newLocal
      ufrags = ufrags.suffix(Limits.generations - 1) + [newLocal.ufrag]
      agent.restart(
        ufrag: newLocal.ufrag, password: newLocal.password, remoteUfrag: remote.ufrag, generation: remote.generation)
    } else {
      agent.setRemote(ufrag: remote.ufrag, generation: agent.generation)
    }
  }

  /// The audio band that both ends of the leg can carry; nil until the remote description is known.
  var band: AudioBand? {
    guard payloadType != 255 else { return nil }
    return encoding == .opus ? min(encoding.band, remote?.opus.band ?? .wideband) : encoding.band
  }

  /// Whether silence is not sent. G.711 has no sign for a pause that apps would understand, and costs nothing to encode.
  var leavesSilenceOut: Bool { encoding == .opus && remote?.opus.acceptsPauses ?? false }

  /// The telephone-event format that is sent: on the clock of our audio (RFC 4733 §2.1), else on the other one; nil without one.
  var telephoneEvent: (payloadType: UInt8, clockRateHz: UInt32)? {
    let (wide, narrow) = (
      telephoneEvent48 == 255 ? nil : (telephoneEvent48, UInt32(48_000)),
      telephoneEvent8 == 255 ? nil : (telephoneEvent8, UInt32(8_000))
    )
    return encoding.clockRateHz == 48_000 ? wide ?? narrow : narrow
  }
}
