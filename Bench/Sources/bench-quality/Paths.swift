import AudioCodecs
import Bytes
import JitterPeers
import MediaSession
import RTP

/// Which way speech goes and what is scored.
enum Path: String, CaseIterable {
  /// PCMU in, the receiver's output as it is.
  case pcmu
  /// PCMU in, the receiver's output to the app by Opus, without loss there.
  case trunkToApp = "trunk-app"
  /// Opus with in-band FEC in, the receiver's output to the trunk by PCMU.
  case appToTrunk = "app-trunk"

  var encoding: AudioEncoding { self == .appToTrunk ? .opus : .pcmu }

  /// What the far end hears of what the receiver played.
  func outward(_ samples: [Int16]) throws -> [Int16] {
    guard self != .pcmu else { return samples }
    let encoding: AudioEncoding = self == .appToTrunk ? .pcmu : .opus
    var decoder = try AudioDecoder(encoding: encoding)
    return try Stream.encode(samples, encoding, expectedLossPercent: 0).flatMap { payload in
      var samples = [Int16](repeating: 0, count: 160)
      var span = samples.mutableSpan
      _ = decoder.decode(payload.span, into: &span)
      return samples
    }
  }
}

enum Stream {
  static func encode(_ samples: [Int16], _ encoding: AudioEncoding, expectedLossPercent: Int) throws -> [[UInt8]] {
    // What our SDP lets apps send (`maxaveragebitrate`), and what we send where nobody lost a packet.
    let bitrate = expectedLossPercent > 0 ? 28_000 : EncoderControl.plainBitrate
    let control = EncoderControl(bitrate: bitrate, repairBitrate: bitrate, expectedLossPercent: expectedLossPercent)
    var encoder = try AudioEncoder(encoding: encoding, control: control)
    return try stride(from: 0, to: samples.count - 159, by: 160).map { start in
      var payload = [UInt8](repeating: 0, count: 1275)
      var span = payload.mutableSpan
      let tick = Array(samples[start..<start + 160])
      let length = try encoder.encode(tick.span, into: &span)
      return Array(payload[..<length])
    }
  }

  /// Packets as they come: by time, then number.
  static func arrivals(_ delays: [Double?]) -> [(at: Double, number: Int)] {
    delays.enumerated().compactMap { number, delay in delay.map { (at: Double(number) * 20 + $0, number: number) } }
      .sorted { ($0.at, $0.number) < ($1.at, $1.number) }
  }

  /// Through the real receiver, a tick every 20 ms, a millisecond sooner or later where it asks the media thread for that; the first
  /// `phase` ms after the fastest packets.
  static func play(_ payloads: [[UInt8]], _ encoding: AudioEncoding, _ delays: [Double?], phase: Double = 7) throws
    -> [Int16]
  {
    var receiver = try AudioReceiver(encoding: encoding)
    let arrivals = arrivals(delays)
    let fastest = delays.compactMap(\.self).min() ?? 0
    let units = Int(encoding.clockRateHz) / 50
    var heard: [Int16] = []
    var samples = [Int16](repeating: 0, count: 160)
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

  /// Through NetEQ, two pulls of 10 ms where ours has a tick.
  static func playByNetEQ(_ payloads: [[UInt8]], _ encoding: AudioEncoding, _ delays: [Double?], phase: Double = 7) -> [Int16]? {
    guard let engine = NetEQ(encoding == .opus ? .opus : .pcmu) else { return nil }
    let arrivals = arrivals(delays)
    let fastest = delays.compactMap(\.self).min() ?? 0
    let units = Int(encoding.clockRateHz) / 50
    var heard: [Int16] = []
    var samples = [Int16](repeating: 0, count: engine.samplesPerPull)
    var next = 0
    for pull in 0..<2 * (payloads.count + 25) {
      let now = Double(pull) * 10 + phase + fastest
      while next < arrivals.count, arrivals[next].at <= now {
        let (at, number) = arrivals[next]
        next += 1
        engine.insert(
          sequence: UInt16(truncatingIfNeeded: number), timestamp: UInt32(truncatingIfNeeded: number * units),
          payload: payloads[number], at: Instant(nanoseconds: Int64(at * 1e6)))
      }
      let count = samples.withUnsafeMutableBufferPointer { engine.pull(into: $0, at: Instant(nanoseconds: Int64(now * 1e6))) }
      heard += samples.prefix(max(0, count))
    }
    return engine.sampleRateHz == 8000 ? heard : Passages.resampled(heard, speed: Double(engine.sampleRateHz) / 8000)
  }
}
