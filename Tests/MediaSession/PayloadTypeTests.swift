import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

/// What a peer may send is what both sides listed, under the numbers of either description (RFC 3264 §5.1, §6.1, §7).
@Suite struct PayloadTypeTests {
  private func event(_ code: UInt8, _ duration: Int, end: Bool = false) -> [UInt8] {
    [code, (end ? 0x80 : 0) | 10, UInt8(duration >> 8), UInt8(duration & 255)]
  }
  private func digits(_ bench: borrowing Bench) -> [String] {
    bench.events.compactMap { if case .digit(_, let from, let digit, _) = $0 { "\(from) \(digit)" } else { nil } }
  }
  private func octets(_ samples: [Int16], _ encoding: AudioEncoding) -> [UInt8] {
    var octets = [UInt8](repeating: 0, count: samples.count)
    var span = octets.mutableSpan
    _ = encoding.encodeSamples(samples.span, into: &span)
    return octets
  }
  private static let both: [NumberedFormat] = [
    NumberedFormat(0, .audio(.pcmu)), NumberedFormat(8, .audio(.pcma)), NumberedFormat(101, .telephoneEvent(clockRateHz: 8_000)),
    NumberedFormat(96, .telephoneEvent(clockRateHz: 8_000)),
  ]

  @Test(arguments: [101, 96]) func `digits are heard under our number and under the peer's, and go out under the peer's`(
    _ number: UInt8
  ) throws {
    var bench = try Bench {
      $0.telephoneEventPayloadType = 96
      $0.incoming = Self.both
    }
    bench.connect()
    try bench.run(frames: 10, trunk: { tone($0) })
    let start = bench.trunkTimestamp
    for index in 1...4 { bench.trunkSends(event(5, index * 160, end: index > 3), payloadType: number, timestamp: start) }
    #expect(digits(bench) == ["trunkToApp 5"])
    bench.command(.sendDigits(Bench.id, DigitRequest(digits: "7")))
    try bench.run(frames: 20)
    #expect(bench.toTrunk.count { $0.header.payloadType == 96 } == 11)
    #expect(bench.toTrunk.allSatisfy { $0.header.payloadType != 101 })
  }

  /// Offer `0 8 101`, answer `8 0 101`: PCMA goes out, PCMU comes in.
  @Test(arguments: [AudioEncoding.opus, .pcmu]) func `each listed codec is heard, alone and packet by packet in turn`(
    _ app: AudioEncoding
  ) throws {
    for pattern in [[0], [8], [0, 8], [0, 0, 0, 0, 0, 8, 8, 8, 8, 8]] as [[UInt8]] {
      var bench = try Bench(app: app, trunk: .pcma) { $0.incoming = Self.both }
      bench.connect()
      for frame in 0..<150 {
        let number = pattern[frame % pattern.count]
        bench.trunkSends(octets(tone(frame), number == 0 ? .pcmu : .pcma), payloadType: number)
        bench.trunkTimestamp &+= 160
        bench.tick()
      }
      #expect(level(bench.heardByApp.suffix(8_000)) > 0.8 * level(tone(0)), "\(pattern)")
      #expect(level(bench.heardByApp.suffix(8_000)) < 1.2 * level(tone(0)), "\(pattern): one law read as the other is loud")
      let stream = bench.session.statistics().fromTrunk
      #expect(stream.dropped == 0 && stream.unknownPackets == 0 && stream.lost == 0)
      #expect((stream.meanOpinionScore ?? 0) > 4)
      #expect(bench.toApp.isContinuous)
    }
  }

  @Test func `a codec with another clock is followed at once, and back`() throws {
    var formats = Self.both
    formats += [NumberedFormat(9, .audio(.g722)), NumberedFormat(111, .audio(.opus))]
    var bench = try Bench(trunk: .pcmu) { $0.incoming = formats }
    bench.connect()
    for encoding in [AudioEncoding.pcmu, .g722, .opus, .pcma, .opus, .pcmu] {
      var encoder = try AudioEncoder(encoding: encoding)
      bench.heardByApp.removeAll()
      for frame in 0..<50 {
        var octets = [UInt8](repeating: 0, count: 1_275)
        var span = octets.mutableSpan
        let samples = tone(frame)
        let count = try encoder.encode(samples.span, into: &span)
        bench.trunkSends(Array(octets[..<count]), payloadType: encoding.row.payloadType)
        bench.trunkTimestamp &+= encoding.clockRateHz / 50
        bench.tick()
      }
      #expect(level(bench.heardByApp.suffix(4_800)) > 0.6 * level(tone(0)), "\(encoding)")
    }
    let stream = bench.session.statistics().fromTrunk
    #expect(stream.dropped <= 1 && stream.packets == 300)
  }

  @Test func `a peer that changes the codec with each packet traps nothing, and what is dropped is counted`() throws {
    var formats = Self.both
    formats += [NumberedFormat(9, .audio(.g722)), NumberedFormat(111, .audio(.opus))]
    var bench = try Bench(trunk: .pcmu) { $0.incoming = formats }
    bench.connect()
    for frame in 0..<300 {
      let number = [0, 9, 111, 8, 101, 96, 13, 77][frame % 8] as UInt8
      bench.trunkSends(
        [UInt8](repeating: UInt8(frame % 250 + 1), count: 160), payloadType: number, ssrc: UInt32(frame),
        from: SocketAddress(Bench.trunkAddress.ip, UInt16(30_000 + frame % 3)))
      bench.tick()
    }
    let stream = bench.session.statistics().fromTrunk
    #expect(stream.dropped > 100)
  }

  @Test func `a stream of an unknown type is told once with type and source, is in the statistics, and has no MOS`() throws {
    var bench = try Bench()
    bench.connect()
    for frame in 0..<150 {
      bench.trunkSends([UInt8](repeating: 3, count: 20), payloadType: 18, ssrc: 0xfeed)
      bench.trunkTimestamp &+= 160
      if frame % 3 == 0 { bench.tick() }
    }
    let told = bench.events.compactMap { event -> String? in
      if case .trunkStreamUnknown(_, let type, let source, let from) = event { "\(type) \(source) \(from)" } else { nil }
    }
    #expect(told == ["18 65261 \(Bench.trunkAddress)"])
    let stream = bench.session.statistics().fromTrunk
    #expect(stream.unknownPackets == 150 && stream.unknownPayloadType == 18 && stream.dropped == 150)
    #expect(stream.meanOpinionScore == nil)
  }

  @Test func `keep-alives of an unknown type are no stream and no loss`() throws {
    for app in [AudioEncoding.opus, .pcmu] {
      var bench = try Bench(app: app)
      bench.connect()
      for frame in 0..<300 {
        if frame % 10 == 5 { bench.trunkSends(frame % 20 == 5 ? [] : [0], payloadType: 126) }
        bench.trunkSays(tone(frame))
        bench.tick()
      }
      let stream = bench.session.statistics().fromTrunk
      #expect(stream.lost == 0 && stream.playout.concealedSamples == 0)
      #expect((stream.meanOpinionScore ?? 0) > 4.2, "\(stream.meanOpinionScore ?? 0)")
      #expect(!bench.events.contains { if case .trunkStreamUnknown = $0 { true } else { false } })
      #expect(bench.toApp.isContinuous, "\(app): a number that is not sent on is no hole")
    }
  }

  @Test func `an Opus trunk with telephone-event of 8000 alone has digits both ways`() throws {
    var bench = try Bench(app: .opus, trunk: .opus) {
      $0.telephoneEventClockRateHz = 8_000
      $0.incoming = [NumberedFormat(111, .audio(.opus)), NumberedFormat(101, .telephoneEvent(clockRateHz: 8_000))]
    }
    bench.connect()
    try bench.run(frames: 10, trunk: { tone($0) })
    let start = bench.trunkTimestamp
    for index in 1...5 {
      bench.trunkSends(event(5, index * 160, end: index == 5), payloadType: 101, timestamp: start)
      bench.tick()
    }
    let told = bench.events.compactMap { if case .digit(_, _, let digit, let ms) = $0 { "\(digit) \(ms)" } else { nil } }
    #expect(told == ["5 100"])
    bench.command(.sendDigits(Bench.id, DigitRequest(digits: "9", durationMilliseconds: 100)))
    try bench.run(frames: 20)
    let sent = bench.toTrunk.filter { $0.header.payloadType == 101 }
    #expect(sent.compactMap { TelephoneEvent(parsing: $0.payload.span)?.duration } == [160, 320, 480, 640, 800, 800, 800, 800])
    #expect(Set(sent.map(\.header.timestamp.raw)).count == 1, "timestamps are on the stream's clock")
  }

  @Test func `an app with telephone-event of 8000 beside Opus presses keys, and gets the trunk's`() throws {
    var bench = try Bench()
    var app = bench.app
    app.telephoneEvent48 = nil
    bench.connect()
    bench.command(.setAppRemote(Bench.id, Bench.leg, app, newLocal: nil, newAssociation: false))
    let start = bench.trunkTimestamp
    for index in 1...4 { bench.trunkSends(event(5, index * 160, end: index == 4), payloadType: 101, timestamp: start) }
    let sent = bench.toApp.filter { $0.header.payloadType == 126 }
    #expect(sent.compactMap { TelephoneEvent(parsing: $0.payload.span)?.duration } == [160, 320, 480, 640])
    for index in 1...4 { try bench.appSends(event(3, index * 160, end: index == 4), payloadType: 126) }
    #expect(digits(bench) == ["trunkToApp 5", "appToTrunk 3"])
  }

  @Test func `a re-INVITE keeps what came before: the counts, and the codec that comes in`() throws {
    var bench = try Bench(trunk: .pcma) { $0.incoming = Self.both }
    bench.connect()
    for frame in 0..<50 {
      bench.trunkSends(octets(tone(frame), .pcmu), payloadType: 0)
      bench.trunkTimestamp &+= 160
      bench.tick()
    }
    var again = bench.trunk
    again.packetTimeMilliseconds = 30
    bench.command(.setTrunk(Bench.id, again))
    #expect(bench.session.statistics().fromTrunk.packets == 50)
    bench.heardByApp.removeAll()
    for frame in 50..<100 {
      bench.trunkSends(octets(tone(frame), .pcmu), payloadType: 0)
      bench.trunkTimestamp &+= 160
      bench.tick()
    }
    #expect(level(bench.heardByApp.suffix(4_800)) > 0.8 * level(tone(0)))
    #expect(bench.session.statistics().fromTrunk.playout.concealedSamples == 0)
  }

  @Test func `a carrier that agreed on telephone-event and sends tones alone is named once`() throws {
    var bench = try Bench()
    bench.connect()
    func dual(_ frame: Int, _ low: Double, _ high: Double) -> [Int16] {
      let (a, b) = (tone(frame, hertz: low, amplitude: 6_000), tone(frame, hertz: high, amplitude: 6_000))
      return zip(a, b).map { $0 &+ $1 }
    }
    for _ in 0..<4 {
      try bench.run(frames: 8, trunk: { dual($0, 770, 1_336) })
      try bench.run(frames: 8, trunk: { _ in quiet })
    }
    #expect(bench.events.count { if case .trunkSendsTones = $0 { true } else { false } } == 1)
    #expect(digits(bench).isEmpty)
  }
}
