import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineMediaSession
import TrunklineRTP

/// Two modules declare the name, and a macro cannot choose.
typealias Encoding = AudioEncoding

/// A codec at one of its bands.
struct CodedStream: Sendable, CustomTestStringConvertible {
  var encoding: Encoding
  var band = AudioBand.narrowband

  /// Every codec at each of its bands.
  static let all = Encoding.allCases.flatMap { encoding in
    AudioBand.allCases.filter { $0 <= encoding.band }.map { CodedStream(encoding: encoding, band: $0) }
  }
  var testDescription: String { "\(encoding) \(band)" }
}

/// A talker, a network and a receiver on virtual time: a 200 Hz tone with harmonics in 20 ms packets, each sent at `20 n` ms and
/// delivered after a delay the test chooses (nil: lost).
final class ReceiverSimulation {
  var receiver: AudioReceiver
  var encoder: AudioEncoder
  var heard: [Int16] = []
  var results: [PullResult] = []
  var sent: [Int16] = []
  /// Delay of the play-out beyond the fastest packet, per tick.
  var delays: [Double] = []

  convenience init(_ encoding: Encoding, expectedLossPercent: Int = 10) throws {
    try self.init(CodedStream(encoding: encoding), expectedLossPercent: expectedLossPercent)
  }

  init(_ stream: CodedStream, expectedLossPercent: Int = 10) throws {
    band = stream.band
    receiver = try AudioReceiver(encoding: stream.encoding, band: band)
    let bitrate = band == .wideband ? 40_000 : 24_000
    encoder = try AudioEncoder(
      encoding: stream.encoding, band: band,
      control: EncoderControl(repairBitrate: bitrate, expectedLossPercent: expectedLossPercent))
  }

  /// The band of what is said and heard.
  let band: AudioBand

  /// Speech instead of the synthetic voice, if set.
  var speech: [Int16]?
  private func talk(_ index: Int) -> Int16 { speech.map { $0[index % $0.count] } ?? Self.voice(index, band) }

  static func voice(_ index: Int, _ band: AudioBand = .narrowband) -> Int16 {
    // A sawtooth-like period of 5 ms whose strength changes over syllables of 250 ms.
    let (period, length) = (band.sampleRateHz / 200, band.sampleRateHz / 4)
    let phase = Double(index % period) / Double(period)
    let syllable = Double(index % length) / Double(length)
    let strength = syllable < 0.8 ? 6000 * (0.3 + syllable) : 200
    return Int16(strength * (1 - 2 * phase) * (1 - phase))
  }

  /// - Parameters:
  ///   - packets: of `packetMilliseconds` each.
  ///   - tickPhase: milliseconds of the pull after the send times.
  ///   - skippedTicks: ticks at the end that only listen.
  ///   - sourceOf: SSRC by packet number.
  ///   - delay: in milliseconds by packet number; nil: lost.
  func run(
    packets: Int, packetMilliseconds: Int = 20, tickPhase: Int = 5, firstSequence: Int = 65_500,
    sourceOf: (Int) -> UInt32 = { _ in 9 },
    isEvent: (Int) -> Bool = { _ in false }, delay: (Int) -> Int?
  ) throws {
    var arrivals: [(at: Int, number: Int, payload: [UInt8])] = []
    let length = packetMilliseconds * band.sampleRateHz / 1000
    for number in 0..<packets {
      let samples = (0..<length).map { talk(number * length + $0) }
      sent += samples
      var payload = [UInt8](repeating: 0, count: 1275)
      var span = payload.mutableSpan
      let octets = try encoder.encode(samples.span, into: &span)
      payload.removeLast(payload.count - octets)
      if let delay = delay(number) { arrivals.append((number * packetMilliseconds + delay, number, payload)) }
    }
    arrivals.sort { ($0.at, $0.number) < ($1.at, $1.number) }
    var next = 0
    for tick in 0..<(packets * packetMilliseconds / 20) {
      let now = tick * 20 + tickPhase
      while next < arrivals.count, arrivals[next].at <= now {
        let packet = arrivals[next]
        let units = length * Int(receiver.encoding.clockRateHz) / band.sampleRateHz
        let header = RTPHeader(
          payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: firstSequence + packet.number)),
          timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: 0xffff_f000 + packet.number * units)),
          ssrc: SSRC(raw: sourceOf(packet.number)))
        let time = Instant.zero + .milliseconds(packet.at)
        if isEvent(packet.number) {
          receiver.skip(header, at: time)
        } else {
          _ = receiver.insert(header, payload: packet.payload.span, at: time)
        }
        next += 1
      }
      pull(at: .zero + .milliseconds(now))
    }
  }

  func pull(at time: Instant) {
    var samples = [Int16](repeating: 0, count: band.samplesPerTick)
    var span = samples.mutableSpan
    results.append(receiver.pull(into: &span, at: time))
    delays.append(receiver.delayMilliseconds(at: time))
    heard += samples
  }

  var statistics: PlayoutStatistics { receiver.statistics }
  /// Level of what was heard in these ticks, in dBov.
  func level(_ ticks: Range<Int>) -> Double {
    let part = Array(heard[ticks.lowerBound * band.samplesPerTick..<ticks.upperBound * band.samplesPerTick])
    return LevelMeter.decibels(LevelMeter.meanSquare(part.span))
  }

  func share(of result: PullResult) -> Double { Double(results.filter { $0 == result }.count) / Double(results.count) }
}

@Suite struct AudioReceiverTests {
  @Test func `on a clean network every packet is played whole at the first tick after it came`() throws {
    let simulation = try ReceiverSimulation(.pcmu)
    try simulation.run(packets: 500) { _ in 3 }
    #expect(simulation.results.allSatisfy { $0 == .played })
    #expect(
      simulation.receiver.statistics.removedSamplesForAcceleration == 0
        && simulation.receiver.statistics.insertedSamplesForDeceleration == 0)
    // The codec changes samples by a little: 2 % of their value.
    for index in 0..<simulation.heard.count {
      let (a, b) = (Int(simulation.heard[index]), Int(simulation.sent[index]))
      #expect(abs(a - b) <= abs(b) / 16 + 16)
    }
    #expect(simulation.receiver.statistics.bufferDelayMilliseconds <= 2.1)
  }

  @Test(arguments: CodedStream.all, [1, 7, 13, 19])
  func `on a clean network the buffer adds nothing to the wait for the tick`(_ stream: CodedStream, _ phase: Int) throws {
    let simulation = try ReceiverSimulation(stream)
    var random = SplitMix64(seed: 1)
    try simulation.run(packets: 400, tickPhase: phase) { _ in Int(random.next() % 2) }
    let sorted = simulation.delays[50...].sorted()
    #expect(sorted[sorted.count / 2] <= Double(phase) + 1)
    #expect(simulation.share(of: .concealed) < 0.01)
  }

  @Test(arguments: [10, 20, 40, 60])
  func `packets of any usual length give whole ticks`(_ milliseconds: Int) throws {
    for stream in CodedStream.all {
      let simulation = try ReceiverSimulation(stream)
      try simulation.run(packets: 6000 / milliseconds, packetMilliseconds: milliseconds) { _ in 3 }
      #expect(simulation.heard.count == 6 * simulation.band.sampleRateHz)
      #expect(simulation.results[5...].allSatisfy { $0 == .played })
      #expect(
        abs(
          simulation.level(50..<250)
            - LevelMeter.decibels(
              LevelMeter.meanSquare(Array(simulation.sent[simulation.band.sampleRateHz..<5 * simulation.band.sampleRateHz]).span))
        )
          < 1.5)
    }
  }

  @Test func `at 3 % loss Opus repairs most of what is lost, within a packet of extra delay`() throws {
    let simulation = try ReceiverSimulation(.opus)
    var random = SplitMix64(seed: 2)
    try simulation.run(packets: 3000) { _ in random.next() % 100 < 3 ? nil : 3 }
    let ticks = Double(simulation.results.count)
    #expect(Double(simulation.statistics.concealedSamples) / 160 / ticks < 0.01)
    #expect(Double(simulation.statistics.repairedSamples) / 160 / ticks > 0.02)
    #expect(simulation.statistics.bufferDelayMilliseconds < 26)
  }

  @Test(arguments: CodedStream.all)
  func `at 10 % loss the level holds and nothing is silent`(_ stream: CodedStream) throws {
    let simulation = try ReceiverSimulation(stream, expectedLossPercent: 20)
    var random = SplitMix64(seed: 3)
    try simulation.run(packets: 2000) { _ in random.next() % 100 < 10 ? nil : 3 + Int(random.next() % 3) }
    #expect(simulation.share(of: .silent) < 0.01)
    let sent = LevelMeter.decibels(LevelMeter.meanSquare(Array(simulation.sent.dropFirst(2 * simulation.band.sampleRateHz)).span))
    #expect(abs(simulation.level(100..<2000) - sent) < 1.5)
  }

  @Test(arguments: CodedStream.all)
  func `after a stall of 3 s audio is back within 500 ms and the delay is normal within 5 s`(_ stream: CodedStream) throws {
    let simulation = try ReceiverSimulation(stream)
    // Packets 250…399 all arrive at 8 s; the following ones arrive in time.
    try simulation.run(packets: 800) { number in (250..<400).contains(number) ? 8000 - number * 20 : 3 }
    #expect(simulation.results[402..<425].contains { $0 == .played })
    #expect(simulation.level(425..<500) > -40)
    #expect(simulation.delays[650...].max() ?? 999 < 60)
  }

  @Test(arguments: CodedStream.all)
  func `a delay step of 200 ms up and down is followed within 5 s`(_ stream: CodedStream) throws {
    let simulation = try ReceiverSimulation(stream)
    try simulation.run(packets: 1500) { number in (500..<1000).contains(number) ? 203 : 3 }
    #expect(simulation.delays[750..<1000].max() ?? 999 < 60)
    #expect(simulation.delays[1250...].max() ?? 999 < 60)
    #expect(simulation.results[560..<1000].allSatisfy { $0 == .played })
  }

  @Test(arguments: [-500, 500])
  func `a clock that runs 500 ppm off neither drains nor fills the buffer`(_ ppm: Int) throws {
    let simulation = try ReceiverSimulation(.pcmu)
    try simulation.run(packets: 6000) { number in 200 + number * 20 * ppm / 1_000_000 }
    #expect(simulation.delays[100...].max() ?? 999 < 45)
    #expect(simulation.share(of: .concealed) < 0.005)
  }

  @Test func `another source is heard within 200 ms`() throws {
    let simulation = try ReceiverSimulation(.pcmu)
    try simulation.run(packets: 300, sourceOf: { $0 < 150 ? 1 : 2 }) { _ in 3 }
    #expect(simulation.results[160...].allSatisfy { $0 == .played })
  }

  @Test func `telephone-events in the stream are no loss`() throws {
    let simulation = try ReceiverSimulation(.pcmu)
    try simulation.run(packets: 300, isEvent: { (100..<110).contains($0) }) { _ in 3 }
    #expect(simulation.statistics.missing == 0)
    #expect(simulation.results[112...].allSatisfy { $0 == .played })
  }

  @Test func `a talker's pause that begins while audio is shortened holds nothing up`() throws {
    let simulation = try ReceiverSimulation(.pcmu)
    let payload = [UInt8](repeating: 0x40, count: 160)
    // 200 ms queued at once, so that there is audio to remove; after each packet the timestamp skips 40 ms, as with DTX.
    var now = Instant.zero
    for number in 0..<400 {
      if number % 10 == 0 { now = now + .milliseconds(600) }
      let header = RTPHeader(
        payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(number)),
        timestamp: RTPTimestamp(raw: UInt32(number * 480)),
        ssrc: SSRC(raw: 1))
      _ = simulation.receiver.insert(header, payload: payload.span, at: now)
      if number % 10 == 9 { for tick in 0..<30 { simulation.pull(at: now + .milliseconds(tick * 20)) } }
    }
    #expect(simulation.results.count == 1200)
  }

  @Test func `nothing received is silence, and a stream that ends becomes silence`() throws {
    let simulation = try ReceiverSimulation(.pcmu)
    simulation.pull(at: .zero)
    #expect(simulation.results == [.silent])
    try simulation.run(packets: 100) { $0 < 50 ? 3 : nil }
    #expect(simulation.results.suffix(30).allSatisfy { $0 == .silent })
    #expect(simulation.heard.suffix(4000).allSatisfy { $0 == 0 })
    // What was made up at the end counts at most 200 ms.
    #expect(simulation.statistics.concealedSamples <= 1760)
  }

  @Test(arguments: CodedStream.all)
  func `random payloads, numbers and times give a whole tick of samples each and never trap`(_ stream: CodedStream) throws {
    let simulation = try ReceiverSimulation(stream)
    var random = SplitMix64(seed: 17)
    // A passage of these is as random as octets drawn one by one, which took more time than the receiver.
    let octets = (0..<65_536).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    for _ in 0..<20_000 {
      let start = Int(random.next() % 65_000)
      let payload = Array(octets[start..<start + Int(random.next() % 300)])
      let header = RTPHeader(
        payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: random.next() % 50)),
        timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: random.next() % 3 == 0 ? random.next() : random.next() % 9000)),
        ssrc: SSRC(raw: 1))
      let time = Instant.zero + .milliseconds(Int64(random.next() % 100_000))
      if random.next() % 10 == 0 {
        simulation.receiver.skip(header, at: time)
      } else {
        _ = simulation.receiver.insert(header, payload: payload.span, at: time)
      }
      if random.next() % 2 == 0 { simulation.pull(at: time) }
    }
    #expect(simulation.heard.count == simulation.results.count * simulation.band.samplesPerTick)
  }

  @Test(arguments: [5, 7, 11])
  func `what is made up for lost speech is nearer to it than silence, and as loud`(_ every: Int) throws {
    let octets = DemoSpeech.telephone
    var speech = [Int16](repeating: 0, count: octets.count)
    var span = speech.mutableSpan
    _ = G711.decode(octets.span, law: .mu, into: &span)
    let simulation = try ReceiverSimulation(.pcmu)
    simulation.speech = speech
    let lost = Array(stride(from: 10, to: 380, by: every))
    try simulation.run(packets: 380) { lost.contains($0) ? nil : 3 }
    // Ticks and packets coincide here: tick n plays packet n, and from the second loss on, at which the delay grows, packet n −
    // 1.
    var (energy, made, error) = (0.0, 0.0, 0.0)
    for index in lost.dropFirst(2).flatMap({ $0 * 160..<($0 + 1) * 160 }) {
      let (a, b) = (Double(simulation.sent[index]), Double(simulation.heard[index + 160]))
      energy += a * a
      made += b * b
      error += (a - b) * (a - b)
    }
    #expect(error < 0.8 * energy)
    #expect(made > 0.5 * energy && made < 2 * energy)
  }
}
