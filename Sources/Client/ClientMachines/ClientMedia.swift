public import TrunklineBytes
public import TrunklineDTLS
import TrunklineICE
public import TrunklineRTP
import TrunklineSDP
public import TrunklineTURN

/// The media of one app call: full ICE, DTLS in the client's role, SRTP, a jitter buffer and a codec, without sockets or a clock.
/// Give it datagrams, 20 ms of audio at a time, and `handleTimeout` when it is due; it writes datagrams to `Output`. One thread.
/// Only OpenSSL has a clock of its own (retransmission). After the set-up a packet or a frame allocates nothing.
///
/// It joins parts with private state (docs/design/client-sdk.md, A call's media).
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

  private(set) var configuration: Configuration
  let random: RandomSource
  // The parts
  var negotiation: AppNegotiation
  var agent: ControllingAgent
  /// Used in ClientMedia+Transport.swift only.
  var iceOutput = ControllingAgent.Output()
  var path = PathGeneration()
  var relays = RelayPaths()
  var handshake = ClientHandshake()
  var keys = ClientKeys()
  var sent: SentStream
  var received = ReceivedStream()
  var captured: CapturedAudio
  var played: PlayedAudio
  var reports = ClientReports()
  var activation = AudioActivation()
  var silence = SilenceWatch()

  public init(configuration: Configuration, random: RandomSource) {
    (self.configuration, self.random) = (configuration, random)
    let (ufrag, password) = (random.text(8), random.text(24))
    agent = ControllingAgent(ufrag: ufrag, password: password, random: random)
    for (index, address) in configuration.localAddresses.enumerated() {
      agent.addLocal(Candidate(address, .host, preference: .max - UInt16(clamping: index)))
    }
    let endpoint = Self.endpoint(configuration, ufrag, password, random)
    negotiation = AppNegotiation(.app, endpoint: endpoint, sessionID: random.next() >> 2)
    sent = SentStream(ssrc: endpoint.ssrc, random: random)
    captured = CapturedAudio(band: configuration.band)
    played = PlayedAudio(band: configuration.band)
  }

  /// The host candidates of the next generation; the current ones stay in use until it has a pair.
  public mutating func use(localAddresses: [SocketAddress], nat64: NAT64? = nil) {
    (configuration.localAddresses, configuration.nat64) = (localAddresses, nat64)
  }

  /// TURN servers for the next generation; the current ones stay in use until then.
  public mutating func use(relays servers: [TURNServer]) { configuration.relays = servers }

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
  public var codecName: String? { negotiation.agreed?.codec.name }

  /// Captured audio reaches the remote party.
  public var isConnected: Bool { activation.isConnected }
}
