import Synchronization
import Testing
import TrunklineBytes
import TrunklineSIPDialogs

@testable import TrunklineSIPTrace

@Suite struct TraceTests {
  private final class Clock: Sendable {
    let now = Mutex(Instant.zero)
    func advance(_ time: Duration) { now.withLock { $0 = $0 + time } }
    func read() -> (Instant, Int64) { now.withLock { ($0, 1_700_000_000_000_000 + $0.nanoseconds / 1_000) } }
  }
  private let clock = Clock()
  private let desk: TraceCollector
  private let flow = Flow(
    transport: .udp, local: SocketAddress(IPAddress(192, 0, 2, 1), 5060), remote: SocketAddress(IPAddress(192, 0, 2, 9), 5070))

  init() { desk = TraceCollector(application: "test", clock: { [clock] in clock.read() }) }

  private func message(_ callID: String, _ more: String = "", pad: Int = 0) -> [UInt8] {
    Array("OPTIONS sip:a SIP/2.0\r\ni : \(callID) \r\n\(more)\r\n\(String(repeating: "p", count: pad))".utf8)
  }

  private func see(
    _ callID: String, _ more: String = "", trunk: String = "carrier", flow: Flow? = nil, isOurs: Bool = false, pad: Int = 0
  ) {
    desk.saw(message(callID, more, pad: pad), flow ?? self.flow, isOurs: isOurs, trunk: trunk)
  }

  private func all(_ id: UInt64) -> Capture {
    var bytes: [UInt8] = []
    while let piece = desk.read(id), bytes.count < 1 << 24 { bytes += piece }
    return Capture(bytes)
  }

  @Test func `a trunk's messages are packets with real addresses, times and comments`() throws {
    let id = try desk.start(.trunk("carrier"), for: .seconds(60), bytes: 1 << 20)
    let call = Identifier(high: 1, low: 2)
    desk.began(call, callID: "a@b")
    see("a@b")
    see("other", trunk: "elsewhere")
    clock.advance(.milliseconds(1_500))
    see("c@d", isOurs: true)
    desk.stop(id)
    see("late")
    let capture = all(id)
    #expect(capture.isWhole)
    #expect(capture.packets.count == 2)
    let first = capture.packets[0], second = capture.packets[1]
    #expect(first.at == 1_700_000_000_000_000 && second.at == first.at + 1_500_000)
    #expect(first.comment == "trunk carrier, Call-ID a@b, call \(call)")
    #expect(second.comment == "trunk carrier, Call-ID c@d")
    #expect(first.data[12..<20].elementsEqual([192, 0, 2, 9, 192, 0, 2, 1]))
    #expect(second.data[12..<20].elementsEqual([192, 0, 2, 1, 192, 0, 2, 9]))
    #expect(first.data[20..<24].elementsEqual([0x13, 0xCE, 0x13, 0xC4]))
    #expect(Array(first.data[28...]) == message("a@b"))
    #expect(capture.end == "trace of trunk carrier: 2 messages, none dropped; it was stopped")
    #expect(desk.read(id) == nil && !desk.stop(id))
  }

  @Test func `one call's trace holds its Call-IDs and nothing else`() throws {
    let id = try desk.start(.call(id: "x", callIDs: ["a@b"]), for: .seconds(60), bytes: 1 << 20)
    see("a@b")
    see("a@bc")
    see("c@d")
    desk.stop(id)
    #expect(all(id).packets.count == 1)
  }

  @Test func `secrets are masked in the file and not in the message`() throws {
    let id = try desk.start(.trunk("carrier"), for: .seconds(60), bytes: 1 << 20)
    see("a", "Authorization: Digest response=\"0123456789\"\r\n")
    desk.stop(id)
    let data = all(id).packets[0].data
    #expect(Array(data[28...]) == message("a", "Authorization: Digest response=\"xxxxxxxxxx\"\r\n"))
  }

  @Test func `a trace ends when its time is over, when its file is full and when nobody reads it`() throws {
    let timed = try desk.start(.trunk("carrier"), for: .seconds(10), bytes: 1 << 20)
    clock.advance(.seconds(10))
    see("late")
    let file = all(timed)
    #expect(file.packets.isEmpty && file.end.hasSuffix("its time is over"))

    let full = try desk.start(.trunk("carrier"), for: .seconds(60), bytes: 2_000)
    for _ in 0..<9 { see("a", pad: 800) }
    let cut = all(full)
    #expect(cut.packets.count == 3)
    #expect(cut.end == "trace of trunk carrier: 9 messages, 6 dropped; the file reached its size")

    let unread = try desk.start(.trunk("carrier"), for: .seconds(60), bytes: 1 << 20)
    clock.advance(.seconds(16))
    see("a")
    #expect(all(unread).end.hasSuffix("its reader does not read"))
  }

  @Test func `a reader that does not keep up costs messages, which are counted`() throws {
    let id = try desk.start(.trunk("carrier"), for: .seconds(60), bytes: 64 << 20)
    for _ in 0..<(Limits.waitingMessages + 5) { see("a") }
    desk.stop(id)
    let capture = all(id)
    #expect(capture.packets.count == Limits.waitingMessages)
    #expect(capture.end.contains("\(Limits.waitingMessages + 5) messages, 5 dropped"))
  }

  @Test func `there are few traces at a time, and an abandoned one makes room`() throws {
    for _ in 0..<Limits.traces { _ = try desk.start(.trunk("carrier"), for: .seconds(60), bytes: 1 << 20) }
    #expect(throws: TraceCollector.Refusal.tooMany) { try desk.start(.trunk("carrier"), for: .seconds(60), bytes: 1 << 20) }
    clock.advance(.seconds(16))
    _ = try desk.start(.trunk("carrier"), for: .seconds(60), bytes: 1 << 20)
  }

  @Test func `a stream's messages count its bytes, a long one goes into several packets, IPv6 keeps its addresses`() throws {
    let id = try desk.start(.trunk("carrier"), for: .seconds(60), bytes: 1 << 20)
    let six = Flow(
      transport: .tls, local: SocketAddress(IPAddress(v6High: 1, low: 1), 5061),
      remote: SocketAddress(IPAddress(v6High: 1, low: 2), 5071))
    see("a", flow: six, pad: Limits.segmentBytes)
    see("b", flow: six, isOurs: true)
    see("c", flow: six)
    desk.stop(id)
    let packets = all(id).packets
    #expect(packets.count == 4)
    func number(_ data: [UInt8], _ offset: Int) -> UInt32 { data[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) } }
    let length = UInt32(message("a", pad: Limits.segmentBytes).count)
    #expect(packets.map { number($0.data, 44) } == [1, 1 + UInt32(Limits.segmentBytes), 1, 1 + length])
    #expect(number(packets[2].data, 48) == 1 + length)
    #expect(packets[0].data[0] == 0x60 && packets[0].data[6] == 6)
    #expect(packets[0].comment.hasSuffix("decrypted"))
    for packet in packets { #expect(packet.hasRightTransportChecksum) }
  }
}

/// What a reader of pcapng sees.
private struct Capture {
  struct Packet {
    var at: Int64
    var data: [UInt8]
    var comment: String

    /// Over the IPv6 pseudo-header.
    var hasRightTransportChecksum: Bool {
      var bytes = Array(data[8..<40]) + [0, data[6]] + Array(data[4..<6]) + Array(data[40...])
      if bytes.count % 2 == 1 { bytes.append(0) }
      var sum = 0
      for index in stride(from: 0, to: bytes.count, by: 2) { sum += Int(bytes[index]) << 8 + Int(bytes[index + 1]) }
      while sum > 0xFFFF { sum = (sum & 0xFFFF) + (sum >> 16) }
      return sum == 0xFFFF
    }
  }
  var packets: [Packet] = []
  var end = ""
  /// Header and interface first, statistics last, every length the same at both ends of its block.
  var isWhole = false

  init(_ bytes: [UInt8]) {
    func number(_ offset: Int) -> Int { (0..<4).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) } }
    func comment(_ offset: Int, _ limit: Int) -> String {
      var offset = offset
      while offset + 4 <= limit {
        let (code, count) = (number(offset) & 0xFFFF, number(offset) >> 16)
        if code == 1 { return String(decoding: bytes[(offset + 4)..<(offset + 4 + count)], as: UTF8.self) }
        if code == 0 { break }
        offset += 4 + (count + 3) & ~3
      }
      return ""
    }
    var types: [Int] = []
    var offset = 0
    while offset + 12 <= bytes.count {
      let (type, length) = (number(offset), number(offset + 4))
      guard length >= 12, offset + length <= bytes.count, number(offset + length - 4) == length else { return }
      types.append(type)
      if type == 6 {
        let count = number(offset + 20)
        let start = offset + 28
        packets.append(
          Packet(
            at: Int64(number(offset + 12)) << 32 | Int64(number(offset + 16)), data: Array(bytes[start..<(start + count)]),
            comment: comment(start + (count + 3) & ~3, offset + length - 4)))
      }
      if type == 5 { end = comment(offset + 20, offset + length - 4) }
      offset += length
    }
    isWhole = offset == bytes.count && types.first == 0x0A0D_0D0A && types.dropFirst().first == 1 && types.last == 5
  }
}
