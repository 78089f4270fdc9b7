import Bytes
public import RTP

/// The trunk leg's audio as offer and answer settled it.
public struct TrunkMedia: Hashable, Sendable {
  /// Where our RTP goes. Unspecified while the peer holds us in the old way (0.0.0.0): then `direction` does not send.
  public var remote: SocketAddress
  public var codec: AudioEncoding
  /// Of what we send: the number of the peer's description.
  public var payloadType: UInt8
  /// telephone-event (RFC 4733) as we send it, if both have it.
  public var telephoneEventPayloadType: UInt8?
  /// Its clock: the codec's where the peer has that, else another.
  public var telephoneEventClockRateHz: UInt32?
  /// What may come in at any time (RFC 3264 §7), under the numbers of our description and of the peer's; each number once.
  public var incoming: [NumberedFormat] = []
  /// CN at the codec's clock rate (RFC 3389), if the peer has it.
  public var comfortNoisePayloadType: UInt8?
  /// Where our RTCP goes, if `a=rtcp` says so (RFC 3605); else to the port above RTP's.
  public var control: SocketAddress?
  /// `a=rtcp-xr` asks for VoIP metrics (RFC 3611 §5).
  public var wantsVoIPMetrics = false
  /// Keys of both directions where RTP and RTCP are protected.
  public var protection: MediaProtection?
  /// What the peer wants to receive.
  public var packetTimeMilliseconds: Int
  /// Its wishes for Opus.
  public var opus = OpusParameters()
  /// Ours: `sends` is false while the peer holds us, `receives` is false while it sends nothing.
  public var direction: MediaDirection

  public init(
    remote: SocketAddress, codec: AudioEncoding, payloadType: UInt8, telephoneEventPayloadType: UInt8?,
    packetTimeMilliseconds: Int = 20, direction: MediaDirection = .sendReceive
  ) {
    (self.remote, self.codec, self.payloadType) = (remote, codec, payloadType)
    (self.telephoneEventPayloadType, self.packetTimeMilliseconds) = (telephoneEventPayloadType, packetTimeMilliseconds)
    self.direction = direction
  }
}

/// SRTP as two descriptions settled it (RFC 4568): each side's own key protects what it sends.
public struct MediaProtection: Hashable, Sendable {
  public var suite: CryptoSuite
  public var ours: MediaKey
  public var theirs: MediaKey
  public init(suite: CryptoSuite, ours: MediaKey, theirs: MediaKey) {
    (self.suite, self.ours, self.theirs) = (suite, ours, theirs)
  }
}
