import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@Suite struct DigitTests {
  /// Runs a sender for `ticks` ticks and returns each tick's packet.
  func play(_ digits: String, duration: Int, gap: Int, clockRateHz: UInt32 = 8000, ticks: Int) -> [DigitPacket?] {
    var sender = DigitSender(clockRateHz: clockRateHz)
    for digit in digits.utf8 { #expect(enqueue(&sender, digit, duration, gap)) }
    return (0..<ticks).map { _ in sender.tick() }
  }
  func enqueue(_ sender: inout DigitSender, _ digit: UInt8, _ duration: Int, _ gap: Int) -> Bool {
    sender.enqueue(digit, durationMilliseconds: duration, gapMilliseconds: gap)
  }

  @Test func `a digit is a marked first packet, updates and three equal ends on one timestamp`() throws {
    let packets = play("5", duration: 100, gap: 80, ticks: 20)
    let sent = packets.compactMap { $0 }
    #expect(sent.count == 8)
    #expect(sent.map(\.marker) == [true] + [Bool](repeating: false, count: 7))
    #expect(sent.map(\.event.duration) == [160, 320, 480, 640, 800, 800, 800, 800])
    #expect(sent.map(\.event.isEnd) == [false, false, false, false, false, true, true, true])
    #expect(sent.allSatisfy { $0.event.event == 5 })
    // The tick's own timestamp minus the lag is the same for all.
    #expect(Set(sent.enumerated().map { $0.offset * 160 - $0.element.timestampLag }) == [0])
  }

  @Test func `digits follow each other after the gap and at another clock rate`() {
    let packets = play("1#", duration: 60, gap: 60, clockRateHz: 48_000, ticks: 20)
    let starts = packets.enumerated().filter { $0.element?.marker == true }.map(\.offset)
    #expect(starts.count == 2)
    // 60 ms of digit, 60 ms of gap.
    #expect(starts.first == 0 && starts.last == 6)
    #expect(packets[1]?.event.duration == 1920)
  }

  @Test func `other characters and a full queue are refused`() {
    var sender = DigitSender()
    #expect(!enqueue(&sender, UInt8(ascii: "x"), 100, 100))
    for _ in 0..<TrunklineAudioCodecs.Limits.queuedDigits { #expect(enqueue(&sender, UInt8(ascii: "1"), 100, 100)) }
    #expect(!enqueue(&sender, UInt8(ascii: "1"), 100, 100))
    #expect(!sender.isIdle)
  }

  /// Passes a sender's packets through a network to a receiver.
  func hear(_ packets: [DigitPacket?], deliver: (Int) -> Int) -> [ReceivedDigit] {
    var receiver = DigitReceiver(clockRateHz: 8000)
    var heard: [ReceivedDigit] = []
    for (tick, packet) in packets.enumerated() {
      let now = Instant.zero + .milliseconds(20 * tick)
      if let packet {
        let timestamp = RTPTimestamp(raw: UInt32(truncatingIfNeeded: 0xffff_fe00 + tick * 160 - packet.timestampLag))
        for _ in 0..<deliver(tick) {
          if let digit = receiver.receive(packet.event, timestamp: timestamp, at: now) { heard.append(digit) }
        }
      }
      if let digit = receiver.expire(at: now) { heard.append(digit) }
    }
    return heard
  }

  @Test func `each sent digit is received once, with its duration`() {
    let heard = hear(play("0*D99", duration: 120, gap: 60, ticks: 80)) { _ in 1 }
    #expect(String(decoding: heard.map(\.digit), as: UTF8.self) == "0*D99")
    #expect(heard.allSatisfy { $0.durationMilliseconds == 120 })
  }

  @Test func `duplicates report no digit twice`() {
    #expect(hear(play("12", duration: 100, gap: 60, ticks: 60)) { _ in 3 }.count == 2)
  }

  @Test func `lost firsts and ends lose no digit`() {
    let packets = play("77", duration: 100, gap: 400, ticks: 80)
    // All ends of the first digit are lost: the silence ends it.
    let first = hear(packets) { tick in packets[tick]?.event.isEnd == true && tick < 10 ? 0 : 1 }
    #expect(first.map(\.digit) == [UInt8(ascii: "7"), UInt8(ascii: "7")])
    // All but one end are lost.
    let second = hear(packets) { tick in tick == 7 || tick >= 20 ? 1 : 0 }
    #expect(second.map(\.durationMilliseconds) == [100, 100])
  }

  @Test func `random events and times never trap and report no digit without an event`() {
    var receiver = DigitReceiver(clockRateHz: 0)
    var random = SplitMix64(seed: 11)
    var told = 0
    for _ in 0..<20_000 {
      let event = TelephoneEvent(
        event: UInt8(random.next() % 20), isEnd: random.next() % 3 == 0, volume: 0,
        duration: UInt16(truncatingIfNeeded: random.next()))
      let now = Instant(nanoseconds: Int64(random.next() % 1_000_000_000_000))
      if receiver.receive(event, timestamp: RTPTimestamp(raw: UInt32(random.next() % 100) * 800), at: now) != nil { told += 1 }
      if receiver.expire(at: now) != nil { told += 1 }
    }
    #expect(told <= 20_000)
  }
}
