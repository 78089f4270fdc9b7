import TrunklineBytes
import TrunklineICE
import TrunklineJitterBuffer
import TrunklineRTP
import TrunklineSDP

/// RTCP in both directions: reports about the received streams.
extension ClientMedia {
  /// The gateway's report about our stream: the encoder adapts to it.
  mutating func receiveReports(_ datagram: Span<UInt8>, _ now: Instant) {
    var reader = RTCPReader()
    do throws(RTCPParseError) {
      while let packet = try reader.next(in: datagram) {
        switch packet {
        case .senderReport(let source, let info, let blocks):
          received.senderReportReceived(info.ntp, from: source, at: now)
          handle(blocks, of: datagram, now)
        case .receiverReport(_, let blocks): handle(blocks, of: datagram, now)
        case .sourceDescription, .goodbye, .feedback, .other: break
        }
      }
    } catch { return }
  }

  private mutating func handle(_ blocks: ReportBlocks, of datagram: Span<UInt8>, _ now: Instant) {
    for index in 0..<blocks.count {
      guard let block = blocks.block(index, in: datagram), block.source.raw == sent.ssrc else { continue }
      let loss = Double(block.fractionLost) / 256
      let measured = block.roundTrip(receivedAt: elapsed(now)).map { Double($0) * 1_000 / 65_536 }
      let trip = reports.measured(roundTripMilliseconds: measured, lossFraction: loss)
      if measured != nil { played.setPath(milliseconds: DelayPolicy.path(roundTrips: trip, nil)) }
      captured.reported(lossFraction: loss, roundTripMilliseconds: trip, at: now)
    }
  }

  /// Without a wall clock, a sender report contains the time since the start (RFC 3550 §6.4.1).
  private func elapsed(_ now: Instant) -> NTPTimestamp {
    let nanoseconds = UInt64(max(0, now.nanoseconds))
    let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
    return NTPTimestamp(raw: seconds << 32 | (rest << 32) / 1_000_000_000)
  }

  mutating func sendReport(_ now: Instant, _ output: inout Output) {
    guard keys.isInstalled, let pair = agent.nominatedPair else { return }
    var packet = ContiguousArray<UInt8>(repeating: 0, count: Limits.reportBytes)
    var count = write(&packet, now)
    guard count > 0, packet.withUnsafeMutableBytes({ keys.protectRTCP($0, count: &count) }) else { return }
    packet.withUnsafeBytes { bytes in
      relays.send(UnsafeRawBufferPointer(rebasing: bytes[..<count]), from: pair.local, to: pair.remote, into: &output)
    }
  }

  /// Writes the report and the CNAME (§6.1).
  private mutating func write(_ packet: inout ContiguousArray<UInt8>, _ now: Instant) -> Int {
    let ssrc = SSRC(raw: sent.ssrc)
    let info = SenderInfo(
      ntp: elapsed(now), timestamp: RTPTimestamp(raw: sent.timestamp), packets: UInt32(truncatingIfNeeded: sent.packets),
      octets: UInt32(truncatingIfNeeded: sent.octets))
    var writer = RTCPWriter()
    var room = packet.mutableSpan
    let isWritten =
      writer.report(from: ssrc, sender: sent.packets > 0 ? info : nil, block: received.block(at: now), into: &room)
      && writer.description(of: ssrc, cname: ContiguousArray(negotiation.endpoint.cname.utf8).span, into: &room)
    return isWritten ? writer.count : 0
  }
}
