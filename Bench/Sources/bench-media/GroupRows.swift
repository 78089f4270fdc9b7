import BenchKit
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP

/// What a group of calls costs beyond its codecs: one frame taken in and one sum given out, for each leg every 20 ms.
enum GroupRows {
  static func add(to bench: Bench) throws {
    let (narrow, wide) = (AudioBand.narrowband, AudioBand.wideband)
    try row(bench, "mixer of a group, per leg and 20 ms, five narrow", Array(repeating: narrow, count: 5))
    try row(bench, "mixer of a group, per leg and 20 ms, five wide", Array(repeating: wide, count: 5))
    try row(bench, "mixer of a group, per leg and 20 ms, wide and narrow", [wide, wide, wide, narrow, narrow])
  }

  private static func row(_ bench: Bench, _ name: String, _ bands: [AudioBand]) throws {
    let work = BenchWork("ours") { loop in
      var mixer = GroupMixer()
      let slots = bands.compactMap { _ in mixer.join() }
      guard slots.count == bands.count else { throw BenchError(text: "no place in the mixer") }
      let speech = bands.map { Speech.ticks($0) }
      var frame = [Int16](repeating: 0, count: AudioBand.wideband.samplesPerTick)
      loop.run { number in
        let (leg, tick) = (number % bands.count, number / bands.count)
        let now = Instant(nanoseconds: 1_000_000_000 + Int64(tick) * 20_000_000 + Int64(leg) * 1_000_000)
        // each talks in turn and together: the frames of the legs are apart in the speech
        let said = speech[leg][(tick + 37 * leg) % speech[leg].count]
        said.withUnsafeBufferPointer { samples in
          if let base = samples.baseAddress { mixer.mix(base, bands[leg], from: slots[leg], at: now) }
        }
        frame.withUnsafeMutableBufferPointer { room in
          if let base = room.baseAddress { _ = mixer.add(to: base, bands[leg], hasAudio: true, for: slots[leg], at: now) }
        }
        return UInt64(bitPattern: Int64(frame[80]))
      }
    }
    try bench.compare(name, operations: 20_000, ours: work, goal: .atMost(60_000))
  }
}
