import AudioCodecs
import Bytes
import Foundation
import MediaSession
import RTP
import Testing

/// What other encoders made of speech (Tests/Vectors/encoders/make.py) looks wrong to nobody: signs that only our encoders leave would
/// hold most of it back.
@Suite struct OtherEncodersTests {
  @Test(arguments: ["ffmpegCELT", "ffmpegStereo", "libopusAudio", "libopusHybrid40", "ffmpegG722"])
  func `speech of another encoder is heard in full`(_ name: String) throws {
    // Of some 300: one wrong verdict for a while. Before there were 20 to 213 of Opus.
    #expect(try limited("encoders/\(name)", ticks: 280) <= 4)
  }

  /// Of 750 there were 4, 24 and 14, when the network had heard synthetic voices alone.
  @Test(arguments: ["ruPCMU", "ruG722", "ruOpus"])
  func `a person's speech is heard in full`(_ name: String) throws { #expect(try limited("voices/\(name)", ticks: 740) <= 2) }

  /// How many ticks were brought down.
  private func limited(_ name: String, ticks least: Int) throws -> UInt64 {
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Vectors/\(name).packets")
    let octets = [UInt8](try Data(contentsOf: file))
    let encodings: [String: AudioCodecs.AudioEncoding] = ["opus": .opus, "g722": .g722, "pcmu": .pcmu]
    let encoding = try #require(encodings[String(decoding: octets.prefix(4), as: UTF8.self)])
    let units = Int(encoding.clockRateHz) / 50
    var receiver = try AudioReceiver(encoding: encoding)
    var (place, sequence, timestamp, tick, heard) = (5, 0, 0, 0, 0.0)
    while place < octets.count {
      let now = Instant.zero + .milliseconds(tick * 20)
      if timestamp <= tick * units {
        let end = place + 2 + Int(octets[place]) << 8 + Int(octets[place + 1])
        let payload = Array(octets[place + 2..<end])
        let header = RTPHeader(
          payloadType: 96, marker: false, sequence: SequenceNumber(raw: UInt16(truncatingIfNeeded: sequence)),
          timestamp: RTPTimestamp(raw: UInt32(timestamp)), ssrc: SSRC(raw: 1))
        let insertion = receiver.insert(header, payload: payload.span, at: now)
        #expect(insertion == .stored, "packet \(sequence)")
        timestamp += AudioDecoder.duration(payload.span, encoding: encoding) ?? units
        (place, sequence) = (end, sequence + 1)
      }
      var samples = [Int16](repeating: 0, count: 160)
      var span = samples.mutableSpan
      _ = receiver.pull(into: &span, at: now + .milliseconds(5))
      heard += samples.reduce(0) { $0 + Double($1) * Double($1) }
      tick += 1
    }
    #expect(tick > least && heard / Double(tick * 160) > 1e4)
    #expect(receiver.statistics.damaged == 0)
    return receiver.statistics.limited
  }
}
