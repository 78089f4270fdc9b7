import TrunklineRTP

/// The first words of a direction: audio that is kept until the other end can play it, then caught up.
///
/// | state | input | next |
/// |---|---|---|
/// | any | `begin` | holding, empty |
/// | holding | `pass` with audio | holding; no frame to play |
/// | holding | `release` | catching up; none if nothing was kept |
/// | catching up | `pass` | the next kept frame; none after the last |
/// | none | `pass`, `keep`, `release` | none; a frame is played as it is |
/// | any | `setBand` | the same in another band |
/// | any | `drop` | none |
struct FirstWords: ~Copyable {
  private var kept: KeptAudio?

  init() {}

  @inline(__always) var isEmpty: Bool { kept == nil }

  /// Allocates.
  mutating func begin(_ band: AudioBand) { kept = KeptAudio(band) }

  mutating func drop() { kept = nil }

  /// The other end can play.
  mutating func release() {
    kept?.release()
    if kept?.isFinished == true { kept = nil }
  }

  /// Keeps the frame.
  mutating func keep(_ frame: UnsafePointer<Int16>) { kept?.push(frame) }

  /// Keeps the frame if it has audio, and replaces it by the next kept one. False: there is no frame to play. HOT
  mutating func pass(_ frame: UnsafeMutablePointer<Int16>, hasAudio: Bool) -> Bool {
    guard kept != nil else { return hasAudio }
    if hasAudio { kept?.push(frame) }
    let played = kept?.pull(into: frame) ?? false
    if kept?.isFinished == true { kept = nil }
    return played
  }

  mutating func setBand(_ band: AudioBand) { if let before = kept.take() { kept = KeptAudio(before, in: band) } }
}
