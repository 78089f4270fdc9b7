public import TrunklineRTP

/// The Opus that the peer wants to receive (RFC 7587 §6.1); defaults if its description has none of it or the codec is another.
public struct OpusParameters: Hashable, Sendable {
  public var usesInbandFEC = false
  public var usesDTX = false
  /// `useinbandfec=0`, written out: not the same as its absence.
  public var refusesInbandFEC = false
  /// `cbr=1`: packets of one length, so that their lengths reveal nothing of the speech (RFC 6562).
  public var wantsConstantBitrate = false
  public var maxPlaybackRateHz: Int?
  public var maxAverageBitrate: Int?
  public init() {}

  /// A value out of range is ignored, as if it were not there.
  init(_ format: AudioFormat) {
    usesInbandFEC = format.parameter("useinbandfec") == "1"
    usesDTX = format.parameter("usedtx") == "1"
    refusesInbandFEC = format.parameter("useinbandfec") == "0"
    wantsConstantBitrate = format.parameter("cbr") == "1"
    func value(_ name: String, in range: ClosedRange<Int>) -> Int? {
      format.parameter(name).flatMap { number($0) }.flatMap { range.contains($0) ? $0 : nil }
    }
    maxPlaybackRateHz = value("maxplaybackrate", in: Limits.opusPlaybackRates)
    maxAverageBitrate = value("maxaveragebitrate", in: Limits.opusBitrates)
  }
}

/// Our Opus parameters beside the codec's row (RFC 7587 §6.1): how much of the peer's audio is of use, and how much ours
/// contains.
public struct OpusLimits: Hashable, Sendable {
  public var maxPlaybackRateHz: Int?
  /// Without it libwebrtc uses 12 kbit/s for a playback rate of 8 kHz, where libopus leaves FEC out.
  public var maxAverageBitrate: Int?
  public var maxCaptureRateHz: Int?

  public init(maxPlaybackRateHz: Int? = nil, maxAverageBitrate: Int? = nil, maxCaptureRateHz: Int? = nil) {
    (self.maxPlaybackRateHz, self.maxAverageBitrate) = (maxPlaybackRateHz, maxAverageBitrate)
    self.maxCaptureRateHz = maxCaptureRateHz
  }

  /// The limits of a call that carries this band. A wide one sets no playback rate: audio above 7 kHz costs little, and a decoder
  /// drops it.
  public init(_ band: AudioBand, maxAverageBitrate: Int) {
    self.init(
      maxPlaybackRateHz: band == .narrowband ? band.sampleRateHz : nil, maxAverageBitrate: maxAverageBitrate,
      maxCaptureRateHz: band.sampleRateHz)
  }

  /// As in `a=fmtp`.
  var text: [String] {
    let parameters = [
      ("maxplaybackrate", maxPlaybackRateHz), ("maxaveragebitrate", maxAverageBitrate),
      ("sprop-maxcapturerate", maxCaptureRateHz),
    ]
    return parameters.compactMap { name, value in value.map { "\(name)=\($0)" } }
  }
}
