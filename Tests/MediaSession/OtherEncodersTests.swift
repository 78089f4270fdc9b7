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
    let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Vectors/encoders/\(name).packets")
    let octets = [UInt8](try Data(contentsOf: file))
    let encoding: AudioCodecs.AudioEncoding = octets.starts(with: Array("opus".utf8)) ? .opus : .g722
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
    #expect(tick > 280 && heard / Double(tick * 160) > 1e4)
    // Of some 300: one wrong verdict for a while. Before there were 20 to 213 of Opus.
    let statistics = receiver.statistics
    #expect(statistics.damaged == 0 && statistics.limited <= 4, "\(statistics.limited) of \(tick)")
  }
}
