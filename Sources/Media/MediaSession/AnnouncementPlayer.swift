import TrunklineRTP

/// The announcement that the trunk receives in place of the app, and the position in it.
///
/// | operation | state | effect |
/// |---|---|---|
/// | `play` an announcement | any | plays it from its beginning; true |
/// | `play` nil | playing | stops; true |
/// | `play` nil | idle | false |
/// | `stop` | any | idle |
/// | `isOver` | the last frame was written | idle; true once |
/// | `isOver` | idle, or frames are left | false |
/// | `write` | playing | the next 20 ms, then silence to the end of the frame |
/// | `write` | idle | – |
struct AnnouncementPlayer {
  private var announcement: Announcement?
  /// In ticks.
  private var position = 0

  var isPlaying: Bool { announcement != nil }

  mutating func play(_ next: Announcement?) -> Bool {
    if next == nil, announcement == nil { return false }
    announcement = next
    position = 0
    return true
  }

  mutating func stop() { announcement = nil }

  mutating func isOver(_ band: AudioBand) -> Bool {
    guard let announcement, position * band.samplesPerTick >= announcement.recording.count(band) else { return false }
    stop()
    return true
  }

  mutating func write(into frame: UnsafeMutablePointer<Int16>, _ band: AudioBand) {
    guard let announcement else { return }
    let samples = announcement.recording.samples(band)
    let start = position * band.samplesPerTick
    let count = max(0, min(band.samplesPerTick, samples.count - start))
    for index in 0..<count { frame[index] = samples[start + index] }
    (frame + count).update(repeating: 0, count: band.samplesPerTick - count)
    position += 1
  }
}
