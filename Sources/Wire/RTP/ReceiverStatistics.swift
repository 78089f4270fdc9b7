import TrunklineBytes

/// The effect of a received packet on its source's statistics.
public enum ReceptionVerdict: Sendable, Equatable {
  /// In the expected range: newer, or reordered within `Limits.misorder`.
  case accepted
  /// The source is not yet valid: fewer than two packets in order.
  case probation
  /// A jump too large for loss. Ignored once; the second in a row restarts the count.
  case outOfRange
  /// Another SSRC, or a confirmed jump: counting restarted at this packet.
  case restarted
}

/// Reception statistics of one RTP source as RFC 3550 A.1 (validation), A.3 (loss) and A.8 (jitter) define them, for report
/// blocks, metrics and the call record. A value type of about 100 octets; `receive` is allocation-free.
///
/// Totals (`lost`, `received`) span the whole life over SSRC changes; report blocks cover the current source only.
public struct ReceiverStatistics: Sendable {
  public private(set) var clockRateHz: UInt32
  /// The source counted now; nil before the first packet.
  public private(set) var source: SSRC?
  /// Packets of all sources, duplicates included.
  public private(set) var received: UInt64 = 0
  /// Packets that arrived after one with a higher number.
  public private(set) var reordered: UInt64 = 0
  /// How often the source changed or jumped.
  public private(set) var restarts: UInt64 = 0

  /// The distribution of losses.
  public private(set) var pattern = LossPattern()

  private var maximum = SequenceNumber(raw: 0)
  private var cycles: UInt32 = 0
  private var base: UInt32 = 0
  /// The next number after an out-of-range one; beyond 16 bits when none is expected.
  private var badNext: UInt32 = 0x1_0000
  private var probation = 0
  private var receivedOfSource: Int64 = 0
  private var expectedPrior: Int64 = 0
  private var receivedPrior: Int64 = 0
  private var lostBefore: Int64 = 0
  private var transit: UInt32?
  private var jitterScaled: UInt32 = 0
  private var lastReport: (middle: UInt32, at: Instant)?

  /// - Parameter clockRateHz: of the payload: 8000 for G.711, 48000 for Opus.
  public init(clockRateHz: UInt32) { self.clockRateHz = max(1, clockRateHz) }

  /// Changes the clock of the timestamps: another codec of the same stream. Counts continue.
  public mutating func setClock(rateHz: UInt32) {
    guard rateHz != clockRateHz else { return }
    jitterScaled = UInt32(truncatingIfNeeded: UInt64(jitterScaled) * UInt64(max(1, rateHz)) / UInt64(clockRateHz))
    clockRateHz = max(1, rateHz)
    transit = nil
  }

  /// Counts one packet. `measuresJitter` is false for packets whose timestamp is not their sampling time (telephone-event, RFC
  /// 4733 §2.6).
  // HOT
  public mutating func receive(_ header: RTPHeader, at now: Instant, measuresJitter: Bool = true) -> ReceptionVerdict {
    received &+= 1
    guard source == header.ssrc else {
      if source != nil { restarts &+= 1 }
      let verdict: ReceptionVerdict = source == nil ? .probation : .restarted
      restart(at: header.sequence, source: header.ssrc)
      probation = Limits.minimumSequential &- 1
      maximum = header.sequence
      pattern.restart()
      pattern.received(header.sequence)
      measureJitter(header, at: now, measures: measuresJitter)
      return verdict
    }
    let verdict = validate(header.sequence)
    guard verdict != .outOfRange else { return verdict }
    if verdict == .restarted { pattern.restart() }
    pattern.received(header.sequence)
    measureJitter(header, at: now, measures: measuresJitter)
    return verdict
  }

  /// Counts a packet of another source, which has other numbers.
  public mutating func receivedBeside() { received &+= 1 }

  /// Registers that the packet of this number arrived too late to be played.
  public mutating func discarded(_ sequence: SequenceNumber) { pattern.discarded(sequence) }

  /// RFC 3550 A.1 `update_seq`.
  private mutating func validate(_ sequence: SequenceNumber) -> ReceptionVerdict {
    let delta = Int(sequence.raw &- maximum.raw)
    if probation > 0 {
      if sequence == maximum.next {
        probation &-= 1
        maximum = sequence
        receivedOfSource &+= 1
        return probation == 0 ? .accepted : .probation
      }
      probation = Limits.minimumSequential &- 1
      restart(at: sequence, source: source)
      return .probation
    }
    if delta < Limits.dropout {
      if sequence.raw < maximum.raw, delta > 0 { cycles &+= 0x1_0000 }
      maximum = sequence
    } else if delta <= 0x1_0000 &- Limits.misorder {
      if UInt32(sequence.raw) == badNext {
        restarts &+= 1
        restart(at: sequence, source: source)
        return .restarted
      }
      badNext = UInt32(sequence.raw &+ 1)
      return .outOfRange
    } else {
      reordered &+= 1
    }
    receivedOfSource &+= 1
    return .accepted
  }

  private mutating func restart(at sequence: SequenceNumber, source: SSRC?) {
    lostBefore &+= lostOfSource
    if self.source != source { lastReport = nil }
    self.source = source
    base = UInt32(sequence.raw)
    maximum = sequence
    cycles = 0
    badNext = 0x1_0000
    receivedOfSource = 1
    expectedPrior = 0
    receivedPrior = 0
    transit = nil
  }

  /// RFC 3550 A.8, in sixteenths of a clock unit.
  private mutating func measureJitter(_ header: RTPHeader, at now: Instant, measures: Bool) {
    guard measures else {
      transit = nil
      return
    }
    let arrived = now.units(ofClock: clockRateHz) &- header.timestamp.raw
    if let transit {
      let difference = Int32(bitPattern: arrived &- transit).magnitude
      // A step beyond 10 s is a new timestamp origin, not jitter.
      if difference < clockRateHz &* 10 { jitterScaled = jitterScaled &+ difference &- ((jitterScaled &+ 8) >> 4) }
    }
    transit = arrived
  }

  /// RFC 3550 `extended highest sequence number received`.
  public var highestSequence: UInt32 { cycles &+ UInt32(maximum.raw) }
  private var expectedOfSource: Int64 { source == nil ? 0 : Int64(highestSequence) &- Int64(base) &+ 1 }
  private var lostOfSource: Int64 { source == nil ? 0 : max(0, expectedOfSource &- receivedOfSource) }
  /// Packets that never arrived, all sources; late ones count as received.
  public var lost: UInt64 { UInt64(max(0, lostBefore &+ lostOfSource)) }
  /// Interarrival jitter in clock units.
  public var jitter: UInt32 { jitterScaled >> 4 }
  public var jitterMilliseconds: Double { Double(jitterScaled) / 16 * 1000 / Double(clockRateHz) }

  /// Stores an SR of the source for LSR and DLSR.
  public mutating func senderReportReceived(_ ntp: NTPTimestamp, from sender: SSRC, at now: Instant) {
    guard sender == source else { return }
    lastReport = (ntp.middle, now)
  }

  /// The block for our next report; closes the interval of `fractionLost`. Nil before a source is known.
  public mutating func report(at now: Instant) -> ReportBlock? {
    guard let source else { return nil }
    let expected = expectedOfSource &- expectedPrior
    let lostInInterval = expected &- (receivedOfSource &- receivedPrior)
    expectedPrior = expectedOfSource
    receivedPrior = receivedOfSource
    let fraction = expected <= 0 || lostInInterval <= 0 ? 0 : min(255, (lostInInterval << 8) / expected)
    let cumulative = max(-0x80_0000, min(0x7f_ffff, expectedOfSource &- receivedOfSource))
    var delay: UInt32 = 0
    if let lastReport {
      let elapsed = max(0, (now - lastReport.at).nanoseconds / 1000)
      delay = UInt32(clamping: elapsed &* 65_536 / 1_000_000)
    }
    return ReportBlock(
      source: source, fractionLost: UInt8(truncatingIfNeeded: fraction), cumulativeLost: Int32(truncatingIfNeeded: cumulative),
      highestSequence: highestSequence, jitter: jitter, lastSenderReport: lastReport?.middle ?? 0,
      delaySinceLastSenderReport: delay)
  }
}

extension Instant {
  /// This instant on an RTP clock, modulo 2³²; only differences are meaningful.
  @inlinable public func units(ofClock rateHz: UInt32) -> UInt32 {
    let seconds = nanoseconds / 1_000_000_000
    let rest = nanoseconds % 1_000_000_000
    let rate = Int64(rateHz)
    return UInt32(truncatingIfNeeded: seconds &* rate &+ rest &* rate / 1_000_000_000)
  }
}
