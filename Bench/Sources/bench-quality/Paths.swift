import JitterPeers
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP

/// The direction and codecs of the speech, and the audio that is scored.
enum Path: String, CaseIterable {
  /// PCMU in; the receiver's output is scored as it is.
  case pcmu
  /// PCMU in; the receiver's output goes to the app by Opus, without loss there.
  case trunkToApp = "trunk-app"
  /// Opus with in-band FEC in; the receiver's output goes to the trunk by PCMU.
  case appToTrunk = "app-trunk"
  /// G.722 in; the receiver's output goes to the app by Opus, all at 16 kHz.
  case g722ToApp = "g722-app"
  /// Opus with in-band FEC in; the receiver's output goes to the trunk by G.722, all at 16 kHz.
  case appToG722 = "app-g722"

  var encoding: AudioEncoding {
    switch self {
    case .pcmu, .trunkToApp: .pcmu
    case .g722ToApp: .g722
    case .appToTrunk, .appToG722: .opus
    }
  }
  /// The band of the receiver and of the scored audio.
  var band: AudioBand { self == .g722ToApp || self == .appToG722 ? .wideband : .narrowband }

  /// Wideband runs only with single lost packets: play-out handles jitter and bursts in the same way in both bands.
  func isPlayed(_ network: String) -> Bool {
    band == .narrowband || ["0 % loss", "1 % loss", "3 % loss", "5 % loss", "10 % loss"].contains(network)
  }

  /// The receiver's output as the far end decodes it.
  func outward(_ samples: [Int16]) throws -> [Int16] {
    let encoding: AudioEncoding
    switch self {
    case .pcmu: return samples
    case .trunkToApp, .g722ToApp: encoding = .opus
    case .appToTrunk: encoding = .pcmu
    case .appToG722: encoding = .g722
    }
    var decoder = try AudioDecoder(encoding: encoding, band: band)
    return try Stream.encode(samples, encoding, band, expectedLossPercent: 0).flatMap { payload in
      var samples = [Int16](repeating: 0, count: band.samplesPerTick)
      var span = samples.mutableSpan
      _ = decoder.decode(payload.span, into: &span)
      return samples
    }
  }
}

enum Stream {
  static func encode(
    _ samples: [Int16], _ encoding: AudioEncoding, _ band: AudioBand = .narrowband, expectedLossPercent: Int
  ) throws -> [[UInt8]] {
    let bitrate = bitrate(band, repairs: expectedLossPercent > 0)
    let control = EncoderControl(bitrate: bitrate, repairBitrate: bitrate, expectedLossPercent: expectedLossPercent)
    var encoder = try AudioEncoder(encoding: encoding, band: band, control: control)
    let tick = band.samplesPerTick
    return try stride(from: 0, to: samples.count - tick + 1, by: tick).map { start in
      var payload = [UInt8](repeating: 0, count: 1275)
      var span = payload.mutableSpan
      let tick = Array(samples[start..<start + tick])
      let length = try encoder.encode(tick.span, into: &span)
      return Array(payload[..<length])
    }
  }

  /// The bitrate that apps send (in narrow band our SDP's `maxaveragebitrate`), and the one that we send without packet loss.
  private static func bitrate(_ band: AudioBand, repairs: Bool) -> Int {
    switch (band, repairs) {
    case (.narrowband, true): 28_000
    case (.narrowband, false): EncoderControl.plainBitrate
    case (.wideband, true): EncoderControl.repairBitrate
    case (.wideband, false): EncoderControl.plainWideBitrate
    }
  }

  /// Packets in order of arrival: by time, then number.
  static func arrivals(_ delays: [Double?]) -> [(at: Double, number: Int)] {
    delays.enumerated().compactMap { number, delay in delay.map { (at: Double(number) * 20 + $0, number: number) } }
      .sorted { ($0.at, $0.number) < ($1.at, $1.number) }
  }

  /// Plays through the real receiver, with a tick every 20 ms that moves by a millisecond where the receiver requests it of the
  /// media thread; the first tick is `phase` ms after the fastest packets.
  static func play(
    _ payloads: [[UInt8]], _ encoding: AudioEncoding, _ delays: [Double?], _ band: AudioBand = .narrowband, phase: Double = 7
  ) throws -> [Int16] {
    var receiver = try AudioReceiver(encoding: encoding, band: band)
    let arrivals = arrivals(delays)
    let fastest = delays.compactMap(\.self).min() ?? 0
    let units = Int(encoding.clockRateHz) / 50
    var heard: [Int16] = []
    var samples = [Int16](repeating: 0, count: band.samplesPerTick)
    var next = 0
    var now = phase + fastest
    let end = Double(payloads.count + 25) * 20 + now
    var ticks = TickPhase()
    while now < end {
      while next < arrivals.count, arrivals[next].at <= now {
        let (at, number) = arrivals[next]
        next += 1
        let header = RTPHeader(
          payloadType: 0, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: number)),
          timestamp: RTPTimestamp(raw: UInt32(truncatingIfNeeded: number * units)), ssrc: SSRC(raw: 1))
        let payload = payloads[number]
        _ = receiver.insert(header, payload: payload.span, at: Instant(nanoseconds: Int64(at * 1e6)))
      }
      var span = samples.mutableSpan
      _ = receiver.pull(into: &span, at: Instant(nanoseconds: Int64(now * 1e6)))
      heard += samples
      now += 20 + Double(ticks.step(receiver.tickPreference))
    }
    return heard
  }

  /// Plays through NetEQ, with two pulls of 10 ms for each of our ticks.
  static func playByNetEQ(
    _ payloads: [[UInt8]], _ encoding: AudioEncoding, _ delays: [Double?], _ band: AudioBand = .narrowband, phase: Double = 7
  ) -> [Int16]? {
    guard let sharedStore = NetEQ(encoding == .opus ? .opus : encoding == .g722 ? .g722 : .pcmu) else { return nil }
    let arrivals = arrivals(delays)
    let fastest = delays.compactMap(\.self).min() ?? 0
    let units = Int(encoding.clockRateHz) / 50
    var heard: [Int16] = []
    var samples = [Int16](repeating: 0, count: sharedStore.samplesPerPull)
    var next = 0
    for pull in 0..<2 * (payloads.count + 25) {
      let now = Double(pull) * 10 + phase + fastest
      while next < arrivals.count, arrivals[next].at <= now {
        let (at, number) = arrivals[next]
        next += 1
        sharedStore.insert(
          sequence: UInt16(truncatingIfNeeded: number), timestamp: UInt32(truncatingIfNeeded: number * units),
          payload: payloads[number], at: Instant(nanoseconds: Int64(at * 1e6)))
      }
      let count = samples.withUnsafeMutableBufferPointer {
        sharedStore.pull(into: $0, at: Instant(nanoseconds: Int64(now * 1e6)))
      }
      heard += samples.prefix(max(0, count))
    }
    let rate = band.sampleRateHz
    return sharedStore.sampleRateHz == rate
      ? heard : Passages.resampled(heard, speed: Double(sharedStore.sampleRateHz) / Double(rate))
  }
}
