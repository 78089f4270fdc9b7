import Testing
import TrunklineBytes
import TrunklineRTP
import TrunklineSDP
import TrunklineSRTP

@testable import TrunklineClientMachines

@Suite struct SentStreamTests {
  /// The packet in the clear; nil: none was sent.
  private func send(_ stream: inout SentStream, _ keys: inout ClientKeys, _ receiver: inout SRTPReceiver) -> RTPHeader? {
    var sent: [UInt8] = []
    let isSent = [7 as UInt8, 8].withUnsafeBytes { stream.send($0, under: &keys) { sent = Array($0) } }
    guard isSent else { return nil }
    var count = sent.count
    holds(sent.withUnsafeMutableBytes { (try? receiver.unprotect($0, count: &count)) != nil })
    #expect(Array(sent[12..<count]) == [7, 8])
    return try? RTPHeader(parsing: sent.span.extracting(..<count))
  }
  private func stream() -> SentStream { SentStream(ssrc: 7, random: .seeded(4)) }

  @Test func `before the agreement and without keys nothing is sent, and after it the clock runs`() throws {
    var stream = stream()
    var keys = ClientKeys()
    var receiver = try SRTPReceiver(.aeadAES128GCM, keyMaterial(1).client)
    let first = stream.timestamp
    stream.skip()
    stream.skip(units: 160)
    holds(send(&stream, &keys, &receiver) == nil && !stream.isAgreed && stream.timestamp == first)
    stream.agree(try agreed(.opus))
    holds(send(&stream, &keys, &receiver) == nil && stream.isAgreed && stream.timestamp == first &+ 960)
    stream.skip()
    stream.skip(units: 160)
    #expect(stream.timestamp == first &+ 2_080 && stream.packets == 0 && stream.octets == 0)
  }

  @Test func `packets are numbered without a gap, the first is marked, and skipped time is in the timestamps`() throws {
    var stream = stream()
    var keys = ClientKeys()
    var receiver = try SRTPReceiver(.aeadAES128GCM, keyMaterial(1).client)
    holds(try keys.install(keyMaterial(1)))
    stream.agree(try agreed(.pcmu))
    let first = try #require(send(&stream, &keys, &receiver))
    stream.skip()
    let second = try #require(send(&stream, &keys, &receiver))
    #expect(first.marker && !second.marker && first.ssrc.raw == 7 && first.payloadType == 0)
    #expect(second.sequence.raw == first.sequence.raw &+ 1 && second.timestamp.raw == first.timestamp.raw &+ 320)
    stream.agree(try agreed(.opus))
    stream.agree(try agreed(.opus))
    let third = try #require(send(&stream, &keys, &receiver))
    #expect(third.sequence.raw == first.sequence.raw &+ 2 && third.timestamp.raw == first.timestamp.raw &+ 480)
    #expect(third.payloadType != 0 && !third.marker && stream.packets == 3 && stream.octets == 6)
  }

  @Test func `a payload that has no room is not sent`() throws {
    var stream = stream()
    var keys = ClientKeys()
    holds(try keys.install(keyMaterial(1)))
    stream.agree(try agreed(.opus))
    let payload = [UInt8](repeating: 1, count: Limits.packetBytes)
    holds(!payload.withUnsafeBytes { stream.send($0, under: &keys) { _ in Issue.record("sent") } } && stream.packets == 0)
  }
}

@Suite struct ReceivedStreamTests {
  @Test func `before the agreement nothing is counted or audio`() {
    var stream = ReceivedStream()
    holds(stream.receive(header(0, 1), payloadBytes: 160, at: seconds(1)) == nil && stream.packets == 0 && stream.bytes == 0)
    stream.pressed([9 as UInt8].span, RTPTimestamp(raw: 0), at: seconds(1))
    holds(stream.digits.isEmpty && stream.block(at: seconds(1)) == nil)
  }

  @Test func `a packet is what its payload type says, and all are counted`() throws {
    var stream = ReceivedStream()
    let media = try agreed(.opus)
    stream.agree(media)
    let (audio, event) = (media.payloadType, try #require(media.telephoneEvent48))
    holds(stream.receive(header(audio, 1), payloadBytes: 10, at: seconds(1)) == .audio)
    holds(stream.receive(header(event, 2), payloadBytes: 4, at: seconds(1.02)) == .event)
    holds(stream.receive(header(99, 3), payloadBytes: 1, at: seconds(1.04)) == .other)
    holds(stream.receive(header(audio, 6), payloadBytes: 10, at: seconds(1.1)) == .audio)
    #expect(stream.packets == 4 && stream.bytes == 25 && stream.lost == 2)
    holds(stream.block(at: seconds(2)) != nil)
  }

  @Test func `another encoding is measured from its first packet on, and the counts stay until then`() throws {
    var stream = ReceivedStream()
    let (first, second) = (try agreed(.opus), try agreed(.pcmu))
    stream.agree(first)
    for number: UInt16 in [1, 2, 5] { _ = stream.receive(header(first.payloadType, number), payloadBytes: 1, at: seconds(1)) }
    stream.agree(first)
    _ = stream.receive(header(first.payloadType, 6), payloadBytes: 1, at: seconds(1.1))
    #expect(stream.packets == 4 && stream.lost == 2, "the same encoding again")
    stream.agree(second)
    #expect(stream.packets == 4 && stream.lost == 2)
    holds(stream.receive(header(second.payloadType, 7), payloadBytes: 1, at: seconds(1.2)) == .audio)
    #expect(stream.packets == 1 && stream.lost == 0 && stream.bytes == 5)
  }

  @Test func `a pressed key counts once, whatever is repeated`() throws {
    var stream = ReceivedStream()
    stream.agree(try agreed(.opus))
    // RFC 4733 §2.3: event, end bit and volume, duration
    let (begin, end) = ([5, 10, 3, 0xc0] as [UInt8], [5, 0x8a, 6, 0x80] as [UInt8])
    for payload in [begin, begin, end, end, end] { stream.pressed(payload.span, RTPTimestamp(raw: 960), at: seconds(1)) }
    #expect(stream.digits == "5")
    for payload in [end, [5], []] as [[UInt8]] { stream.pressed(payload.span, RTPTimestamp(raw: 9_600), at: seconds(2)) }
    #expect(stream.digits == "55")
  }
}

@Suite struct ClientReportsTests {
  @Test func `reports are due from the beginning to the end, at random intervals`() {
    var reports = ClientReports()
    holds(!reports.isDue(at: seconds(99), random: .seeded(1)) && reports.nextDue == nil)
    reports.begin(at: seconds(1))
    reports.begin(at: seconds(9))
    #expect(reports.nextDue == seconds(2))
    holds(!reports.isDue(at: seconds(1.9), random: .seeded(1)) && reports.isDue(at: seconds(2), random: .seeded(1)))
    holds(!reports.isDue(at: seconds(2), random: .seeded(1)))
    #expect(reports.nextDue.map { $0 >= seconds(3) && $0 < seconds(5) } == true)
    for _ in 0..<2 { reports.stop() }
    holds(!reports.isDue(at: seconds(99), random: .seeded(1)))
    reports.begin(at: seconds(100))
    #expect(reports.nextDue == seconds(101))
  }

  @Test func `the round trip is that of ICE until a report has one, then smoothed, and ICE's again after a restart`() {
    var reports = ClientReports()
    #expect(reports.roundTripMilliseconds == nil && reports.reportedLossFraction == nil)
    reports.connected(roundTripMilliseconds: 50)
    holds(reports.measured(roundTripMilliseconds: nil, lossFraction: 0.5) == nil, "the gateway has no report of ours yet")
    #expect(reports.roundTripMilliseconds == 50 && reports.reportedLossFraction == 0.5)
    holds(reports.measured(roundTripMilliseconds: 100, lossFraction: 0) == 100)
    holds(reports.measured(roundTripMilliseconds: 20, lossFraction: 0) == 80 && reports.roundTripMilliseconds == 80)
    reports.connected(roundTripMilliseconds: nil)
    #expect(reports.roundTripMilliseconds == nil && reports.reportedLossFraction == 0)
    holds(reports.measured(roundTripMilliseconds: nil, lossFraction: 0) == 80 && reports.roundTripMilliseconds == nil)
  }
}
