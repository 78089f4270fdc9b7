import TrunklineBytes
public import TrunklineRTP

/// The trunk leg's audio as offer and answer settled it.
public struct TrunkMedia: Hashable, Sendable {
  /// Destination of our RTP. Unspecified while the peer holds us in the old way (0.0.0.0): `direction` then does not send.
  public var remote: SocketAddress
  public var codec: AudioEncoding
  /// Payload type of the packets that we send: the peer's description numbers it.
  public var payloadType: UInt8
  /// telephone-event (RFC 4733) as we send it, if both sides support it.
  public var telephoneEventPayloadType: UInt8?
  /// Clock rate of telephone-event: the codec's if the peer offers that, else another.
  public var telephoneEventClockRateHz: UInt32?
  /// Formats that may arrive at any time (RFC 3264 §7), by the numbers of our description and of the peer's; each number once.
  public var incoming: [NumberedFormat] = []
  /// CN at the codec's clock rate (RFC 3389), if the peer supports it.
  public var comfortNoisePayloadType: UInt8?
  /// Destination of our RTCP if `a=rtcp` states one (RFC 3605); nil: the port above RTP's.
  public var control: SocketAddress?
  /// `a=rtcp-xr` requests VoIP metrics (RFC 3611 §5).
  public var wantsVoIPMetrics = false
  /// Keys of both directions where RTP and RTCP are protected.
  public var protection: MediaProtection?
  /// Packet time that the peer requests.
  public var packetTimeMilliseconds: Int
  /// Opus parameters that the peer requests.
  public var opus = OpusParameters()
  /// Our direction: `sends` is false while the peer holds us, `receives` is false while it sends nothing.
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
