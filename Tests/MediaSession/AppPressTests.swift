import Testing
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

/// A key press of an app is one whole event on the trunk, whichever packets of it the app sends.
@Suite struct AppPressTests {
  private func event(_ code: UInt8, _ duration: Int, end: Bool = false) -> [UInt8] {
    [code, (end ? 0x80 : 0) | 10, UInt8(duration >> 8), UInt8(duration & 255)]
  }

  /// One event: a beginning with the marker, durations that do not shrink, three equal ends, on one timestamp.
  private func isWhole(_ packets: [Bench.Packet]) -> Bool {
    let events = packets.compactMap { TelephoneEvent(parsing: $0.payload.span) }
    let durations = events.map(\.duration)
    return packets.count >= 4 && Set(packets.map(\.header.timestamp.raw)).count == 1
      && packets.map(\.header.marker) == [true] + Array(repeating: false, count: packets.count - 1)
      && !events[0].isEnd && events.suffix(3).allSatisfy { $0.isEnd } && events.count { $0.isEnd } == 3
      && zip(durations, durations.dropFirst()).allSatisfy { $0 <= $1 } && Set(durations.suffix(3)).count == 1
      && durations.last! >= 320
  }

  /// A press of the app and digits of `call.dtmf` that meet are sent one after the other, each whole.
  @Test(arguments: [AudioEncoding.opus, .pcmu], [0, 3, 9, 14, 30])
  func `a press that meets digits of call dtmf goes out behind them, or before them, never among them`(
    _ app: AudioEncoding, _ begins: Int
  ) throws {
    var bench = try Bench(app: app)
    bench.connect()
    let clock = app == .opus ? 48 : 8
    try bench.run(frames: 20, app: { tone($0) })
    let start = bench.appTimestamp
    for tick in 0..<80 {
      if tick == 5 {
        bench.command(.sendDigits(Bench.id, DigitRequest(digits: "19", durationMilliseconds: 100, gapMilliseconds: 80)))
      }
      let packet = tick - begins + 1
      if (1...8).contains(packet) {
        try bench.appSends(
          event(5, min(packet, 6) * 20 * clock, end: packet >= 6), payloadType: app == .opus ? 110 : 126, timestamp: start)
      }
      bench.tick()
    }
    let sent = bench.toTrunk.filter { $0.header.payloadType == 101 }
    let codes = sent.map { $0.payload[0] }
    var order: [UInt8] = []
    for code in codes where order.last != code { order.append(code) }
    #expect(order.sorted() == [1, 5, 9], "\(order)")
    for code in [1, 5, 9] as [UInt8] {
      #expect(isWhole(sent.filter { $0.payload[0] == code }), "\(code) of \(order)")
    }
  }

  /// Presses as (milliseconds after the beginning, duration in ms, end, timestamp in ms).
  private static let habits: [(String, [(at: Int, duration: Int, end: Bool, stamp: Int)])] = [
    ("ends alone", [(0, 100, true, 0), (20, 100, true, 0), (40, 100, true, 0)]),
    ("one end alone", [(0, 100, true, 0)]),
    ("an end without duration", [(0, 0, true, 0)]),
    ("no end", (1...5).map { ($0 * 20, $0 * 20, false, 0) }),
    ("one packet without an end", [(0, 20, false, 0)]),
    ("one end", (1...5).map { ($0 * 20, $0 * 20, $0 == 5, 0) }),
    ("ends with moved timestamps", (1...8).map { ($0 * 20, min($0, 5) * 20, $0 > 5, $0 > 5 ? ($0 - 5) * 20 : 0) }),
    ("ends alone with moved timestamps", [(0, 100, true, 0), (40, 100, true, 40), (80, 100, true, 80)]),
    ("seven ends", (1...12).map { ($0 * 20, min($0, 5) * 20, $0 > 5, 0) }),
    ("an update behind the end", [(0, 20, false, 0), (20, 60, true, 0), (40, 40, false, 0), (60, 60, true, 0)]),
  ]

  @Test(arguments: habits.map(\.0), [AudioEncoding.opus, .pcmu])
  func `a press becomes one proper event and one digit`(_ habit: String, _ app: AudioEncoding) throws {
    let press = try #require(Self.habits.first { $0.0 == habit }).1
    var bench = try Bench(app: app)
    bench.connect()
    let clock = app == .opus ? 48 : 8
    try bench.run(frames: 20, app: { tone($0) })
    for round in 0..<3 {
      let start = bench.appTimestamp
      for tick in 0..<30 {
        for packet in press where packet.at == tick * 20 {
          try bench.appSends(
            event(UInt8(round % 2 + 4), packet.duration * clock, end: packet.end), payloadType: app == .opus ? 110 : 126,
            timestamp: start &+ UInt32(packet.stamp * clock))
        }
        bench.tick()
      }
      bench.appTimestamp &+= UInt32(30 * 20 * clock)
      try bench.run(frames: 20, app: { tone($0) })
    }
    let sent = bench.toTrunk.filter { $0.header.payloadType == 101 }
    let starts = Set(sent.map(\.header.timestamp.raw)).sorted()
    #expect(starts.count == 3)
    for start in starts { #expect(isWhole(sent.filter { $0.header.timestamp.raw == start }), "\(habit)") }
    let digits = bench.events.compactMap { if case .digit(_, .appToTrunk, let digit, _) = $0 { String(digit) } else { nil } }
    #expect(digits == ["4", "5", "4"])
    #expect(bench.toTrunk.isContinuous)
  }

  @Test(arguments: [AudioEncoding.opus, .pcmu]) func `presses without audio between them have timestamps of their own`(
    _ app: AudioEncoding
  ) throws {
    var bench = try Bench(app: app)
    bench.connect()
    let clock = app == .opus ? 48 : 8
    try bench.run(frames: 20, app: { tone($0) })
    for press in 0..<4 {
      for tick in 1...8 {
        try bench.appSends(
          event(UInt8(press), min(tick, 6) * 20 * clock, end: tick >= 6), payloadType: app == .opus ? 110 : 126)
        bench.tick()
      }
      bench.appTimestamp &+= UInt32(8 * 20 * clock)
    }
    let sent = bench.toTrunk.filter { $0.header.payloadType == 101 }
    let starts = Dictionary(grouping: sent, by: \.header.timestamp.raw)
    #expect(starts.count == 4)
    for packets in starts.values { #expect(isWhole(packets)) }
    #expect(bench.toTrunk.isContinuous)
  }
}
