import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

/// Several sources on one trunk leg: by SSRC, by port, and events beside audio.
@Suite struct TrunkSourceTests {
  private func event(_ code: UInt8, _ duration: Int, end: Bool = false) -> [UInt8] {
    [code, (end ? 0x80 : 0) | 10, UInt8(duration >> 8), UInt8(duration & 255)]
  }
  private func octets(_ samples: [Int16]) -> [UInt8] {
    var octets = [UInt8](repeating: 0, count: samples.count)
    var span = octets.mutableSpan
    _ = G711.encode(samples.span, law: .mu, into: &span)
    return octets
  }
  /// One packet of a source with numbers of its own.
  private func sends(
    _ bench: inout Bench, _ ssrc: UInt32, _ number: Int, _ payload: [UInt8], type: UInt8 = 0, timestamp: Int? = nil,
    from source: SocketAddress = Bench.trunkAddress
  ) {
    let (sequence, stamp) = (bench.trunkSequence, bench.trunkTimestamp)
    bench.trunkSequence = UInt16(truncatingIfNeeded: number)
    bench.trunkSends(payload, payloadType: type, timestamp: UInt32(timestamp ?? number * 160), ssrc: ssrc, from: source)
    (bench.trunkSequence, bench.trunkTimestamp) = (sequence, stamp)
  }

  @Test(arguments: [AudioEncoding.opus, .pcmu])
  func `a music server beside a telephone that goes on: one is heard whole, the other one is counted`(_ app: AudioEncoding) throws
  {
    var bench = try Bench(app: app)
    bench.connect()
    for frame in 0..<150 {
      sends(&bench, 1, 100 + frame, octets(tone(frame)))
      if frame >= 20 { sends(&bench, 2, 9_000 + frame, octets(tone(frame, hertz: 1_500, amplitude: 2_000))) }
      bench.tick()
    }
    let stream = bench.session.statistics().fromTrunk
    #expect(stream.otherSourcePackets == 130 && stream.playout.resynchronised == 0)
    #expect(stream.lost == 0 && stream.playout.concealedSamples == 0)
    #expect(bench.toApp.isContinuous)
    #expect(bench.output.drainDrops(.otherSource) == 130)
  }

  @Test(arguments: [AudioEncoding.opus, .pcmu])
  func `a source that replaces another is heard after two packets at most, and after a re-INVITE at once`(
    _ app: AudioEncoding
  ) throws {
    var bench = try Bench(app: app)
    bench.connect()
    for frame in 0..<50 {
      sends(&bench, 1, 100 + frame, octets(tone(frame)))
      bench.tick()
    }
    for frame in 0..<50 {
      sends(&bench, 2, 9_000 + frame, octets(tone(frame)))
      bench.tick()
    }
    #expect(bench.session.statistics().fromTrunk.otherSourcePackets == 2)
    var again = bench.trunk
    again.packetTimeMilliseconds = 30
    bench.command(.setTrunk(Bench.id, again))
    for frame in 0..<50 {
      sends(&bench, 3, 20_000 + frame, octets(tone(frame)))
      bench.tick()
    }
    let stream = bench.session.statistics().fromTrunk
    #expect(stream.otherSourcePackets == 2 && stream.lost == 0)
    #expect(level(bench.heardByApp.suffix(4_800)) > 0.7 * level(tone(0)))
  }

  @Test func `events under an SSRC of their own, and on three at once, are one digit a press, and no loss of the audio`() throws {
    var bench = try Bench()
    bench.connect()
    for frame in 0..<150 {
      bench.trunkSays(tone(frame))
      for (index, ssrc) in [UInt32(7), 8, 9].enumerated() {
        let position = frame % 50
        // three presses of 160 ms each, with three ends, on each of three sources
        guard position < 11 else { continue }
        let start = 1_000_000 * (index + 1) + frame / 50 * 8_000
        sends(
          &bench, ssrc, 500 + frame, event(UInt8(index + 1), min(position + 1, 8) * 160, end: position >= 8), type: 101,
          timestamp: start)
      }
      bench.tick()
    }
    let digits = bench.events.compactMap { if case .digit(_, _, let digit, _) = $0 { String(digit) } else { nil } }
    #expect(digits.sorted() == ["1", "1", "1", "2", "2", "2", "3", "3", "3"])
    let stream = bench.session.statistics().fromTrunk
    #expect(stream.lost == 0 && stream.playout.concealedSamples == 0 && stream.playout.resynchronised == 0)
    #expect(bench.toApp.isContinuous)
  }

  @Test func `a jump far back under one SSRC costs two packets`() throws {
    var bench = try Bench()
    bench.connect()
    for frame in 0..<100 {
      let number = frame < 50 ? 20_000 + frame : 12_000 + frame
      sends(&bench, 1, number, octets(tone(frame)))
      bench.tick()
    }
    #expect(bench.session.statistics().fromTrunk.playout.concealedMilliseconds <= 80)
  }

  // MARK: ports

  private let moved = SocketAddress(Bench.trunkAddress.ip, 31_000)

  @Test func `a port that replaces a silent one is learnt again, and is answered under symmetric`() throws {
    for policy in [SourcePolicy.signalledIP, .symmetric] {
      var bench = try Bench(policy: policy) { $0.peers = [IPNetwork("192.0.2.0/24")!] }
      bench.connect()
      for frame in 0..<20 {
        bench.trunkSays(tone(frame))
        bench.tick()
      }
      bench.heardByApp.removeAll()
      for frame in 0..<150 {
        bench.trunkSays(tone(frame), from: moved)
        bench.tick()
      }
      #expect(level(bench.heardByApp.suffix(8_000)) > 0.7 * level(tone(0)), "\(policy)")
      #expect(bench.output.sourceTakeovers == 1)
      #expect(bench.toTrunk.last?.destination == (policy == .symmetric ? moved : Bench.trunkAddress))
      // the one before is a stranger now, as long as the new one sends; under symmetric the SDP's own is closer
      guard policy == .signalledIP else { continue }
      let dropped = bench.session.statistics().fromTrunk.dropped
      for frame in 0..<20 {
        bench.trunkSays(tone(frame), from: moved)
        sends(&bench, 5, frame, octets(tone(frame)))
        bench.tick()
      }
      #expect(bench.session.statistics().fromTrunk.dropped == dropped + 20)
    }
  }

  @Test func `no source replaces one that sends; four packets or another address do not replace a silent one`() throws {
    let stranger = SocketAddress(IPAddress(203, 0, 113, 5), 30_000)
    for policy in SourcePolicy.allCases {
      var bench = try Bench(policy: policy) { $0.peers = [IPNetwork("192.0.2.0/24")!] }
      bench.connect()
      for frame in 0..<100 {
        bench.trunkSays(tone(frame))
        sends(&bench, 5, frame, octets(tone(frame)), from: moved)
        bench.tick()
      }
      #expect(bench.session.statistics().fromTrunk.packets == 100, "\(policy)")
      for _ in 0..<100 { bench.tick() }
      for frame in 0..<4 { sends(&bench, 5, frame, octets(tone(frame)), from: moved) }
      for frame in 0..<200 { sends(&bench, 6, frame, octets(tone(frame)), from: stranger) }
      bench.trunkSays(tone(0))
      #expect(bench.session.statistics().fromTrunk.packets == 101, "\(policy)")
    }
  }

  // MARK: a relayed stream

  @Test func `timestamps that jump are not passed on to the app`() throws {
    var bench = try Bench(app: .pcmu)
    bench.connect()
    for frame in 0..<100 {
      let jump = frame < 50 ? 0 : 154 * 8_000
      sends(&bench, 1, 100 + frame, octets(tone(frame)), timestamp: frame * 160 + jump)
      bench.tick()
    }
    let stamps = bench.toApp.map(\.header.timestamp.raw)
    #expect(stamps.count == 100 && bench.toApp.isContinuous)
    #expect(zip(stamps, stamps.dropFirst()).allSatisfy { $1 &- $0 == 160 })
  }

  @Test func `a relayed stream keeps real gaps and late packets at their positions`() throws {
    var bench = try Bench(app: .pcmu)
    bench.connect()
    let order = [0, 1, 2, 4, 5, 7, 6, 8, 9]
    for number in order {
      if number == 5 { sends(&bench, 1, 105, [], timestamp: 800) } else { sends(&bench, 1, 100 + number, octets(tone(number))) }
      bench.tick()
    }
    let numbers = bench.toApp.map(\.header.sequence.raw)
    let first = try #require(numbers.first)
    // 3 was lost, 5 was a keep-alive
    #expect(numbers.map { Int($0 &- first) } == [0, 1, 2, 4, 6, 5, 7, 8])
  }
}
