import Testing
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

@Suite struct DigitTests {
  private func event(_ code: UInt8, _ duration: Int, end: Bool = false) -> [UInt8] {
    [code, (end ? 0x80 : 0) | 10, UInt8(duration >> 8), UInt8(duration & 255)]
  }
  private func digits(_ bench: borrowing Bench) -> [String] {
    bench.events.compactMap { if case .digit(_, let from, let digit, let ms) = $0 { "\(from) \(digit) \(ms)" } else { nil } }
  }

  @Test func `a digit of the trunk is told once and sent to the app on its clock`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 20, trunk: { tone($0) })
    let start = bench.trunkTimestamp
    for index in 1...8 {
      bench.trunkSends(event(5, index * 160), payloadType: 101, timestamp: start, marker: index == 1)
      bench.tick()
    }
    for _ in 0..<3 { bench.trunkSends(event(5, 8 * 160, end: true), payloadType: 101, timestamp: start) }
    bench.trunkTimestamp &+= 8 * 160
    try bench.run(frames: 20, trunk: { tone($0) })
    #expect(digits(bench) == ["trunkToApp 5 160"])
    let sent = bench.toApp.filter { $0.header.payloadType == 110 }
    #expect(sent.count == 11)
    #expect(Set(sent.map(\.header.timestamp.raw)).count == 1)
    #expect(sent.map(\.header.marker) == [true] + Array(repeating: false, count: 10))
    let durations = sent.compactMap { TelephoneEvent(parsing: $0.payload.span)?.duration }
    #expect(durations == (1...8).map { UInt16($0 * 960) } + [7_680, 7_680, 7_680])
    #expect(bench.toApp.isContinuous)
  }

  @Test func `a digit of the app's RTP goes to the trunk and to control`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 20, app: { tone($0) })
    let start = bench.appTimestamp
    for index in 1...5 {
      try bench.appSends(event(11, index * 960), payloadType: 110, timestamp: start)
      bench.tick()
    }
    for _ in 0..<3 { try bench.appSends(event(11, 5 * 960, end: true), payloadType: 110, timestamp: start) }
    bench.appTimestamp &+= 5 * 960
    try bench.run(frames: 20, app: { tone($0) })
    #expect(digits(bench) == ["appToTrunk # 100"])
    let sent = bench.toTrunk.filter { $0.header.payloadType == 101 }
    #expect(sent.compactMap { TelephoneEvent(parsing: $0.payload.span)?.duration } == [160, 320, 480, 640, 800, 800, 800, 800])
    #expect(Set(sent.map(\.header.timestamp.raw)).count == 1)
    #expect(bench.toTrunk.isContinuous)
  }

  @Test func `digits of control are played to the trunk while audio waits`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 10, app: { tone($0) })
    bench.command(.sendDigits(Bench.id, DigitRequest(digits: "1#", durationMilliseconds: 100, gapMilliseconds: 80)))
    try bench.run(frames: 40, app: { tone($0 + 10) })
    let sent = bench.toTrunk.filter { $0.header.payloadType == 101 }
    let events = sent.compactMap { TelephoneEvent(parsing: $0.payload.span) }
    #expect(events.map(\.event) == Array(repeating: 1, count: 8) + Array(repeating: 11, count: 8))
    #expect(events.prefix(8).map(\.duration) == [160, 320, 480, 640, 800, 800, 800, 800])
    #expect(events.prefix(8).map(\.isEnd) == [false, false, false, false, false, true, true, true])
    #expect(Set(sent.map(\.header.timestamp.raw)).count == 2)
    #expect(bench.toTrunk.isContinuous)
    #expect(level(bench.heardByTrunk.suffix(800)) > 3_000, "audio is back")
    let stamps = bench.toTrunk.filter { $0.header.payloadType == 0 }.map(\.header.timestamp.raw)
    #expect(zip(stamps, stamps.dropFirst()).allSatisfy { $1 &- $0 >= 160 && $1 &- $0 <= 160 * 12 })
  }

  @Test func `without telephone-event the digits are tones in the audio`() throws {
    var bench = try Bench(telephoneEvents: false)
    bench.connect()
    try bench.run(frames: 5)
    bench.command(.sendDigits(Bench.id, DigitRequest(digits: "9", durationMilliseconds: 200)))
    try bench.run(frames: 10)
    #expect(level(bench.heardByTrunk.suffix(1_600)) > 5_000)
    #expect(bench.toTrunk.allSatisfy { $0.header.payloadType == 0 })
    try bench.run(frames: 20)
    #expect(level(bench.heardByTrunk.suffix(1_600)) < 10)
  }

  @Test func `digits are told after the trunk's source changed, whatever its timestamps`() throws {
    var bench = try Bench()
    bench.connect()
    for end in [false, true] { bench.trunkSends(event(5, 800, end: end), payloadType: 101, timestamp: 0x6000_0000) }
    bench.trunkSequence = 40_000
    for index in 0..<4 {
      bench.trunkSends([UInt8](repeating: 0xff, count: 160), payloadType: 0, timestamp: UInt32(index) * 160, ssrc: 0x77)
    }
    for end in [false, true] { bench.trunkSends(event(6, 800, end: end), payloadType: 101, timestamp: 640, ssrc: 0x77) }
    #expect(digits(bench) == ["trunkToApp 5 100", "trunkToApp 6 100"])
  }

  @Test func `a digit of the app's RTP becomes a tone for a trunk without the format`() throws {
    var bench = try Bench(app: .pcmu, telephoneEvents: true, trunkTakesEvents: false)
    bench.connect()
    try bench.run(frames: 10, app: { _ in quiet })
    let start = bench.appTimestamp
    for index in 1...5 {
      try bench.appSends(event(3, index * 160, end: index == 5), payloadType: 126, timestamp: start)
      bench.tick()
    }
    bench.appTimestamp &+= 5 * 160
    try bench.run(frames: 20, app: { _ in quiet })
    #expect(bench.toTrunk.allSatisfy { $0.header.payloadType == 0 })
    #expect(bench.toTrunk.isContinuous)
    #expect(
      stride(from: 0, to: bench.heardByTrunk.count - 160, by: 160).count { level(bench.heardByTrunk[$0..<$0 + 160]) > 5_000 } == 5
    )
  }

  @Test func `digits in a relayed call keep one sequence`() throws {
    var bench = try Bench(app: .pcmu)
    bench.connect()
    try bench.run(frames: 10, app: { tone($0) })
    bench.command(.sendDigits(Bench.id, DigitRequest(digits: "7")))
    try bench.run(frames: 30, app: { tone($0) })
    try bench.run(frames: 5, app: { _ in quiet })
    try bench.run(frames: 10, app: { tone($0) })
    #expect(bench.toTrunk.filter { $0.header.payloadType == 101 }.count == 11)
    #expect(bench.toTrunk.isContinuous)
    #expect(level(bench.heardByTrunk.suffix(800)) > 3_000)
  }
}
