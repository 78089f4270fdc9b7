import Testing
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineRTP

/// A buffer with 20 ms of units per packet whose payload is the packet's number, driven on virtual time.
final class Buffer {
  var buffer: PlayoutBuffer
  let packetUnits: Int
  /// Numbers of the fetched packets, in order; repaired ones negative.
  var fetched: [Int] = []
  init(clockRateHz: UInt32 = 8000, packetMilliseconds: Int = 20, carriesRepair: Bool = false) {
    buffer = PlayoutBuffer(clockRateHz: clockRateHz, carriesRepair: carriesRepair)
    packetUnits = Int(clockRateHz) / 1000 * packetMilliseconds
  }

  @discardableResult func insert(
    _ number: Int, at milliseconds: Int, ssrc: UInt32 = 1, timestamp: Int? = nil, length: Int = 8, repair: Bool = false,
    audio: Bool = true
  ) -> Insertion {
    let header = RTPHeader(
      payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: 65_530 + number)),
      timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: timestamp ?? 0xffff_ff00 + number * packetUnits)),
      ssrc: SSRC(raw: ssrc))
    var payload = (0..<8).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
    if length > 8 { payload += [UInt8](repeating: 0xee, count: length - 8) }
    return buffer.insert(
      header, payload: payload.span, duration: audio ? packetUnits : 0, carriesRepair: repair,
      at: .zero + .milliseconds(milliseconds))
  }

  enum Piece: Equatable {
    case packet(Int)
    case repair(Int, after: Int)
    case lost(Int)
    case pause, empty
  }

  @discardableResult func fetch(at milliseconds: Int) -> Piece {
    switch buffer.fetch(at: .zero + .milliseconds(milliseconds)) {
    case .packet(let packet):
      let number = number(packet)
      fetched.append(number)
      return .packet(number)
    case .repair(let units, let packet): return .repair(units, after: number(packet))
    case .lost(let units): return .lost(units)
    case .pause:
      buffer.madeUp(packetUnits)
      return .pause
    case .empty:
      buffer.madeUp(packetUnits)
      return .empty
    }
  }

  private func number(_ packet: FetchedPacket) -> Int {
    packet.payload.prefix(8).enumerated().reduce(0) { $0 | Int($1.element) << ($1.offset * 8) }
  }
  /// The number of the packet whose audio continues where made-up audio ends.
  var behind: Int? { buffer.packet(behind: 0).map(number) }
  var statistics: PlayoutStatistics { buffer.statistics }
}

@Suite struct PlayoutBufferTests {
  @Test func `packets come out in order across the wrap, whatever order they came in`() {
    let buffer = Buffer()
    for number in [0, 2, 1, 5, 4, 3, 7, 6] { #expect(buffer.insert(number, at: 10) == .stored) }
    for number in 0..<8 { #expect(buffer.fetch(at: 20 + number * 20) == .packet(number)) }
    #expect(buffer.fetch(at: 200) == .empty)
  }

  @Test func `one that overtakes the very first packet still comes first`() {
    let buffer = Buffer()
    buffer.insert(1, at: 0)
    buffer.insert(0, at: 1)
    #expect(buffer.fetch(at: 5) == .packet(0))
    #expect(buffer.fetch(at: 25) == .packet(1))
  }

  @Test func `before play-out packets further back than the buffer is long are late, not stored over others`() {
    let buffer = Buffer()
    for number in [100, 99, 140, 60, 65, 101] { buffer.insert(number, at: 0) }
    #expect(buffer.statistics.late == 2)
    #expect(buffer.buffer.depth == 4)
    for _ in 0..<60 { buffer.fetch(at: 2000) }
    #expect(buffer.fetched == [99, 100, 101, 140])
    #expect(buffer.buffer.depth == 0)
  }

  @Test func `duplicates and late packets are counted apart and never played`() {
    let buffer = Buffer()
    for number in 0..<4 where number != 2 { buffer.insert(number, at: number * 20) }
    #expect(buffer.insert(0, at: 61) == .duplicate)
    #expect(buffer.fetch(at: 62) == .packet(0))
    #expect(buffer.insert(0, at: 63) == .duplicate)
    #expect(buffer.fetch(at: 82) == .packet(1))
    // Made up for a tick, in case the packet was only overtaken; then it is given up.
    #expect(buffer.fetch(at: 102) == .empty)
    #expect(buffer.fetch(at: 122) == .packet(3))
    #expect(buffer.insert(2, at: 123) == .late)
    #expect(buffer.insert(2, at: 124) == .duplicate)
    #expect(buffer.statistics.late == 1 && buffer.statistics.duplicate == 3 && buffer.statistics.missing == 1)
  }

  @Test(arguments: [true, false]) func `with a little too much delay a packet lost in a pause is left out, one in speech made up`(
    _ isPause: Bool
  ) {
    // Odd packets come 30 ms later than even ones; the tick that plays a packet is 36 ms after its time.
    let (buffer, lost) = (Buffer(), 301)
    let arrivals = (0...lost + 1).filter { $0 != lost }.map { (at: $0 * 20 + $0 % 2 * 30, number: $0) }.sorted { $0.at < $1.at }
    var next = 0
    for tick in 0...lost {
      let now = tick * 20 + 36
      while next < arrivals.count, arrivals[next].at <= now {
        buffer.insert(arrivals[next].number, at: arrivals[next].at)
        next += 1
      }
      buffer.buffer.isPause = isPause
      guard tick < lost else { break }
      #expect(buffer.fetch(at: now) == .packet(tick))
      _ = buffer.buffer.decide(at: .zero + .milliseconds(now), pending: 0, tick: 160)
    }
    // 5 ms join the ends.
    #expect(buffer.fetch(at: lost * 20 + 36) == (isPause ? .lost(40) : .empty))
    #expect(buffer.statistics.leftOut == (isPause ? 1 : 0))
  }

  @Test func `one that was only overtaken is played after all, with what was made up before it`() {
    let buffer = Buffer()
    for number in [0, 2] { buffer.insert(number, at: number * 20) }
    #expect(buffer.fetch(at: 45) == .packet(0))
    #expect(buffer.fetch(at: 65) == .empty)
    buffer.insert(1, at: 70)
    #expect(buffer.fetch(at: 85) == .packet(1))
    #expect(buffer.fetch(at: 105) == .packet(2))
    #expect(buffer.statistics.late == 0 && buffer.statistics.missing == 0)
  }

  @Test func `audio that is missing with nothing newer there is waited for`() {
    let buffer = Buffer()
    buffer.insert(0, at: 0)
    #expect(buffer.fetch(at: 5) == .packet(0))
    #expect(buffer.fetch(at: 25) == .empty)
    buffer.insert(1, at: 30)
    #expect(buffer.fetch(at: 45) == .packet(1))
  }

  @Test func `audio made up while waiting replaces a packet that turns out lost`() {
    let buffer = Buffer()
    for number in 0..<20 {
      buffer.insert(number, at: number * 20)
      buffer.fetch(at: number * 20 + 5)
    }
    #expect(buffer.fetch(at: 405) == .empty)
    buffer.insert(21, at: 420)
    #expect(buffer.fetch(at: 425) == .packet(21))
  }

  @Test func `a lost packet is repaired from its successor, more lost ones are made up before it`() {
    let buffer = Buffer(clockRateHz: 48_000, carriesRepair: true)
    for number in [0, 2, 6] { buffer.insert(number, at: 100, repair: true) }
    #expect(buffer.fetch(at: 101) == .packet(0))
    #expect(buffer.fetch(at: 121) == .repair(960, after: 2))
    #expect(buffer.fetch(at: 141) == .packet(2))
    for tick in 8..<10 { #expect(buffer.fetch(at: tick * 20 + 1) == .empty) }
    #expect(buffer.fetch(at: 201) == .repair(960, after: 6))
    #expect(buffer.fetch(at: 221) == .packet(6))
    #expect(buffer.fetched == [0, 2, 6])
  }

  @Test func `a packet without a copy repairs nothing`() {
    let buffer = Buffer(clockRateHz: 48_000, carriesRepair: true)
    for number in [0, 2] { buffer.insert(number, at: 100, repair: false) }
    buffer.fetch(at: 101)
    #expect(buffer.fetch(at: 121) == .empty)
    #expect(buffer.fetch(at: 141) == .packet(2))
  }

  @Test(arguments: [21, 22]) func `the packet after a loss is reported when nothing else is missing`(_ next: Int) {
    let buffer = Buffer()
    for number in 0..<20 {
      buffer.insert(number, at: number * 20)
      buffer.fetch(at: number * 20 + 5)
    }
    #expect(buffer.fetch(at: 405) == .empty)
    #expect(buffer.behind == nil)
    buffer.insert(next, at: 425)
    #expect(buffer.behind == (next == 21 ? 21 : nil))
    #expect(buffer.fetch(at: 425) == (next == 21 ? .packet(21) : .empty))
    #expect(buffer.behind == (next == 21 ? nil : 22))
  }

  @Test func `a packet of another kind in the sequence is not a loss`() {
    let buffer = Buffer()
    buffer.insert(0, at: 0)
    buffer.insert(1, at: 20, length: 8, audio: false)
    buffer.insert(2, at: 20)
    #expect(buffer.fetch(at: 25) == .packet(0))
    #expect(buffer.fetch(at: 45) == .pause || buffer.fetched.last == 2)
    while buffer.fetched.last != 2 { _ = buffer.fetch(at: 65) }
    #expect(buffer.statistics.missing == 0)
  }

  @Test func `after a pause of the talker the next spurt is played at once when it is due`() {
    let buffer = Buffer()
    for number in 0..<30 {
      buffer.insert(number, at: number * 20)
      buffer.fetch(at: number * 20 + 5)
    }
    for tick in 30..<80 { #expect(buffer.fetch(at: tick * 20 + 5) == .empty) }
    // The sequence number continues, the timestamp jumps by the pause (DTX).
    buffer.insert(30, at: 1600, timestamp: 0xffff_ff00 + 80 * 160)
    #expect(buffer.fetch(at: 1605) == .packet(30))
    #expect(buffer.statistics.missing == 0)
  }

  @Test func `large payloads have a pool of their own, beyond which they are refused`() {
    let buffer = Buffer(packetMilliseconds: 60)
    for number in 0..<20 { buffer.insert(number, at: number, length: 480) }
    #expect(buffer.statistics.refused == 20 - UInt64(TrunklineJitterBuffer.Limits.largePackets))
    // Packets that are too far back are dropped at once, the rest is played.
    for tick in 0..<TrunklineJitterBuffer.Limits.largePackets { buffer.fetch(at: 20 + tick * 60) }
    #expect(buffer.fetched.last == TrunklineJitterBuffer.Limits.largePackets - 1 && buffer.buffer.depth == 0)
    for number in 20..<25 { #expect(buffer.insert(number, at: 1300, length: 480) == .stored) }
    #expect(buffer.insert(26, at: 1301, length: 4000) == .refused)
  }

  @Test func `beyond its size the oldest packets are dropped and counted`() {
    let buffer = Buffer()
    for number in 0..<100 { buffer.insert(number, at: 0) }
    #expect(buffer.buffer.depth <= TrunklineJitterBuffer.Limits.packets)
    #expect(buffer.statistics.overflowed >= 36)
    guard case .packet(let first) = buffer.fetch(at: 10) else {
      Issue.record("no packet")
      return
    }
    #expect(first >= 36)
  }

  @Test func `another source is followed from its third packet once the present one is overdue, fewer packets change nothing`() {
    let buffer = Buffer()
    for number in 0..<5 { buffer.insert(number, at: number * 20) }
    #expect(buffer.insert(500, at: 85, ssrc: 2) == .outOfRange)
    #expect(buffer.insert(501, at: 90, ssrc: 2) == .outOfRange)
    #expect(buffer.insert(5, at: 100) == .stored)
    #expect(buffer.insert(700, at: 115, ssrc: 3) == .outOfRange)
    #expect(buffer.insert(701, at: 135, ssrc: 3) == .outOfRange)
    #expect(buffer.insert(702, at: 155, ssrc: 3) == .resynchronised)
    #expect(buffer.fetch(at: 160) == .packet(702))
  }

  @Test func `of two sources that send at once one is played whole`() {
    let buffer = Buffer()
    for number in 0..<100 {
      buffer.insert(number, at: number * 20)
      #expect(buffer.insert(9_000 + number, at: number * 20 + 9, ssrc: 2) == .outOfRange)
      #expect(buffer.fetch(at: number * 20 + 12) == .packet(number))
    }
    #expect(buffer.statistics.resynchronised == 0)
  }

  @Test func `numbers and timestamps that jump far back together are a new stream, not 8,000 packets that are late`() {
    let buffer = Buffer()
    for number in 10_000..<10_050 {
      buffer.insert(number, at: (number - 10_000) * 20)
      _ = buffer.fetch(at: (number - 10_000) * 20 + 5)
    }
    #expect(buffer.insert(2_050, at: 1_000) == .outOfRange)
    #expect(buffer.insert(2_051, at: 1_020) == .resynchronised)
    #expect(buffer.fetch(at: 1_025) == .packet(2_051))
  }

  @Test(arguments: [(480, 960), (160, 960), (1_920, 960)])
  func `a sender that stamps by another clock is followed: a lost packet is a gap of its length`(_ step: Int, _ duration: Int) {
    var buffer = PlayoutBuffer(clockRateHz: 48_000, carriesRepair: false)
    var lost = 0
    let payload = [UInt8](repeating: 1, count: 60)
    for number in 0..<200 {
      let now = Instant.zero + .milliseconds(number * 20)
      if number < 100 || number % 10 != 0 {
        let header = RTPHeader(
          payloadType: 111, marker: false, sequence: SequenceNumber(raw: UInt16(number)),
          timestamp: RTPTimestamp(raw: UInt32(number * step)), ssrc: SSRC(raw: 1))
        _ = buffer.insert(header, payload: payload.span, duration: duration, at: now)
      }
      var pending = 0
      while pending < 960 {
        switch buffer.fetch(at: now + .milliseconds(5)) {
        case .packet(let packet): pending += packet.duration
        case .lost(let units), .repair(let units, _):
          pending += units
          lost += units
        case .empty, .pause:
          buffer.madeUp(960 - pending)
          if number >= 100 { lost += 960 - pending }
          pending = 960
        }
      }
    }
    #expect(lost >= 9 * 960 && lost <= 12 * 960, "\(lost) units for 10 packets")
    #expect(buffer.statistics.resynchronised == 0)
  }

  @Test func `another source after 100 ms of silence is followed at once`() {
    let buffer = Buffer()
    buffer.insert(0, at: 0)
    buffer.fetch(at: 5)
    #expect(buffer.insert(9000, at: 120, ssrc: 2) == .resynchronised)
    #expect(buffer.fetch(at: 125) == .packet(9000))
  }

  @Test(arguments: [-90_000, 90_000, 1_000_000])
  func `a timestamp jump is followed within a packet`(_ jump: Int) {
    let buffer = Buffer()
    for number in 0..<10 {
      buffer.insert(number, at: number * 20)
      #expect(buffer.fetch(at: number * 20 + 5) == .packet(number))
    }
    for number in 10..<20 {
      buffer.insert(number, at: number * 20, timestamp: 0xffff_ff00 + number * 160 + jump)
      #expect(buffer.fetch(at: number * 20 + 5) == .packet(number))
    }
    #expect(buffer.statistics.resynchronised == 1)
  }

  @Test func `a reset forgets the stream`() {
    let buffer = Buffer()
    for number in 0..<5 { buffer.insert(number, at: 0) }
    buffer.buffer.reset()
    #expect(buffer.fetch(at: 5) == .empty)
    #expect(buffer.insert(30_000, at: 10, ssrc: 9) == .stored)
    #expect(buffer.fetch(at: 15) == .packet(30_000))
  }
}
