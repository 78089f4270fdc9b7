import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP

@testable import RecordingFiles

/// Both sides of a call on one time line.
@Suite struct TwoChannelsTests {
  private func frame(_ direction: AudioDirection, _ milliseconds: Int, _ band: AudioBand = .narrowband) -> TappedFrame {
    TappedFrame(direction, band, at: Instant(nanoseconds: 5_000_000_000) + .milliseconds(milliseconds))
  }
  private let first = Instant(nanoseconds: 5_000_000_000)

  /// The value of each slot on either side, all of whose samples are equal.
  private func values(_ channels: inout TwoChannels, at now: Instant? = nil) -> [[Int16]] {
    var out: [[Int16]] = []
    let count = 2 * channels.band.samplesPerTick
    channels.pop(at: now) { pair in
      #expect(pair.count == count)
      out.append([pair[0], pair[1]])
    }
    return out
  }
  private func add(_ channels: inout TwoChannels, _ frame: TappedFrame, _ value: Int16) {
    let samples = [Int16](repeating: value, count: 320)
    channels.add(frame, samples)
  }

  @Test func `frames of both sides lie side by side, wandering ticks do not move them`() {
    var channels = TwoChannels(frame(.trunkToApp, 0))
    for k in 0..<6 {
      let (early, late) = (20 * k + (k % 3) * 6, 20 * k + 11 - (k % 2) * 9)
      add(&channels, frame(.trunkToApp, early), Int16(k + 1))
      add(&channels, frame(.appToTrunk, late), Int16(0 - k - 1))
    }
    let wanted: [[Int16]] = (1...6).map { [Int16($0), Int16(0 - $0)] }
    let sides = values(&channels)
    #expect(sides == wanted)
    #expect(channels.droppedFrames == 0)
  }

  @Test func `a gap on one side is silence there, and the side behind it lies at its time`() {
    var channels = TwoChannels(frame(.trunkToApp, 0))
    for k in 0..<20 { add(&channels, frame(.trunkToApp, 20 * k), 1) }
    for k in [0, 1, 2, 13, 14] { add(&channels, frame(.appToTrunk, 20 * k), 2) }
    let sides = values(&channels)
    #expect(sides.map { $0[0] } == [Int16](repeating: 1, count: 20))
    #expect(sides.indices.filter { sides[$0][1] == 2 } == [0, 1, 2, 13, 14])
  }

  @Test func `what nobody says for long is silence as it goes by, not all at once`() {
    var channels = TwoChannels(frame(.trunkToApp, 0))
    add(&channels, frame(.trunkToApp, 0), 1)
    add(&channels, frame(.appToTrunk, 0), 2)
    #expect(values(&channels, at: first + .milliseconds(20)) == [[1, 2]])
    #expect(values(&channels, at: first + .milliseconds(2_000)).count == 100 - Limits.slotsSilent - 1 - Limits.slotsAhead)
    add(&channels, frame(.trunkToApp, 2_000), 3)
    add(&channels, frame(.appToTrunk, 2_000), 4)
    let rest = values(&channels)
    #expect(rest.last == [3, 4] && channels.slots == 101)
  }

  @Test func `a frame for a time that was given out, or far too early, is counted and left out`() {
    var channels = TwoChannels(frame(.trunkToApp, 0))
    for k in 0..<10 { add(&channels, frame(.trunkToApp, 20 * k), 1) }
    _ = values(&channels)
    add(&channels, frame(.appToTrunk, 0), 2)
    #expect(channels.droppedFrames == 1)
    // more frames than time
    for _ in 0..<10 { add(&channels, frame(.trunkToApp, 180), 3) }
    #expect(channels.droppedFrames > 5)
    #expect(channels.slots <= 16)
  }

  @Test func `frames of the other band become those of the file's`() {
    var channels = TwoChannels(frame(.trunkToApp, 0, .wideband))
    add(&channels, frame(.trunkToApp, 0, .wideband), 5)
    add(&channels, frame(.appToTrunk, 0), 9)
    add(&channels, frame(.trunkToApp, 20), 7)
    add(&channels, frame(.appToTrunk, 20, .wideband), 8)
    #expect(values(&channels) == [[5, 9], [7, 8]])
  }
}
