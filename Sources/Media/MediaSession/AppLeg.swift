import TrunklineBytes
import TrunklineICE
import TrunklineRTP

/// One device's leg: its ICE pair (`AppPath`), its keys (`LegKeys`), its handshakes, and the numbers of both streams. The audio
/// itself is the session's, for the winner only.
///
/// | event | pair | keys |
/// |---|---|---|
/// | authenticated STUN | the address may send DTLS and SRTP | – |
/// | handshake complete | – | wait for the fingerprint |
/// | fingerprint matches | – | `install` |
/// | fingerprint differs | – | the leg failed |
/// | restart, same fingerprint | new credentials; the old pair is received for 5 s more | stay |
struct AppLeg: ~Copyable {
  let id: AppLegID
  // Fields that every packet touches come first, in as few cache lines as possible.
  private(set) var encoding = AudioEncoding.opus
  /// 255 until the remote description is known.
  private(set) var payloadType: UInt8 = 255
  private(set) var payloadLength = PayloadLength(.opus)
  private(set) var telephoneEvent48: UInt8 = 255
  private(set) var telephoneEvent8: UInt8 = 255
  var path = AppPath()
  var liveness = Liveness()
  /// The SSRC that was reported in `MediaOutput.sources`.
  private var reportedSource: UInt32?
  var keys = LegKeys()
  var stream: OutgoingStream
  var budget = PacketBudget()
  var received = ReceivedTotals()
  var reception = ReceiverStatistics(clockRateHz: 48_000)
  var reports = ReportState(interval: Limits.appReportInterval)

  var handshake = LegHandshake()
  private var local: AppLegLocal
  private(set) var remote: AppLegRemote?
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

  var isReady: Bool { keys.isInstalled && path.address != nil && payloadType != 255 }

  /// Whether audio came under an SSRC that the receiver does not know as this leg's. HOT
  @inline(__always) mutating func isNewSource(_ ssrc: UInt32) -> Bool {
    guard reportedSource != ssrc else { return false }
    reportedSource = ssrc
    return true
  }

  /// Copies the remote description's codec and payload types to the fields that packets are compared with.
  mutating func apply(_ remote: AppLegRemote) {
    self.remote = remote
    if encoding != remote.encoding || payloadType == 255 {
      reception = ReceiverStatistics(clockRateHz: remote.encoding.clockRateHz)
      stream.unitsPerFrame = remote.encoding.clockRateHz / 50
    }
    encoding = remote.encoding
    payloadType = remote.payloadType
    payloadLength = PayloadLength(encoding)
    telephoneEvent48 = remote.telephoneEvent48 ?? 255
    telephoneEvent8 = remote.telephoneEvent8 ?? 255
  }

  /// Applies the ICE credentials of the description: the first one, a restart with new local ones, or another session's that
  /// starts over.
  mutating func applyCredentials(_ remote: AppLegRemote, newLocal: AppLegLocal?, startsOver: Bool) {
    if startsOver {
      agent.startOver(remoteUfrag: remote.ufrag, generation: remote.generation)
      path.startOver()
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
