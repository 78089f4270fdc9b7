import AudioCodecs
import Bytes
import JitterBuffer
import MediaSession
import RTP
import Testing

/// A talker, a network and a receiver on virtual time: a 200 Hz tone with harmonics in 20 ms packets, each sent at `20 n` ms and delivered after a
/// delay the test chooses (nil: lost).
final class ReceiverSimulation {
  var receiver: AudioReceiver
  var encoder: AudioEncoder
  var heard: [Int16] = []
  var results: [PullResult] = []
  var sent: [Int16] = []
  /// Delay of the play-out beyond the fastest packet, per tick.
  var delays: [Double] = []

  init(_ encoding: AudioEncoding, expectedLossPercent: Int = 10) throws {
    receiver = try AudioReceiver(encoding: encoding)
    encoder = try AudioEncoder(encoding: encoding, expectedLossPercent: expectedLossPercent)
  }

  static func voice(_ index: Int) -> Int16 {
    // A sawtooth-like period of 40 samples whose strength changes over syllables of 250 ms.
    let phase = Double(index % 40) / 40
    let syllable = Double(index % 2000) / 2000
    let strength = syllable < 0.8 ? 6000 * (0.3 + syllable) : 200
    return Int16(strength * (1 - 2 * phase) * (1 - phase))
  }

  /// - Parameters:
  ///   - tickPhase: milliseconds of the pull after the send times.
  ///   - order: delays in milliseconds by packet number.
  func run(packets: Int, tickPhase: Int = 5, firstSequence: Int = 65_500, delay: (Int) -> Int?) throws {
    var arrivals: [(at: Int, sequence: Int, payload: [UInt8])] = []
    for number in 0..<packets {
      let samples = (0..<160).map { Self.voice(number * 160 + $0) }
      sent += samples
      var payload = [UInt8](repeating: 0, count: 400)
      var span = payload.mutableSpan
      let length = try encoder.encode(samples.span, into: &span)
      payload.removeLast(payload.count - length)
      if let delay = delay(number) { arrivals.append((number * 20 + delay, number, payload)) }
    }
    arrivals.sort { ($0.at, $0.sequence) < ($1.at, $1.sequence) }
    var next = 0
    for tick in 0..<packets {
      let now = tick * 20 + tickPhase
      while next < arrivals.count, arrivals[next].at <= now {
        let packet = arrivals[next]
        let header = RTPHeader(
          payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: firstSequence + packet.sequence)),
          timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: 0xffff_f000 + packet.sequence * Int(receiver.encoding.clockRateHz) / 50)),
          ssrc: SSRC(raw: 9))
        _ = receiver.insert(header, payload: packet.payload.span, at: .zero + .milliseconds(packet.at))
        next += 1
      }
      var samples = [Int16](repeating: 0, count: 160)
      var span = samples.mutableSpan
      let time = Instant.zero + .milliseconds(now)
      results.append(receiver.pull(into: &span, at: time))
      delays.append(receiver.delayMilliseconds(at: time))
      heard += samples
    }
  }

  func share(of result: PullResult) -> Double { Double(results.filter { $0 == result }.count) / Double(results.count) }
}

@Suite struct AudioReceiverTests {
  @Test func `on a clean network every packet is played whole at the first tick after it came`() throws {
    let simulation = try ReceiverSimulation(.pcmu)
    try simulation.run(packets: 500) { _ in 3 }
    #expect(simulation.results.allSatisfy { $0 == .played })
    #expect(simulation.receiver.statistics.shrunkSamples == 0 && simulation.receiver.statistics.grownSamples == 0)
    // The codec changes samples by a little: 2 % of their value.
    for index in 0..<simulation.heard.count {
      let (a, b) = (Int(simulation.heard[index]), Int(simulation.sent[index]))
      #expect(abs(a - b) <= abs(b) / 16 + 16)
    }
    #expect(simulation.receiver.statistics.meanDelayMilliseconds <= 2.1)
  }
}
