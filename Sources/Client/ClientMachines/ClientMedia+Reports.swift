import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineRTP
import TrunklineSDP
import TrunklineSRTP

/// RTCP in both directions: reports about the received streams.
extension ClientMedia {
  /// The gateway's report about our stream: the encoder adapts to it.
  mutating func receiveReports(_ datagram: Span<UInt8>, _ now: Instant) {
    var reader = RTCPReader()
    do throws(RTCPParseError) {
      while let packet = try reader.next(in: datagram) {
        switch packet {
        case .senderReport(let source, let info, let blocks):
          reception.senderReportReceived(info.ntp, from: source, at: now)
          handle(blocks, of: datagram, now)
        case .receiverReport(_, let blocks): handle(blocks, of: datagram, now)
        case .sourceDescription, .goodbye, .feedback, .other: break
        }
      }
    } catch { return }
  }

  private mutating func handle(_ blocks: ReportBlocks, of datagram: Span<UInt8>, _ now: Instant) {
    for index in 0..<blocks.count {
      guard let block = blocks.block(index, in: datagram), block.source.raw == negotiation.endpoint.ssrc else { continue }
      if let units = block.roundTrip(receivedAt: elapsed(now)) {
        let milliseconds = Double(units) * 1_000 / 65_536
        roundTrip = roundTrip.map { $0 * 0.75 + milliseconds * 0.25 } ?? milliseconds
        statistics.roundTripMilliseconds = roundTrip
        audioReceiver?.setPath(milliseconds: DelayPolicy.path(roundTrips: roundTrip, nil))
      }
      statistics.reportedLossFraction = Double(block.fractionLost) / 256
      encoder?.reported(lossFraction: Double(block.fractionLost) / 256, roundTripMilliseconds: roundTrip, at: now)
    }
  }

  /// Without a wall clock, a sender report contains the time since the start (RFC 3550 §6.4.1).
  private func elapsed(_ now: Instant) -> NTPTimestamp {
    let nanoseconds = UInt64(max(0, now.nanoseconds))
    let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    return NTPTimestamp(raw: seconds << 32 | (rest << 32) / 1_000_000_000)
  }

  mutating func sendReport(_ now: Instant, _ output: inout Output) {
    let interval = UInt64(Limits.reportInterval.nanoseconds)
    nextReport = now + .nanoseconds(Int64(interval / 2 + random.next() % interval))
    guard keys != nil, let pair = agent.nominatedPair else { return }
    var packet = ContiguousArray<UInt8>(repeating: 0, count: Limits.reportBytes)
    var count = write(&packet, now)
    let isProtected = packet.withUnsafeMutableBytes { buffer -> Bool in
      do throws(SRTPError) {
        try sender?.protectRTCP(buffer, count: &count)
        return true
      } catch { return false }
    }
    guard isProtected, sender != nil, count > 0 else { return }
    packet.withUnsafeBytes { bytes in
      emit(UnsafeRawBufferPointer(rebasing: bytes[..<count]), from: pair.local, to: pair.remote, &output)
    }
  }

  /// Writes the report and the CNAME (§6.1).
  private mutating func write(_ packet: inout ContiguousArray<UInt8>, _ now: Instant) -> Int {
    let ssrc = SSRC(raw: negotiation.endpoint.ssrc)
    let info = SenderInfo(
      ntp: elapsed(now), timestamp: RTPTimestamp(raw: timestamp), packets: UInt32(truncatingIfNeeded: statistics.sentPackets),
      octets: UInt32(truncatingIfNeeded: sentBytes))
    var writer = RTCPWriter()
    var room = packet.mutableSpan
    let isWritten =
      writer.report(from: ssrc, sender: statistics.sentPackets > 0 ? info : nil, block: reception.report(at: now), into: &room)
      && writer.description(of: ssrc, cname: ContiguousArray(negotiation.endpoint.cname.utf8).span, into: &room)
    return isWritten ? writer.count : 0
  }
}
