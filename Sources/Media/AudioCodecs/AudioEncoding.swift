/// What an audio stream is coded in on one leg.
public enum AudioEncoding: UInt8, Sendable, CaseIterable {
  case opus, pcmu, pcma, g722

  /// The encoding name of the RTP payload format registry.
  public var name: String { CodecCatalog.row(of: self).name }
  /// RTP clock rate in Hz: always 48000 for Opus (RFC 7587 §4.1), and 8000 for G.722 by an old mistake (RFC 3551 §4.5.2).
  @inlinable public var clockRateHz: UInt32 { self == .opus ? 48_000 : 8_000 }
}

/// What is to be known of each codec in one row: adding one means a row here, its encoder and decoder, and a case above.
public struct CodecCatalog: Sendable {
  public struct Row: Sendable, Equatable {
    public let encoding: AudioEncoding
    /// RTP payload format name, as in `a=rtpmap`.
    public let name: String
    public let clockRateHz: UInt32
    /// As `a=rtpmap` writes it: 2 for Opus whatever is sent (RFC 7587 §7).
    public let channels: Int
    /// The number of RFC 3551; nil for dynamic types.
    public let staticPayloadType: UInt8?
    /// What we say of ourselves in `a=fmtp`.
    public let formatParameters: String?
    /// Audio lost in one packet can come from the next (Opus in-band FEC).
    public let carriesRepair: Bool
    /// Delay of encoder plus decoder beyond the frame, in samples at 8 kHz.
    public let algorithmicDelay: Int
  }

  public static let rows: [Row] = [
    Row(
      encoding: .opus, name: "opus", clockRateHz: 48_000, channels: 2, staticPayloadType: nil,
      formatParameters: "minptime=10;useinbandfec=1;maxplaybackrate=8000;sprop-maxcapturerate=8000", carriesRepair: true,
      algorithmicDelay: 52),
    Row(
      encoding: .pcmu, name: "PCMU", clockRateHz: 8000, channels: 1, staticPayloadType: 0, formatParameters: nil,
      carriesRepair: false,
      algorithmicDelay: 0),
    Row(
      encoding: .pcma, name: "PCMA", clockRateHz: 8000, channels: 1, staticPayloadType: 8, formatParameters: nil,
      carriesRepair: false,
      algorithmicDelay: 0),
    Row(
      encoding: .g722, name: "G722", clockRateHz: 8000, channels: 1, staticPayloadType: 9, formatParameters: nil,
      carriesRepair: false, algorithmicDelay: 0),
  ]

  public static func row(of encoding: AudioEncoding) -> Row {
    // One row per case, in the order of the cases: held by a test.
    rows[Int(encoding.rawValue)]
  }
}
