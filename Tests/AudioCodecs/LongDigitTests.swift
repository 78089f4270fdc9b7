import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

/// What RFC 4733 allows beyond the plain case, and what peers do beyond RFC 4733.
@Suite struct LongDigitTests {
  private func at(_ milliseconds: Int) -> Instant { Instant(nanoseconds: 1_000_000_000 + Int64(milliseconds) * 1_000_000) }
  private func event(_ code: UInt8, _ duration: Int, end: Bool = false) -> TelephoneEvent {
    TelephoneEvent(event: code, isEnd: end, volume: 10, duration: UInt16(truncatingIfNeeded: duration))
  }

  /// A key held for `milliseconds` as a sender with segments makes it; `lost` packets do not arrive.
  private func held(_ milliseconds: Int, clock: UInt32, lost: (Int) -> Bool = { _ in false }) -> [ReceivedDigit] {
    var receiver = DigitReceiver(clockRateHz: clock)
    var digits: [ReceivedDigit] = []
    let total = milliseconds / 20
    for tick in 1...total + 2 {
      let units = min(tick, total) * Int(clock) / 50
      let segment = (units - 1) / 65_535
      let packet = event(5, units - segment * 65_535, end: tick >= total)
      guard !lost(tick) else { continue }
      let timestamp = RTPTimestamp(raw: 0xffff_f000 &+ UInt32(segment * 65_535))
      if let digit = receiver.receive(packet, timestamp: timestamp, at: at(tick * 20)) { digits.append(digit) }
    }
    if let digit = receiver.expire(at: at(total * 20 + 1_000)) { digits.append(digit) }
    return digits
  }

  @Test(arguments: [(12_000, 8_000), (6_000, 48_000), (30_000, 48_000)])
  func `a key held for longer than 16 bits is one digit of its whole length`(milliseconds: Int, clock: Int) {
    let digits = held(milliseconds, clock: UInt32(clock))
    #expect(digits.count == 1)
    #expect(abs(digits[0].durationMilliseconds - milliseconds) <= 20)
  }

  @Test func `lost packets around a segment's end make no second digit`() {
    #expect(held(6_000, clock: 48_000, lost: { $0 >= 66 && $0 <= 75 }).map(\.durationMilliseconds) == [6_000])
    #expect(held(6_000, clock: 48_000, lost: { $0 >= 298 }).count == 1, "all ends lost")
  }

  @Test func `a counter that goes round under one timestamp is one digit`() {
    var receiver = DigitReceiver(clockRateHz: 8_000)
    var digits: [ReceivedDigit] = []
    for tick in 1...500 {
      let packet = event(7, tick * 160, end: tick == 500)
      if let digit = receiver.receive(packet, timestamp: RTPTimestamp(raw: 77), at: at(tick * 20)) { digits.append(digit) }
    }
    #expect(digits == [ReceivedDigit(digit: UInt8(ascii: "7"), durationMilliseconds: 10_000)])
  }

  @Test func `a peer that moves the timestamp with each packet still sends one digit`() {
    var receiver = DigitReceiver(clockRateHz: 8_000)
    var digits: [ReceivedDigit] = []
    for tick in 1...8 {
      let packet = event(3, min(tick, 6) * 160, end: tick >= 6)
      let timestamp = RTPTimestamp(raw: 1_000 + UInt32(tick) * 160)
      if let digit = receiver.receive(packet, timestamp: timestamp, at: at(tick * 20)) { digits.append(digit) }
    }
    #expect(digits.count == 1)
  }

  @Test func `the same key twice with lost ends is two digits`() {
    var receiver = DigitReceiver(clockRateHz: 8_000)
    var digits: [ReceivedDigit] = []
    for press in 0..<2 {
      for tick in 1...5 {
        let timestamp = RTPTimestamp(raw: UInt32(press * 2_400))
        if let digit = receiver.receive(event(3, tick * 160), timestamp: timestamp, at: at(press * 300 + tick * 20)) {
          digits.append(digit)
        }
      }
    }
    if let digit = receiver.expire(at: at(2_000)) { digits.append(digit) }
    #expect(digits.count == 2)
  }

  @Test(arguments: [8_000, 48_000]) func `a long digit of ours goes out in segments of one press`(clock: Int) {
    var sender = DigitSender(clockRateHz: UInt32(clock))
    let isQueued = sender.enqueue(UInt8(ascii: "9"), durationMilliseconds: 5_000)
    #expect(isQueued)
    var receiver = DigitReceiver(clockRateHz: UInt32(clock))
    var digits: [ReceivedDigit] = []
    var markers = 0
    for tick in 0..<300 {
      guard let packet = sender.tick() else { continue }
      if packet.marker { markers += 1 }
      let timestamp = RTPTimestamp(raw: 500 + UInt32(tick * clock / 50)).advanced(by: -packet.timestampLag)
      if let digit = receiver.receive(packet.event, timestamp: timestamp, at: at(tick * 20)) { digits.append(digit) }
    }
    #expect(digits == [ReceivedDigit(digit: UInt8(ascii: "9"), durationMilliseconds: 5_000)])
    #expect(markers == 1)
  }

  @Test func `several events of one packet are read in their order`() {
    let payload: [UInt8] = [1, 0x8a, 0x03, 0x20, 2, 0x0a, 0x01, 0x40, 9, 9]
    #expect(TelephoneEvent.count(in: payload.span) == 2)
    #expect(TelephoneEvent(parsing: payload.span) == event(1, 800, end: true))
    #expect(TelephoneEvent(parsing: payload.span, at: 1) == event(2, 320))
    #expect(TelephoneEvent(parsing: payload.span, at: 2) == nil)
    #expect(TelephoneEvent(parsing: payload.span, at: -1) == nil)
    let many = [UInt8](repeating: 0, count: 1_400)
    #expect(TelephoneEvent.count(in: many.span) == 16)
  }
}
