import Bytes
public import RTP

/// An app leg's audio as offer and answer settled it: what the other side is and wants.
public struct AppMedia: Hashable, Sendable {
  public var credentials: ICECredentials
  public var fingerprint: FingerprintAttribute
  /// The peer's DTLS role: `active` (it is the client, the gateway's view) or `passive` (the phone's view).
  public var setup: SetupRole
  /// The peer is ICE-lite: only the phone accepts that.
  public var isLite: Bool
  /// In the peer's order, at most 64. The gateway never resolves or probes them.
  public var candidates: [CandidateAttribute]
  public var codec: AudioEncoding
  public var payloadType: UInt8
  /// telephone-event at 48000 and at 8000 Hz (RFC 4733), if both sides have it.
  public var telephoneEvent48: UInt8?
  public var telephoneEvent8: UInt8?
  /// What the peer wants to receive.
  public var packetTimeMilliseconds: Int
  /// Ours.
  public var direction: MediaDirection
  /// The section's identification tag, to which `ice.cand` refers.
  public var mid: String?
  /// The peer's wishes for Opus; defaults if it has none or the codec is another.
  public var opus: OpusParameters

  /// RFC 7587 §6.1, of what the peer wants to receive.
  public struct OpusParameters: Hashable, Sendable {
    public var usesInbandFEC = false
    public var usesDTX = false
    /// `useinbandfec=0`, written out: not the same as its absence.
    public var refusesInbandFEC = false
    /// `cbr=1`: packets of one length, so that their lengths tell nothing of what is said (RFC 6562).
    public var wantsConstantBitrate = false
    public var maxPlaybackRateHz: Int?
    public var maxAverageBitrate: Int?
    public init() {}

    init(_ format: AudioFormat) {
      usesInbandFEC = format.parameter("useinbandfec") == "1"
      usesDTX = format.parameter("usedtx") == "1"
      refusesInbandFEC = format.parameter("useinbandfec") == "0"
      wantsConstantBitrate = format.parameter("cbr") == "1"
      maxPlaybackRateHz = format.parameter("maxplaybackrate").flatMap { number($0) }
      maxAverageBitrate = format.parameter("maxaveragebitrate").flatMap { number($0) }
    }
  }
}

/// Our half of an app leg, as both sides of it write it.
public struct SecureEndpoint: Hashable, Sendable {
  public var ufrag: String
  public var password: String
  public var fingerprint: FingerprintAttribute
  /// Host candidates, the best first.
  public var candidates: [SocketAddress]
  public var ssrc: UInt32
  /// RTCP's canonical name, the same for all streams of this side.
  public var cname: String
  /// In our order of preference.
  public var codecs: [AudioEncoding]
  /// The most that is of use to us, 8000 toward a telephone; nil leaves Opus without a limit.
  public var opusPlaybackRateHz: Int?
  /// `maxaveragebitrate` in bit/s where `opusPlaybackRateHz` is said. Without it libwebrtc takes 12 kbit/s for 8 kHz, where libopus
  /// leaves FEC out.
  public var opusAverageBitrate: Int? = 28_000

  public init(
    ufrag: String, password: String, fingerprint: FingerprintAttribute, candidates: [SocketAddress], ssrc: UInt32,
    cname: String = "trunkline", codecs: [AudioEncoding] = AudioEncoding.ofApps, opusPlaybackRateHz: Int? = 8_000
  ) {
    (self.ufrag, self.password, self.fingerprint, self.candidates) = (ufrag, password, fingerprint, candidates)
    (self.ssrc, self.cname, self.codecs, self.opusPlaybackRateHz) = (ssrc, cname, codecs, opusPlaybackRateHz)
  }
}
