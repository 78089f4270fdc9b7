import Testing
import TrunklineBytes

@testable import trunkline_lab

@Suite struct RecordTraceTests {
  private func packet(_ number: Int, count: Int = 4, sent: Int64 = 1_000_000) -> TracePacket {
    TracePacket(number: number, count: count, packetMilliseconds: 20, sent: sent)
  }

  @Test(arguments: [10, 20, 30, 40, 60]) func `a packet has the size of G.711 and is read as it was written`(_ milliseconds: Int)
    throws
  {
    let packet = TracePacket(number: 70_000, count: 80_000, packetMilliseconds: milliseconds, sent: 1_234_567_890_123)
    #expect(packet.datagram.count == 12 + 8 * milliseconds)
    #expect(TracePacket(packet.datagram) == packet)
  }

  @Test func `what is no such packet is none, and nothing traps`() {
    let whole = packet(3).datagram
    var random = SplitMix64(seed: 5)
    var taken = 0
    for _ in 0..<20_000 {
      var octets = Array(whole.prefix(Int(random.next() % UInt64(whole.count + 1))))
      for _ in 0..<random.next() % 4 where !octets.isEmpty {
        octets[Int(random.next() % UInt64(octets.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      guard let read = TracePacket(octets) else { continue }
      taken += 1
      var recording = TraceRecording(count: read.count, packetMilliseconds: read.packetMilliseconds)
      _ = recording.add(read, at: .max / 16)
      recording.setFastest(milliseconds: 10_000)
      if read.count < 1_000 { #expect(!recording.csv.isEmpty) }
    }
    #expect(taken > 100)
  }

  @Test func `rows are in the order of sending, what came twice counts once, and a loss is one`() {
    var recording = TraceRecording(count: 4, packetMilliseconds: 20)
    let taken = [
      recording.add(packet(2, sent: 41_000_000), at: 72_500_000), recording.add(packet(0), at: 31_000_000),
      recording.add(packet(0), at: 99_000_000), recording.add(packet(3), at: 26_000_400),
      recording.add(packet(1, count: 5), at: 30_000_000),
    ]
    #expect(taken == [true, true, true, true, false], "the last is of another sender")
    #expect(recording.received == 3 && !recording.isComplete && recording.fastestMilliseconds == 25.0004)
    // Sent a millisecond late: no delay of the network's.
    #expect(recording.csv == "send_ms,arrival_ms\n0.000,30.000\n20.000,lost\n40.000,71.500\n60.000,85.000\n")
    recording.setFastest(milliseconds: 10)
    #expect(recording.csv == "send_ms,arrival_ms\n0.000,15.000\n20.000,lost\n40.000,56.500\n60.000,70.000\n")
  }
}
