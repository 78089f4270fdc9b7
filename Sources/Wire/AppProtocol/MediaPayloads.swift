/// `media.ready`: the app's ICE has a pair and its DTLS has keys.
public struct MediaReady: Hashable, Sendable, Codable {
  /// The nominated pair, by candidate types (RFC 8445 §5.1.1): host, srflx, prflx or relay.
  public struct Pair: Hashable, Sendable, Codable {
    /// The app's candidate.
    public var local: String?
    /// The gateway's.
    public var remote: String?
    /// A pair of two candidate types.
    public init(local: String?, remote: String?) { (self.local, self.remote) = (local, remote) }
  }
  public var gen: Int
  public var pair: Pair?
  public var rttMs: Double?
  public var dtls: String?
  public init(gen: Int = 1, pair: Pair? = nil, rttMs: Double? = nil, dtls: String? = nil) {
    (self.gen, self.pair, self.rttMs, self.dtls) = (gen, pair, rttMs, dtls)
  }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    gen = try values.generation(.gen) ?? 1
    pair = try values.decodeIfPresent(Pair.self, forKey: .pair)
    rttMs = try values.decodeIfPresent(Double.self, forKey: .rttMs)
    dtls = try values.optionalText(.dtls)
  }
}

public struct MediaFail: Hashable, Sendable, Codable {
  public enum Stage: String, Sendable, Codable { case ice, dtls, device }
  public var gen: Int?
  public var stage: Stage
  public var detail: String?
  public init(gen: Int? = nil, stage: Stage, detail: String? = nil) {
    (self.gen, self.stage, self.detail) = (gen, stage, detail)
  }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    gen = try values.generation(.gen)
    stage = try values.decodeIfPresent(Stage.self, forKey: .stage) ?? .ice
    detail = try values.decodeIfPresent(String.self, forKey: .detail).map { String($0.prefix(Limits.textCharacters)) }
  }
}

/// `media.active`: whether the device's audio is running.
public struct MediaActive: Hashable, Sendable, Codable {
  public var capture: Bool
  public var playout: Bool
  public init(capture: Bool, playout: Bool) { (self.capture, self.playout) = (capture, playout) }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    capture = try values.decodeIfPresent(Bool.self, forKey: .capture) ?? false
    playout = try values.decodeIfPresent(Bool.self, forKey: .playout) ?? false
  }
}

/// `media.restart`: a new generation of the app leg. From the client with `sdp` (its offer), from the gateway without.
public struct MediaRestart: Hashable, Sendable, Codable {
  public enum Cause: String, Sendable, Codable { case net, iceFailed, timeout }
  public var sdp: String?
  public var gen: Int
  public var cause: Cause?
  public init(sdp: String? = nil, gen: Int, cause: Cause? = nil) { (self.sdp, self.gen, self.cause) = (sdp, gen, cause) }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    sdp = try values.decodeIfPresent(String.self, forKey: .sdp)
    guard let gen = try values.generation(.gen) else { throw values.problem(.gen, "missing") }
    self.gen = gen
    cause = try values.decodeIfPresent(Cause.self, forKey: .cause)
  }
}

/// `media.answer`: the answer to the client's `media.restart`; it carries `re` and replaces `ok`.
public struct MediaAnswer: Hashable, Sendable, Codable {
  public var sdp: String
  public var gen: Int
  public init(sdp: String, gen: Int) { (self.sdp, self.gen) = (sdp, gen) }
}

/// `stats`, every 5 s, and the totals in `call.ended`.
public struct StreamStats: Hashable, Sendable, Codable {
  public var rttMs: Double?
  public var jitterMs: Double?
  /// 0 to 1.
  public var loss: Double?
  public var bytes: Int64?
  /// Milliseconds of concealed audio.
  public var plc: Double?
  public var codec: String?
  public var mos: Double?
  /// Only in `call.ended{received}`: whether any of the audio was not silence.
  public var audio: Bool?
  public init(
    rttMs: Double? = nil, jitterMs: Double? = nil, loss: Double? = nil, bytes: Int64? = nil, plc: Double? = nil,
    codec: String? = nil,
    mos: Double? = nil, audio: Bool? = nil
  ) {
    (self.rttMs, self.jitterMs, self.loss, self.bytes) = (rttMs, jitterMs, loss, bytes)
    (self.plc, self.codec, self.mos, self.audio) = (plc, codec, mos, audio)
  }
}

/// The quality of a call, by the gateway's measurements.
public struct Quality: Hashable, Sendable, Codable {
  /// "good", "fair" or "poor".
  public var level: String
  /// The main fault: "loss", "jitter", "delay" or "silence" (no audio from the app or from the trunk); nil: none.
  public var cause: String?
  /// A level with its cause.
  public init(level: String, cause: String? = nil) { (self.level, self.cause) = (level, cause) }
}
