import TrunklineBytes
public import TrunklineRTP

/// The agreed audio of an app leg: the peer's properties and preferences.
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
  /// The packet time that the peer wants to receive.
  public var packetTimeMilliseconds: Int
  /// Our direction.
  public var direction: MediaDirection
  /// The section's identification tag, which the answer repeats (RFC 5888).
  public var mid: String?
  /// The peer's parameters for Opus; defaults if it has none or the codec is another.
  public var opus: OpusParameters
}

/// Our half of an app leg, as both kinds of endpoint describe it.
public struct SecureEndpoint: Hashable, Sendable {
  public var ufrag: String
  public var password: String
  public var fingerprint: FingerprintAttribute
  /// Host candidates, the best first.
  public var candidates: [SocketAddress]
  public var ssrc: UInt32
  /// RTCP's canonical name, the same for all our streams.
  public var cname: String
  /// In our order of preference.
  public var codecs: [AudioEncoding]
  /// Our parameters in `a=fmtp` of Opus; without any the peer is free.
  public var opus: OpusLimits

  public init(
    ufrag: String, password: String, fingerprint: FingerprintAttribute, candidates: [SocketAddress], ssrc: UInt32,
    cname: String = "trunkline", codecs: [AudioEncoding] = AudioEncoding.ofApps, opus: OpusLimits = OpusLimits()
  ) {
    (self.ufrag, self.password, self.fingerprint, self.candidates) = (ufrag, password, fingerprint, candidates)
    (self.ssrc, self.cname, self.codecs, self.opus) = (ssrc, cname, codecs, opus)
  }
}
