/// The VoIP metrics report block (RFC 3611 §4.7) about one received stream.
public struct VoIPMetrics: Sendable, Equatable {
  /// Fractions, 0…1.
  public var lossRate = 0.0
  public var discardRate = 0.0
  public var burstDensity = 0.0
  public var gapDensity = 0.0
  public var burstMilliseconds = 0.0
  public var gapMilliseconds = 0.0
  /// 0 if unknown.
  public var roundTripMilliseconds = 0.0
  public var endSystemMilliseconds = 0.0
  /// Relative to 0 dBm0; nil if unknown.
  public var signalLevel: Double?
  public var noiseLevel: Double?
  /// G.107's rating, 0…100.
  public var rating: Double?
  /// 1…5; listening leaves the delay out, conversation does not.
  public var listeningScore: Double?
  public var conversationScore: Double?
  public var bufferNominalMilliseconds = 0.0
  public var bufferMaximumMilliseconds = 0.0
  public var bufferAbsoluteMaximumMilliseconds = 0.0

  public init() {}

  /// Octets of an XR packet with this one block.
  static let packetLength = 44
  /// Enhanced concealment, adaptive jitter buffer (§4.7.6).
  static let receiverConfiguration: UInt8 = 0b10_11_0000
  /// "Unavailable" of levels, ratings and scores.
  static let unavailable: UInt8 = 127

  static func fraction(_ value: Double) -> UInt8 { UInt8(max(0, min(255, (value * 256).rounded(.down)))) }
  static func milliseconds(_ value: Double) -> UInt16 { UInt16(max(0, min(65_535, value.rounded()))) }
  static func level(_ value: Double?) -> UInt8 {
    value.map { UInt8(bitPattern: Int8(max(-127, min(126, $0.rounded())))) } ?? unavailable
  }
  static func score(_ value: Double?, scale: Double, in range: ClosedRange<Double>) -> UInt8 {
    value.map { UInt8(max(range.lowerBound, min(range.upperBound, ($0 * scale).rounded()))) } ?? unavailable
  }
}

extension RTCPWriter {
  /// Writes an XR packet (RFC 3611 §2) with the VoIP metrics of the stream that we received from `source`. Writes nothing and
  /// returns false if it does not fit.
  public mutating func voipMetrics(
    _ metrics: VoIPMetrics, from sender: SSRC, about source: SSRC, into datagram: inout MutableSpan<UInt8>
  ) -> Bool {
    guard begin(type: 207, items: 0, length: VoIPMetrics.packetLength, into: &datagram) else { return false }
    typealias V = VoIPMetrics
    func four(_ a: UInt8, _ b: UInt8, _ c: UInt8, _ d: UInt8) -> UInt32 {
      UInt32(a) << 24 | UInt32(b) << 16 | UInt32(c) << 8 | UInt32(d)
    }
    func two(_ a: Double, _ b: Double) -> UInt32 { UInt32(V.milliseconds(a)) << 16 | UInt32(V.milliseconds(b)) }
    put(sender.raw, into: &datagram)
    // Block type 7, eight words follow.
    put(four(7, 0, 0, 8), into: &datagram)
    put(source.raw, into: &datagram)
    put(
      four(
        V.fraction(metrics.lossRate), V.fraction(metrics.discardRate), V.fraction(metrics.burstDensity),
        V.fraction(metrics.gapDensity)), into: &datagram)
    put(two(metrics.burstMilliseconds, metrics.gapMilliseconds), into: &datagram)
    put(two(metrics.roundTripMilliseconds, metrics.endSystemMilliseconds), into: &datagram)
    put(
      four(V.level(metrics.signalLevel), V.level(metrics.noiseLevel), V.unavailable, UInt8(LossPattern.gapMinimum)),
      into: &datagram)
    put(
      four(
        V.score(metrics.rating, scale: 1, in: 0...100), V.unavailable,
        V.score(metrics.listeningScore, scale: 10, in: 10...50), V.score(metrics.conversationScore, scale: 10, in: 10...50)),
      into: &datagram)
    put(four(V.receiverConfiguration, 0, 0, 0) | UInt32(V.milliseconds(metrics.bufferNominalMilliseconds)), into: &datagram)
    put(two(metrics.bufferMaximumMilliseconds, metrics.bufferAbsoluteMaximumMilliseconds), into: &datagram)
    return true
  }
}
