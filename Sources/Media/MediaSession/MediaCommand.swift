import TrunklineAudioCodecs
import TrunklineBytes
public import TrunklineRTP

/// The media of one bridged call: a trunk leg and the app legs of every ringing device. Chosen by control, never reused in a
/// process.
public struct MediaSessionID: Hashable, Sendable {
  public let raw: UInt64
  public init(raw: UInt64) { self.raw = raw }
}

/// One device's app leg within a media session; a restart, or another preparation under a new `sid`, replaces the remote
/// description, not the id.
public struct AppLegID: Hashable, Sendable {
  public let raw: UInt32
  public init(raw: UInt32) { self.raw = raw }
}

/// Which RTP sources a trunk leg accepts (docs/design/media-plane.md).
public enum SourcePolicy: String, Sendable, CaseIterable { case signalledIP = "signalled_ip", symmetric, strict }

/// The trunk leg as agreed by offer/answer.
public struct TrunkLegParameters: Sendable {
  /// The destination of our RTP: the address of the peer's SDP. RTCP goes to port + 1.
  public var remote: SocketAddress
  /// The encoding that we send, under the peer's payload type.
  public var encoding: AudioEncoding
  public var payloadType: UInt8
  /// Payload type of telephone-event as we send it, if negotiated, and its clock; nil: the codec's.
  public var telephoneEventPayloadType: UInt8?
  public var telephoneEventClockRateHz: UInt32?
  /// Formats that may be received at any time, by payload type; empty: the formats that we send, under the same numbers.
  public var incoming: [NumberedFormat] = []
  public var packetTimeMilliseconds: Int
  /// False while the peer holds us (`sendonly`, `inactive`, 0.0.0.0): nothing is sent.
  public var sends: Bool
  /// False while the peer does not send: its silence is not a loss.
  public var receives: Bool
  public var sourcePolicy: SourcePolicy
  /// Further networks whose RTP is the trunk's (`media_peers`).
  public var mediaPeers: [IPNetwork]
  /// For `symmetric`: the networks of the trunk's SIP (`peers`), and the addresses of this call's signalling.
  public var peers: [IPNetwork] = []
  public var signalling: [IPAddress] = []
  /// RFC 3389 comfort noise at the audio's clock rate, if negotiated: it then describes pauses, which are sent as samples
  /// otherwise.
  public var comfortNoisePayloadType: UInt8?
  public var digits: DigitTransport = .auto
  /// The destination of our RTCP if it is not port + 1 (RFC 3605).
  public var remoteControl: SocketAddress?
  /// The peer asked for VoIP metrics blocks (RFC 3611 §5, `a=rtcp-xr:voip-metrics`).
  public var wantsVoIPMetrics = false
  /// The audio that the trunk hears while the app holds.
  public var holdAudio = HoldAudio.silence
  /// Keys if RTP and RTCP are protected; nil is plain RTP.
  public var protection: TrunkProtection?
  /// The peer's preferences for our Opus.
  public var opus = OpusPreferences()

  public init(
    remote: SocketAddress, encoding: AudioEncoding, payloadType: UInt8, telephoneEventPayloadType: UInt8? = nil,
    packetTimeMilliseconds: Int = 20, sends: Bool = true, receives: Bool = true, sourcePolicy: SourcePolicy = .signalledIP,
    mediaPeers: [IPNetwork] = [], comfortNoisePayloadType: UInt8? = nil
  ) {
    self.comfortNoisePayloadType = comfortNoisePayloadType
    (self.remote, self.encoding, self.payloadType) = (remote, encoding, payloadType)
    (self.telephoneEventPayloadType, self.packetTimeMilliseconds) = (telephoneEventPayloadType, packetTimeMilliseconds)
    (self.sends, self.receives, self.sourcePolicy, self.mediaPeers) = (sends, receives, sourcePolicy, mediaPeers)
  }

  /// One codec and one event in both directions.
  var symmetricFormats: [NumberedFormat] {
    let clock = telephoneEventClockRateHz ?? encoding.clockRateHz
    let event = telephoneEventPayloadType.map { NumberedFormat($0, .telephoneEvent(clockRateHz: clock)) }
    return [NumberedFormat(payloadType, .audio(encoding))] + [event].compactMap { $0 }
  }
}

/// Our half of an app leg, fixed when the offer (or the answer to `call.start`) is made.
public struct AppLegLocal: Sendable {
  public var ufrag: String
  public var password: String
  /// The SSRC of our stream to this device.
  public var ssrc: UInt32
  /// `ice-lite` gateway legs are DTLS servers; our own phone is a DTLS client.
  public init(ufrag: String, password: String, ssrc: UInt32) {
    (self.ufrag, self.password, self.ssrc) = (ufrag, password, ssrc)
  }
}

/// The device's half, from its SDP. A higher `generation` is an ICE restart: the old pair is received for 5 s more.
public struct AppLegRemote: Sendable {
  public var generation: Int
  public var ufrag: String
  public var password: String
  /// `sha-256`, `sha-384` or `sha-512`, lower case, and its bytes.
  public var fingerprintAlgorithm: String
  public var fingerprint: [UInt8]
  public var encoding: AudioEncoding
  public var payloadType: UInt8
  /// telephone-event payload types at 48000 and at 8000 Hz, if negotiated.
  public var telephoneEvent48: UInt8?
  public var telephoneEvent8: UInt8?
  public var opus = OpusPreferences()
  /// The peer answered `setup:passive`: we are the DTLS client.
  public var isDTLSServer = false

  public init(
    generation: Int, ufrag: String, password: String, fingerprintAlgorithm: String, fingerprint: [UInt8], encoding: AudioEncoding,
    payloadType: UInt8, telephoneEvent48: UInt8? = nil, telephoneEvent8: UInt8? = nil
  ) {
    (self.generation, self.ufrag, self.password) = (generation, ufrag, password)
    (self.fingerprintAlgorithm, self.fingerprint) = (fingerprintAlgorithm, fingerprint)
    (self.encoding, self.payloadType) = (encoding, payloadType)
    (self.telephoneEvent48, self.telephoneEvent8) = (telephoneEvent48, telephoneEvent8)
  }
}

/// The preferences of the receiver of our Opus (RFC 7587 §6.1).
public struct OpusPreferences: Sendable, Equatable {
  /// Silence may be left out: `usedtx=1`. Otherwise the stream has no gaps.
  public var acceptsPauses: Bool
  /// Packets may carry FEC; only `useinbandfec=0` forbids it.
  public var acceptsRepair: Bool
  /// `maxaveragebitrate` in bit/s.
  public var maximumBitrate: Int?
  /// All packets of one length: `cbr=1`.
  public var isConstantRate: Bool
  /// `maxplaybackrate` in Hz: below 16000 the receiver is narrowband.
  public var maximumPlaybackRateHz: Int?

  public init(acceptsPauses: Bool = false, acceptsRepair: Bool = true, maximumBitrate: Int? = nil, isConstantRate: Bool = false) {
    (self.acceptsPauses, self.acceptsRepair, self.maximumBitrate) = (acceptsPauses, acceptsRepair, maximumBitrate)
    self.isConstantRate = isConstantRate
  }

  /// The widest band that the receiver can play.
  public var band: AudioBand { (maximumPlaybackRateHz ?? 48_000) < 16_000 ? .narrowband : .wideband }

  /// Encoder settings within the receiver's limits, and never below libopus's minimum.
  public func control(_ band: AudioBand) -> EncoderControl {
    let plain = band == .wideband ? EncoderControl.plainWideBitrate : EncoderControl.plainBitrate
    let most = max(6_000, maximumBitrate ?? EncoderControl.repairBitrate)
    return EncoderControl(
      bitrate: min(most, plain), repairBitrate: min(most, EncoderControl.repairBitrate),
      mayRepair: acceptsRepair)
  }
}

/// How digits of a trunk are detected and sent.
public enum DigitTransport: String, Sendable, CaseIterable {
  /// telephone-event if it was negotiated, else tones.
  case auto
  /// telephone-event only; tones are treated as audio.
  case rfc4733
  /// Tones only, whatever was negotiated.
  case inband
}

/// Digits to play to the trunk as telephone-event (RFC 4733).
public struct DigitRequest: Sendable {
  /// `0-9 A-D * #`, at most 64.
  public var digits: String
  public var durationMilliseconds: Int
  public var gapMilliseconds: Int
  public init(digits: String, durationMilliseconds: Int = 160, gapMilliseconds: Int = 80) {
    (self.digits, self.durationMilliseconds, self.gapMilliseconds) = (digits, durationMilliseconds, gapMilliseconds)
  }
}

/// Control → media thread. Commands for one session arrive in order; one for an unknown session is counted and ignored.
public enum MediaCommand: Sendable {
  /// Adds a device's leg: STUN to `local.ufrag` is answered from now on.
  case addAppLeg(MediaSessionID, AppLegID, AppLegLocal)
  /// The device's description, first or by restart; `newAssociation` requests a fresh DTLS handshake (another fingerprint, a new
  /// `sid`). A restart with the same fingerprint keeps keys and association.
  case setAppRemote(MediaSessionID, AppLegID, AppLegRemote, newLocal: AppLegLocal?, newAssociation: Bool)
  case removeAppLeg(MediaSessionID, AppLegID)
  /// The trunk leg as negotiated, first or by re-INVITE. Until then trunk RTP is dropped.
  case setTrunk(MediaSessionID, TrunkLegParameters)
  /// This device has the call (`ok{won}`): its audio is kept for the trunk from now on, never before (privacy). Incoming calls
  /// only: on an outgoing call nothing is kept app → trunk and `connect` alone names the leg.
  case lockWinner(MediaSessionID, AppLegID)
  /// Trunk audio may go to the app leg before the 200: early media of an outgoing call.
  case openEarly(MediaSessionID, AppLegID)
  /// The 200 was sent or received: kept app audio is played, audio flows both ways. Trunk audio is kept (≤ 1.5 s) until
  /// `.playoutActive` when `keepsFirstWords`.
  case connect(MediaSessionID, AppLegID, keepsFirstWords: Bool)
  /// `media.active{playout}`: kept trunk audio is played at ≤ 1.25 × speed, then live.
  case playoutActive(MediaSessionID)
  /// App → trunk is silenced (comfort noise or silence is sent); consent and RTCP continue.
  case mute(MediaSessionID, Bool)
  /// Local hold: neither end hears the other; the trunk hears its `holdAudio`.
  case hold(MediaSessionID, Bool)
  case sendDigits(MediaSessionID, DigitRequest)
  /// Connects a diverted call: from now on the trunk of `to`, a session of the same thread, hears this session's trunk, and no
  /// app does. With `connects` the call is answered: digits, reports and the silence watch start.
  case bridge(MediaSessionID, to: MediaSessionID, connects: Bool)
  /// Puts the call into this group, with others of the same thread: its trunk hears theirs. Nil: removes it from its group.
  case group(MediaSessionID, MediaGroupID?)
  /// Plays this to the trunk in place of an app, at once and from its beginning; `.played` follows its end. Nil: stops it,
  /// without `.played`.
  case play(MediaSessionID, Announcement?)
  /// Copies the audio of both directions to this tap from now on; nil: stops.
  case tap(MediaSessionID, AudioTap?)
  /// Connects the trunk to this stream in place of an app: the call is answered.
  case stream(MediaSessionID, AudioStream)
  /// Ends the session: sockets and state are freed, `.closed` with the final statistics follows, once.
  case close(MediaSessionID)
}

extension MediaCommand {
  /// The session a command is for.
  public var session: MediaSessionID {
    switch self {
    case .addAppLeg(let id, _, _), .setAppRemote(let id, _, _, _, _), .removeAppLeg(let id, _), .setTrunk(let id, _),
      .lockWinner(let id, _),
      .openEarly(let id, _), .connect(let id, _, _), .playoutActive(let id), .mute(let id, _), .hold(let id, _),
      .sendDigits(let id, _), .bridge(let id, _, _), .group(let id, _), .play(let id, _), .tap(let id, _), .stream(let id, _),
      .close(let id):
      id
    }
  }
}
