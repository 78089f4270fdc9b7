import TrunklineAudioCodecs
public import TrunklineBytes
public import TrunklineDTLS
import TrunklineICE
import TrunklineMediaSession
public import TrunklineRTP
import TrunklineSDP
import TrunklineSRTP
import TrunklineSTUN
public import TrunklineTURN

/// The media of one app call: full ICE, DTLS in the client's role, SRTP, a jitter buffer and a codec, without sockets or a clock.
/// Give it datagrams, 20 ms of audio at a time, and `handleTimeout` when it is due; it writes datagrams to `Output`. One thread.
/// Only OpenSSL has a clock of its own (retransmission). After the set-up a packet or a frame allocates nothing.
public struct ClientMedia: ~Copyable {
  public struct Configuration: Sendable {
    /// Addresses of our sockets; each is a host candidate.
    public var localAddresses: [SocketAddress]
    public var codecs: [AudioEncoding]
    /// The band of the samples that `play` writes and `send(captured:)` reads. The call has the narrowest of this band, the
    /// codec's and the gateway's.
    public var band = AudioBand.wideband
    /// On a network without IPv4: the way to the gateway's IPv4 candidates.
    public var nat64: NAT64?
    /// Requested to allocate a relay if no other path is found soon (docs/operate/nat.md#turn).
    public var relays: [TURNServer] = []
    public var identity: DTLSIdentity
    /// False for an owner that codes audio itself: received payloads are left unchanged in `Output.frames`, payloads to send are
    /// given to `send(encoded:)`; `play` and `send(captured:)` are not used.
    public var codesAudio = true
    let fingerprint: FingerprintAttribute

    /// Nil only if the identity's fingerprint is of an algorithm that SDP does not carry, which OpenSSL cannot give us.
    public init?(localAddresses: [SocketAddress], identity: DTLSIdentity, codecs: [AudioEncoding] = AudioEncoding.ofApps) {
      guard let algorithm = FingerprintAttribute.Algorithm(rawValue: identity.fingerprint.algorithm.rawValue),
        let fingerprint = FingerprintAttribute(algorithm, identity.fingerprint.bytes)
      else { return nil }
      (self.localAddresses, self.codecs, self.identity, self.fingerprint) = (localAddresses, codecs, identity, fingerprint)
    }
  }

  /// The output of a call's media. Keep one and empty it by `removeAll`: then packets allocate nothing.
  public struct Output: Sendable {
    struct Datagram: Sendable {
      let octets: Range<Int>
      let local: SocketAddress
      let remote: SocketAddress
    }
    /// The payload of an authentic RTP packet.
    public struct Frame: Sendable {
      public var header: RTPHeader
      public var payload: [UInt8]
    }
    private var datagrams: [Datagram] = []
    /// The octets of all datagrams, one after another.
    private var octets: [UInt8] = []
    private var relayed: [(octets: Range<Int>, connection: Int)] = []
    /// Connections to TURN servers to open, by number; and those to close, once their data has been sent.
    public private(set) var connects: [(connection: Int, server: TURNServer)] = []
    public private(set) var disconnects: [Int] = []
    /// Only while `Configuration.codesAudio` is false.
    public var frames: [Frame] = []
    public var reports: [ClientCall.MediaReport] = []
    public init() {}

    public var hasDatagrams: Bool { !datagrams.isEmpty }

    /// The datagrams in the order of sending: octets, our address, the peer's.
    public func forEachDatagram(_ body: (UnsafeRawBufferPointer, SocketAddress, SocketAddress) -> Void) {
      octets.withUnsafeBytes { all in
        for datagram in datagrams {
          body(UnsafeRawBufferPointer(rebasing: all[datagram.octets]), datagram.local, datagram.remote)
        }
      }
    }

    /// Data for TURN servers: octets, the connection's number.
    public func forEachRelayed(_ body: (UnsafeRawBufferPointer, Int) -> Void) {
      octets.withUnsafeBytes { all in
        for message in relayed { body(UnsafeRawBufferPointer(rebasing: all[message.octets]), message.connection) }
      }
    }

    mutating func connect(_ number: Int, _ server: TURNServer) { connects.append((number, server)) }
    mutating func disconnect(_ number: Int) { disconnects.append(number) }
    mutating func relay(_ message: [UInt8], over number: Int) {
      relay(over: number) { octets in
        octets.append(contentsOf: message)
        return true
      }
    }
    /// - Parameter write: appends to the given array, or returns false.
    mutating func relay(over number: Int, _ write: (inout [UInt8]) -> Bool) {
      let start = octets.count
      if write(&octets) { relayed.append((start..<octets.count, number)) }
    }

    mutating func send(_ bytes: some Collection<UInt8>, from local: SocketAddress, to remote: SocketAddress) {
      let start = octets.count
      octets.append(contentsOf: bytes)
      datagrams.append(Datagram(octets: start..<octets.count, local: local, remote: remote))
    }

    /// Keeps the allocated memory.
    public mutating func removeAll() {
      datagrams.removeAll(keepingCapacity: true)
      octets.removeAll(keepingCapacity: true)
      relayed.removeAll(keepingCapacity: true)
      connects.removeAll(keepingCapacity: true)
      disconnects.removeAll(keepingCapacity: true)
      frames.removeAll(keepingCapacity: true)
      reports.removeAll(keepingCapacity: true)
    }
  }

  /// Counters since the call began.
  public struct Statistics: Sendable, Equatable {
    /// RTP packets that left.
    public var sentPackets: UInt64 = 0
    /// RTP packets that were received and accepted.
    public var receivedPackets: UInt64 = 0
    /// Their payload, in bytes.
    public var receivedBytes: UInt64 = 0
    /// RTP packets that were never received (RFC 3550 §6.4.1).
    public var lostPackets: UInt64 = 0
    /// Interarrival jitter (RFC 3550 §6.4.1).
    public var jitterMilliseconds = 0.0
    /// Audio that was concealed for missing packets.
    public var concealedMilliseconds: UInt64 = 0
    /// SRTP packets refused: bad tag or replay.
    public var refusedPackets: UInt64 = 0
    /// The delay that the jitter buffer adds now.
    public var bufferDelayMilliseconds = 0.0
    /// The round trip to the gateway, by RTCP; nil until a report was received.
    public var roundTripMilliseconds: Double?
    /// The loss on the way to the gateway, 0 to 1, by its last report; nil until one was received.
    public var reportedLossFraction: Double?
    /// Meter, in dBov, of the loudest 20 ms lately: the level falls by 11 dB a second. Before muting; −127: silence.
    public var microphoneLevel = -127.0
    /// As `microphoneLevel`, for the played audio.
    public var speakerLevel = -127.0
    /// Keys that the remote party pressed.
    public var digits = ""
    /// All counters are zero.
    public init() {}
  }

  var configuration: Configuration
  let random: RandomSource
  var negotiation: AppNegotiation
  var agent: ControllingAgent
  var iceOutput = ControllingAgent.Output()
  var generation = 1
  /// TURN relays of this generation, and of the one that media still uses.
  var relays: ClientRelays?
  var lastRelays: ClientRelays?
  var relaysDue: Instant?
  var lastRelaysDue: Instant?
  /// Whether this path, and the next one, use relays alone.
  var isRelayOnly = false
  var isNextRelayOnly = false
  var remote: AppMedia?
  var association: DTLSAssociation?
  var handshakeDeadline: Instant?
  var keys: SRTPKeyMaterial?
  var sender: SRTPSender?
  var receiver: SRTPReceiver?
  var connectedReportedGeneration = 0
  var encoding: AudioEncoding?
  var audioReceiver: AudioReceiver?
  var encoder: AudioEncoder?
  /// Converters between the device's band and a narrower one, for sent and for received audio.
  let narrow = BandConverter()
  let widen = BandConverter()
  /// Pauses are not encoded, as in the gateway: packets of the current pause are sent again. Opus only.
  var silence: CodedSilence?
  var silenceDetector = SilenceDetector()
  // `Array.span` needs iOS 26; a ContiguousArray has it on every system.
  /// The frame to encode, and its packet.
  var coded = ContiguousArray<UInt8>(repeating: 0, count: TrunklineAudioCodecs.Limits.opusFrameLength)
  var room = ContiguousArray<UInt8>(repeating: 0, count: Limits.packetBytes)
  /// 20 ms between the device's band and a narrower one.
  var narrowed = ContiguousArray<Int16>(repeating: 0, count: AudioBand.narrowband.samplesPerTick)
  /// The frame that a muted microphone sends.
  let silentFrame = ContiguousArray<Int16>(repeating: 0, count: AudioBand.wideband.samplesPerTick)
  var reception: ReceiverStatistics
  var digitReceiver: DigitReceiver
  var sequence: UInt16
  var timestamp: UInt32
  var ticks = 0
  var sentBytes: UInt64 = 0
  /// When the next RTCP report is due; nil before audio may run.
  var nextReport: Instant?
  var roundTrip: Double?
  var isActive = false
  /// Captured audio reaches the remote party.
  public internal(set) var isConnected = false
  var isMuted = false
  var silenceWatch = SilenceWatch()
  public internal(set) var statistics = Statistics()
  var microphone = LevelPeak()
  var speaker = LevelPeak()

  public init(configuration: Configuration, random: RandomSource) {
    (self.configuration, self.random) = (configuration, random)
    let (ufrag, password) = (random.text(8), random.text(24))
    agent = ControllingAgent(ufrag: ufrag, password: password, random: random)
    for (index, address) in configuration.localAddresses.enumerated() {
      agent.addLocal(Candidate(address, .host, preference: .max - UInt16(clamping: index)))
    }
    negotiation = AppNegotiation(
      .app, endpoint: Self.endpoint(configuration, ufrag, password, random), sessionID: random.next() >> 2)
    sequence = UInt16(truncatingIfNeeded: random.next()) & 0x7fff
    timestamp = UInt32(truncatingIfNeeded: random.next())
    reception = ReceiverStatistics(clockRateHz: 48_000)
    digitReceiver = DigitReceiver(clockRateHz: 48_000)
  }

  static func endpoint(_ configuration: Configuration, _ ufrag: String, _ password: String, _ random: RandomSource)
    -> SecureEndpoint
  {
    // On a narrow device a wide call would cost the gateway work for nothing audible.
    let rate = configuration.band.sampleRateHz
    let limits = OpusLimits(maxPlaybackRateHz: configuration.band == .narrowband ? rate : nil, maxCaptureRateHz: rate)
    return SecureEndpoint(
      ufrag: ufrag, password: password, fingerprint: configuration.fingerprint, candidates: configuration.localAddresses,
      ssrc: UInt32(truncatingIfNeeded: random.next()), cname: "trunkline-client", codecs: configuration.codecs, opus: limits)
  }

  /// The encoding in use once negotiated.
  public var codecName: String? { remote?.codec.name }
}
