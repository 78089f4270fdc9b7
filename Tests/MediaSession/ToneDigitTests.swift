import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

/// Digits as tones, and digits that RFC 4733 sends in uncommon ways.
@Suite struct ToneDigitTests {
  private func digits(_ bench: borrowing Bench) -> [String] {
    bench.events.compactMap { if case .digit(_, let from, let digit, let ms) = $0 { "\(from) \(digit) \(ms)" } else { nil } }
  }
  private func keys(_ bench: borrowing Bench) -> String {
    String(bench.events.compactMap { if case .digit(_, _, let digit, _) = $0 { digit } else { nil } })
  }
  /// A frame of a key's tone.
  private func key(_ code: UInt8, _ index: Int) -> [Int16] {
    var samples = [Int16](repeating: 0, count: 160)
    samples.withUnsafeMutableBufferPointer { if let base = $0.baseAddress { writeTone(code, at: index, into: base) } }
    return samples
  }
  /// `codes` for 5 frames each, with 5 of silence between.
  private func dial(_ bench: inout Bench, _ codes: [UInt8]) throws {
    try bench.run(frames: 20, trunk: { _ in quiet })
    for code in codes {
      try bench.run(frames: 5, trunk: { key(code, $0) })
      try bench.run(frames: 5, trunk: { _ in quiet })
    }
    try bench.run(frames: 20, trunk: { _ in quiet })
  }

  @Test(arguments: [false, true])
  func `a trunk without telephone-event is listened to`(isRelayed: Bool) throws {
    var bench = try Bench(app: isRelayed ? .pcmu : .opus, telephoneEvents: false)
    bench.connect()
    try dial(&bench, [1, 2, 3, 11, 0])
    #expect(keys(bench) == "123#0")
    #expect(digits(bench).allSatisfy { $0.hasPrefix("trunkToApp ") })
  }

  @Test(arguments: DigitTransport.allCases)
  func `with telephone-event tones count only where the trunk is said to send them`(digits: DigitTransport) throws {
    var bench = try Bench(adjust: { $0.digits = digits })
    bench.connect()
    try dial(&bench, [1, 2])
    #expect(keys(bench) == (digits == .inband ? "12" : ""))
  }
  @Test func `a trunk without telephone-event may be left alone`() throws {
    var bench = try Bench(telephoneEvents: false, adjust: { $0.digits = .rfc4733 })
    bench.connect()
    try dial(&bench, [1, 2])
    #expect(keys(bench) == "")
  }

  @Test func `speech is no digit`() throws {
    var bench = try Bench(telephoneEvents: false)
    bench.connect()
    try bench.run(frames: min(1_500, speech.count), trunk: { speech[$0] })
    #expect(keys(bench) == "")
  }

  @Test func `a trunk that is said to take tones gets them although it has telephone-event`() throws {
    var bench = try Bench(adjust: { $0.digits = .inband })
    bench.connect()
    try bench.run(frames: 5)
    bench.command(.sendDigits(Bench.id, DigitRequest(digits: "8*", durationMilliseconds: 100)))
    try bench.run(frames: 40)
    #expect(bench.toTrunk.allSatisfy { $0.header.payloadType == 0 })
    var detector = ToneDetector()
    var found: [UInt8] = []
    for start in stride(from: 0, to: bench.heardByTrunk.count - 159, by: 160) {
      let tick = Array(bench.heardByTrunk[start..<start + 160])
      if let digit = detector.hear(tick.span) { found.append(digit.digit) }
    }
    #expect(found == Array("8*".utf8))
  }

  @Test func `several events of one packet are several digits`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 10, trunk: { tone($0) })
    bench.trunkSends([4, 0x8a, 3, 0x20, 5, 0x8a, 3, 0x20], payloadType: 101, marker: true)
    #expect(digits(bench) == ["trunkToApp 4 100", "trunkToApp 5 100"])
    let sent = bench.toApp.filter { $0.header.payloadType == 110 }
    // each with the beginning that was left out
    #expect(sent.map(\.header.marker) == [true, false, true, false])
    let start = try #require(sent.first).header.timestamp.raw
    #expect(sent.map { $0.header.timestamp.raw &- start } == [0, 0, 4_800, 4_800])
    #expect(bench.toApp.isContinuous)
  }

  @Test func `a key held for three seconds reaches the app in segments of one press`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 10, trunk: { tone($0) })
    let start = bench.trunkTimestamp
    for tick in 1...150 {
      let units = tick * 160
      bench.trunkSends([6, tick == 150 ? 0x8a : 0x0a, UInt8(units >> 8), UInt8(units & 255)], payloadType: 101, timestamp: start)
      bench.tick()
    }
    #expect(digits(bench) == ["trunkToApp 6 3000"])
    var receiver = DigitReceiver(clockRateHz: 48_000)
    let sent = bench.toApp.filter { $0.header.payloadType == 110 }
    #expect(sent.count { $0.header.marker } == 1)
    let told = sent.compactMap { packet in
      TelephoneEvent(parsing: packet.payload.span).flatMap {
        receiver.receive($0, timestamp: packet.header.timestamp, at: packet.at)
      }
    }
    #expect(told == [ReceivedDigit(digit: UInt8(ascii: "6"), durationMilliseconds: 3_000)])
    #expect(sent.contains { TelephoneEvent(parsing: $0.payload.span)?.duration == 65_535 })
  }

  @Test func `a long press of the app reaches the trunk as one press`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 10, app: { tone($0) })
    let start = bench.appTimestamp
    for tick in 1...150 {
      let total = tick * 960
      let segment = (total - 1) / 65_535
      let units = total - segment * 65_535
      try bench.appSends(
        [6, tick == 150 ? 0x8a : 0x0a, UInt8(units >> 8), UInt8(units & 255)], payloadType: 110,
        timestamp: start &+ UInt32(segment * 65_535))
      bench.tick()
    }
    #expect(digits(bench) == ["appToTrunk 6 3000"])
    let sent = bench.toTrunk.filter { $0.header.payloadType == 101 }
    #expect(Set(sent.map(\.header.timestamp.raw)).count == 1)
    #expect(sent.last.flatMap { TelephoneEvent(parsing: $0.payload.span) }?.duration == 24_000)
  }
}
