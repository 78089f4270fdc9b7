import TrunklineBytes
import TrunklineRTP

/// When a leg's next RTCP report is due and what the peer's reports contained (RFC 3550 §6).
struct ReportState {
  /// Mean time between reports.
  let interval: Duration
  private(set) var nextDue: Instant?
  private(set) var roundTripMilliseconds: Double?
  private(set) var reportedLossFraction: Double?
  /// A block about our stream was received since `drainReportedLoss`.
  private var hasReport = false
  private var watch = OneWayWatch()

  init(interval: Duration) { self.interval = interval }

  /// True when a report is due; sets the next time, half to one and a half intervals from now (§6.3.1), the first within half of
  /// one.
  mutating func isDue(at now: Instant, random: inout SplitMix64) -> Bool {
    let base = interval.nanoseconds
    let spread = Int64(random.next() % UInt64(base))
    guard let due = nextDue else {
      nextDue = now + .nanoseconds(base / 4 + spread / 4)
      return false
    }
    guard now >= due else { return false }
    nextDue = now + .nanoseconds(base / 2 + spread)
    return true
  }

  /// The loss in a report received since the last call.
  mutating func drainReportedLoss() -> Double? {
    guard hasReport else { return nil }
    hasReport = false
    return reportedLossFraction
  }

  /// Reads a compound datagram in the clear: sender reports into `reception`, blocks about `stream` into the round trip.
  /// - Parameter arrived: received packets of the peer.
  /// - Returns: a direction in which no packet arrives although packets are sent (`OneWayWatch`), as seen by an app: `appToTrunk`
  ///   is its stream.
  @discardableResult mutating func receive(
    _ datagram: Span<UInt8>, about stream: OutgoingStream, arrived: UInt64, reception: inout ReceiverStatistics, at now: Instant,
    wallClock: NTPTimestamp
  ) throws(RTCPParseError) -> AudioDirection? {
    var reader = RTCPReader()
    var oneWay: AudioDirection?
    while let packet = try reader.next(in: datagram) {
      switch packet {
      case .senderReport(let source, let info, let blocks):
        reception.senderReportReceived(info.ntp, from: source, at: now)
        if watch.peerHasSent(info.packets, arrived: arrived, at: now) { oneWay = .appToTrunk }
        if handle(blocks, of: datagram, about: stream, at: now, wallClock: wallClock) { oneWay = .trunkToApp }
      case .receiverReport(_, let blocks):
        if handle(blocks, of: datagram, about: stream, at: now, wallClock: wallClock) { oneWay = .trunkToApp }
      case .sourceDescription, .goodbye, .feedback, .other: break
      }
    }
    return oneWay
  }

  /// - Returns: whether our packets do not arrive.
  private mutating func handle(
    _ blocks: ReportBlocks, of datagram: Span<UInt8>, about stream: OutgoingStream, at now: Instant, wallClock: NTPTimestamp
  ) -> Bool {
    var isOneWay = false
    for index in 0..<blocks.count {
      guard let block = blocks.block(index, in: datagram), block.source.raw == stream.ssrc else { continue }
      if watch.peerHasReceived(block.highestSequence, sent: stream.packets, at: now) { isOneWay = true }
      reportedLossFraction = Double(block.fractionLost) / 256
      hasReport = true
      if let units = block.roundTrip(receivedAt: wallClock) {
        let milliseconds = Double(units) * 1_000 / 65_536
        roundTripMilliseconds = roundTripMilliseconds.map { $0 * 0.75 + milliseconds * 0.25 } ?? milliseconds
      }
    }
    return isOneWay
  }
}

/// Writes an SR (or, if no packet was sent, an RR) with SDES, and BYE at the end, into `room`; returns the number of octets.
func writeReport(
  stream: OutgoingStream, reception: inout ReceiverStatistics, cname: ContiguousArray<UInt8>, goodbye: Bool, at now: Instant,
  wallClock: NTPTimestamp, metrics: VoIPMetrics? = nil,
  into room: UnsafeMutableRawBufferPointer
) -> Int {
  let bytes = room.bindMemory(to: UInt8.self)
  var datagram = MutableSpan(_unsafeElements: UnsafeMutableBufferPointer(rebasing: bytes.prefix(Limits.packetBytes)))
  let source = SSRC(raw: stream.ssrc)
  let sender =
    stream.packets == 0
    ? nil
    : SenderInfo(
      ntp: wallClock, timestamp: RTPTimestamp(raw: stream.timestamp(at: now)),
      packets: UInt32(truncatingIfNeeded: stream.packets),
      octets: UInt32(truncatingIfNeeded: stream.bytes))
  var writer = RTCPWriter()
  guard writer.report(from: source, sender: sender, block: reception.report(at: now), into: &datagram),
    writer.description(of: source, cname: cname.span, into: &datagram)
  else { return 0 }
  if let metrics, let about = reception.source { _ = writer.voipMetrics(metrics, from: source, about: about, into: &datagram) }
  if goodbye { _ = writer.goodbye(from: source, into: &datagram) }
  return writer.count
}
