/// The sender information of an SR (RFC 3550 §6.4.1).
public struct SenderInfo: Sendable, Equatable {
  public var ntp: NTPTimestamp
  public var timestamp: RTPTimestamp
  public var packets: UInt32
  /// Payload octets, without header and padding.
  public var octets: UInt32
  public init(ntp: NTPTimestamp, timestamp: RTPTimestamp, packets: UInt32, octets: UInt32) {
    (self.ntp, self.timestamp, self.packets, self.octets) = (ntp, timestamp, packets, octets)
  }
}

/// One reception report block (RFC 3550 §6.4.1).
public struct ReportBlock: Sendable, Equatable {
  public var source: SSRC
  /// Loss since the previous report, in 1/256.
  public var fractionLost: UInt8
  /// −2²³…2²³−1; negative when duplicates outnumber losses.
  public var cumulativeLost: Int32
  public var highestSequence: UInt32
  /// In units of the stream's RTP clock.
  public var jitter: UInt32
  /// Middle 32 bits of the last SR's NTP time, 0 if none was received.
  public var lastSenderReport: UInt32
  /// Delay since that SR in 1/65536 s.
  public var delaySinceLastSenderReport: UInt32

  public init(
    source: SSRC, fractionLost: UInt8, cumulativeLost: Int32, highestSequence: UInt32, jitter: UInt32,
    lastSenderReport: UInt32 = 0,
    delaySinceLastSenderReport: UInt32 = 0
  ) {
    (self.source, self.fractionLost, self.cumulativeLost) = (source, fractionLost, cumulativeLost)
    (self.highestSequence, self.jitter) = (highestSequence, jitter)
    (self.lastSenderReport, self.delaySinceLastSenderReport) = (lastSenderReport, delaySinceLastSenderReport)
  }

  /// Octets on the wire.
  static let length = 24

  init(reading bytes: RawSpan, at offset: Int) {
    source = SSRC(raw: bytes.bigEndian32(at: offset))
    let loss = bytes.bigEndian32(at: offset &+ 4)
    fractionLost = UInt8(truncatingIfNeeded: loss >> 24)
    cumulativeLost = Int32(bitPattern: loss << 8) >> 8
    highestSequence = bytes.bigEndian32(at: offset &+ 8)
    jitter = bytes.bigEndian32(at: offset &+ 12)
    lastSenderReport = bytes.bigEndian32(at: offset &+ 16)
    delaySinceLastSenderReport = bytes.bigEndian32(at: offset &+ 20)
  }

  /// Round trip as measured by the sender of the reported stream, in 1/65536 s (§6.4.1, LSR and DLSR); nil without an SR or
  /// if the sum is negative or beyond a minute, which only a false report gives.
  public func roundTrip(receivedAt now: NTPTimestamp) -> UInt32? {
    guard lastSenderReport != 0 else { return nil }
    let elapsed = now.middle &- lastSenderReport &- delaySinceLastSenderReport
    return elapsed <= 60 << 16 ? elapsed : nil
  }
}

/// The location of the report blocks in a parsed SR or RR: read them one by one, nothing is copied.
public struct ReportBlocks: Sendable, Equatable {
  let offset: Int
  /// 0…31.
  public let count: Int

  /// A block of the datagram this was parsed from; nil beyond `count`.
  public func block(_ index: Int, in datagram: Span<UInt8>) -> ReportBlock? {
    guard index >= 0, index < count, offset &+ (index &+ 1) &* ReportBlock.length <= datagram.count else { return nil }
    return ReportBlock(reading: datagram.bytes, at: offset &+ index &* ReportBlock.length)
  }
}

/// One packet of a compound RTCP datagram (RFC 3550 §6). Ranges are octet positions in the datagram.
public enum RTCPPacket: Sendable, Equatable {
  case senderReport(SSRC, SenderInfo, ReportBlocks)
  case receiverReport(SSRC, ReportBlocks)
  /// The first chunk's source and its CNAME's position; both nil when there is none.
  case sourceDescription(SSRC?, cname: Range<Int>?)
  /// The first leaving source, how many in all, and the reason's position.
  case goodbye(SSRC?, count: Int, reason: Range<Int>?)
  /// Transport (205) or payload-specific (206) feedback (RFC 4585 §6.1).
  case feedback(type: UInt8, format: UInt8, sender: SSRC, media: SSRC, information: Range<Int>)
  /// APP, XR and unknown types: skipped by length.
  case other(type: UInt8)
}
