import Foundation
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineRTP

@testable import TrunklineMediaSession

/// Lost G.711 is made up from both sides: on a trunk that loses packets play-out waits for the packet after a loss.
@Suite struct BridgedLossTests {
  private struct Heard {
    var samples: [Int16] = []
    /// The delay before each tick, in milliseconds.
    var delays: [Double] = []
    var counts = PlayoutStatistics()
    /// How far ticks moved, in milliseconds, up and down.
    var moved = 0
  }

  /// Plays packets of a steady voice, of which `isLost` never arrive; the tick follows the receiver's tick preference.
  private func play(
    _ encoding: Encoding, seconds: Int, of sound: (Int) -> Int16 = { ReceiverSimulation.voice($0) }, _ isLost: (Int) -> Bool
  ) throws -> Heard {
    var receiver = try AudioReceiver(encoding: encoding)
    var encoder = try AudioEncoder(encoding: encoding)
    var (heard, phase, next, now) = (Heard(), TickPhase(), 0, 5)
    while now < seconds * 1_000 {
      while next * 20 <= now {
        var payload = [UInt8](repeating: 0, count: 1_275)
        var room = payload.mutableSpan
        let audio = (next * 160..<next * 160 + 160).map(sound)
        payload.removeLast(1_275 - (try encoder.encode(audio.span, into: &room)))
        let header = RTPHeader(
          payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(next)),
          timestamp: RTPTimestamp(raw: UInt32(next * 160)), ssrc: SSRC(raw: 1))
        if !isLost(next) { _ = receiver.insert(header, payload: payload.span, at: .zero + .milliseconds(next * 20)) }
        next += 1
      }
      heard.delays.append(receiver.delayMilliseconds(at: .zero + .milliseconds(now)))
      var samples = [Int16](repeating: 0, count: 160)
      var span = samples.mutableSpan
      _ = receiver.pull(into: &span, at: .zero + .milliseconds(now))
      heard.samples += samples
      let step = phase.step(receiver.tickPreference)
      heard.moved += abs(step)
      now += 20 + step
    }
    heard.counts = receiver.statistics
    return heard
  }

  @Test(arguments: [Encoding.pcmu, .pcma, .l16])
  func `a trunk that loses packets is played a packet later`(_ encoding: Encoding) throws {
    let whole = try play(encoding, seconds: 30) { _ in false }
    #expect(whole.counts.concealedSamples == 0 && whole.delays.max() ?? 99 < 10)
    let lossy = try play(encoding, seconds: 30) { $0 % 21 == 20 }
    let late = lossy.delays.dropFirst(500).sorted()
    #expect(late[0] > 19 && late[late.count / 2] < 32, "\(late[0]) \(late[late.count / 2])")
    #expect(lossy.counts.leftOut == 0)
    #expect(lossy.counts.concealedSamples >= 70 * 160)
    // 20 ms more are made up once; a listener sees no tick come later.
    #expect(lossy.counts.concealedSamples <= 73 * 160, "\(lossy.counts.concealedSamples / 160)")
    #expect(lossy.moved <= whole.moved + 2, "\(lossy.moved) \(whole.moved)")
    #expect(lossy.delays[60] > 19, "\(lossy.delays[60])")
  }

  /// North American ringback (440 and 480 Hz), whose beat has a dip every 25 ms; Britain's (400 and 450) and the European tone of
  /// one frequency beside it.
  @Test(arguments: [(440.0, 480.0), (400.0, 450.0), (425.0, 425.0)], [1, 2, 3] as [UInt64])
  func `of ringback at 5 percent loss hardly anything is a hole`(tones: (Double, Double), seed: UInt64) throws {
    func sound(_ index: Int) -> Int16 {
      let time = Double(index) / 8_000
      return Int16(4_000 * sin(2 * .pi * tones.0 * time) + 4_000 * sin(2 * .pi * tones.1 * time))
    }
    var random = SplitMix64(seed: seed)
    let lost = Set((10..<600).filter { _ in random.next() % 20 == 0 })
    func quietest(_ heard: Heard) -> [Double] {
      stride(from: 8_000, to: heard.samples.count - 160, by: 40).map { level(heard.samples[$0..<$0 + 80]) }
    }
    let whole = quietest(try play(.pcmu, seconds: 12, of: sound) { _ in false })
    let heard = quietest(try play(.pcmu, seconds: 12, of: sound) { lost.contains($0) })
    let floor = (whole.min() ?? 0) / 4
    let holes = heard.count { $0 < floor }
    // Two losses within 50 ms, between which the delay grew, leave nothing that repeats itself.
    #expect(
      holes * 8 <= lost.count,
      "\(holes) of \(heard.count) windows of 10 ms at \(lost.count) losses; the beat's own dip is \(floor * 4)")
  }

  @Test func `a loss once in a while is worth no delay`() throws {
    let heard = try play(.pcmu, seconds: 30) { $0 % 400 == 399 }
    let delays = heard.delays.dropFirst(500).sorted()
    #expect(delays[delays.count * 9 / 10] < 12)
  }

  @Test func `the delay is removed when packets are no longer lost`() throws {
    let heard = try play(.pcmu, seconds: 120) { $0 < 1_000 && $0 % 21 == 20 }
    #expect(heard.delays[900] > 19 && heard.delays[910] > 19)
    #expect(heard.delays.last ?? 99 < 12)
  }
}
