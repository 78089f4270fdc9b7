import AudioCodecs
import Bytes
import Testing

@testable import MediaSession

/// What an app may ask of the Opus that it gets (RFC 7587 §6.1), however odd, and reports that lie.
@Suite struct OpusWishesTests {
  /// Bytes of payload in a second of speech.
  private func bytes(_ wishes: OpusWishes, loss: Double? = nil) throws -> Double {
    var encoder = try AudioEncoder(encoding: .opus, control: wishes.control)
    if let loss { encoder.reported(lossFraction: loss, roundTripMilliseconds: nil, at: .zero) }
    var total = 0
    for frame in speech.prefix(300) {
      var packet = [UInt8](repeating: 0, count: 1_275)
      var span = packet.mutableSpan
      total += try encoder.encode(frame.span, into: &span)
    }
    return Double(total) / 6
  }

  @Test func `no app gets more than it wants, with copies or without`() throws {
    #expect(try bytes(OpusWishes()) < 3_300)
    #expect(try bytes(OpusWishes(), loss: 0.05) > 3_300)
    for bitrate in [6_000, 12_000, 28_000] {
      for loss in [nil, 0.05, 1] {
        let bytes = try bytes(OpusWishes(maximumBitrate: bitrate), loss: loss)
        #expect(bytes < Double(max(bitrate, 8_000)) / 8 * 1.15, "\(bitrate) \(String(describing: loss)): \(bytes)")
      }
    }
    for bitrate in [-1, 0, 1, .max] {
      let control = OpusWishes(maximumBitrate: bitrate).control
      #expect((6_000...24_000).contains(control.bitrate))
    }
  }

  @Test func `an app without use for FEC never gets it`() {
    var control = OpusWishes(takesRepair: false).control
    for second in 0..<20 { control.reported(lossFraction: 0.2, roundTripMilliseconds: nil, at: .zero + .seconds(second)) }
    #expect(!control.repairs)
  }

  @Test func `a session begins without copies`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 200, trunk: { speech[$0] })
    #expect(bench.toApp.allSatisfy { !OpusPacket.carriesRepair($0.payload.span) })
  }
}
