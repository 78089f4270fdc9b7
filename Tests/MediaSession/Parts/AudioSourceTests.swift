import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

/// Other sources and listeners of a session's audio: announcements, taps, streams, other sessions.
@Suite struct AudioSourceTests {
  private let announcement = Announcement(Recording([Int16](repeating: 9, count: 400)))

  @Test func `an announcement is played to its end, the last frame filled up, and is over once`() {
    var player = AnnouncementPlayer()
    var samples = [Int16](repeating: 1, count: 320)
    let started = player.play(announcement)
    var ends: [Bool] = []
    for _ in 0..<3 {
      ends.append(player.isOver(.narrowband))
      player.write(into: &samples, .narrowband)
    }
    #expect(
      started && ends == [false, false, false] && samples[..<80].allSatisfy { $0 == 9 }
        && samples[80..<160].allSatisfy { $0 == 0 })
    ends = [player.isOver(.narrowband), player.isOver(.narrowband)]
    #expect(ends == [true, false] && !player.isPlaying)
  }

  @Test func `an idle player writes nothing, is not over, and has nothing to stop`() {
    var player = AnnouncementPlayer()
    var samples: [Int16] = [1, 2, 3]
    player.stop()
    player.write(into: &samples, .narrowband)
    let given = [player.play(nil), player.isOver(.narrowband)]
    #expect(given == [false, false] && samples == [1, 2, 3])
  }

  @Test func `a second announcement begins at its beginning; nil stops, once`() {
    var player = AnnouncementPlayer()
    var samples = [Int16](repeating: 0, count: 320)
    _ = player.play(announcement)
    for _ in 0..<3 { player.write(into: &samples, .narrowband) }
    _ = player.play(announcement)
    let isOver = player.isOver(.narrowband)
    let stops = [player.play(nil), player.play(nil)]
    #expect(!isOver && stops == [true, false] && !player.isPlaying)
  }

  @Test func `without tap and stream nothing is written or read`() {
    let taps = AudioTaps()
    var samples: [Int16] = [1, 2, 3]
    taps.record(.trunkToApp, samples, .narrowband, at: .zero)
    taps.send(samples, .narrowband, at: .zero)
    let received = taps.receive(into: &samples, .narrowband)
    #expect(!received && samples == [1, 2, 3] && !taps.hasTap && !taps.hasStream)
  }

  @Test func `a replaced tap gets no more frames; a full one drops them`() {
    var taps = AudioTaps()
    let (one, two) = (AudioTap(frames: 4), AudioTap(frames: 4))
    let samples = [Int16](repeating: 0, count: 320)
    taps.attach(one)
    for _ in 0..<5 { taps.record(.appToTrunk, samples, .narrowband, at: .zero) }
    taps.attach(two)
    taps.record(.appToTrunk, samples, .narrowband, at: .zero)
    taps.attach(nil)
    taps.record(.appToTrunk, samples, .narrowband, at: .zero)
    #expect(one.count == 4 && one.dropped == 1 && two.count == 1 && !taps.hasTap)
  }

  @Test func `a stream's frame of another band is converted; an empty stream gives none`() {
    var taps = AudioTaps()
    let stream = AudioStream()
    taps.connect(stream)
    var samples = [Int16](repeating: 0, count: 320)
    stream.said.put(TappedFrame(.appToTrunk, .narrowband, at: .zero), [Int16](repeating: 1_000, count: 160))
    let received = [taps.receive(into: &samples, .wideband), taps.receive(into: &samples, .wideband)]
    #expect(received == [true, false] && samples[300] > 900)
    taps.send(samples, .wideband, at: .zero)
    #expect(stream.heard.count == 1)
  }

  @Test func `partners change only with another value`() {
    var partners = Partners()
    let (half, group) = (MediaSessionID(raw: 1), MediaGroupID(raw: 2))
    let learnt = [partners.learn(nil), partners.learn(.wideband), partners.learn(.wideband), partners.learn(nil)]
    let joined = [partners.join(nil), partners.join(group), partners.join(group), partners.join(nil)]
    #expect(learnt == [false, true, false, true] && joined == [false, true, false, true])
    partners.bridge(to: half)
    partners.bridge(to: MediaSessionID(raw: 3))
    #expect(partners.bridge == MediaSessionID(raw: 3) && partners.group == nil)
  }

  @Test func `four ticks of each direction are skipped, unless a command ends it`() {
    var skipped = SkippedTicks()
    let none = skipped.skips(.trunkToApp)
    skipped.begin()
    var ticks: [Bool] = []
    for _ in 0..<5 { for direction in [AudioDirection.trunkToApp, .appToTrunk] { ticks.append(skipped.skips(direction)) } }
    #expect(!none && ticks == Array(repeating: true, count: 8) + [false, false])
    skipped.begin()
    skipped.begin()
    skipped.end()
    skipped.end()
    let ended = skipped.skips(.appToTrunk)
    #expect(!ended)
  }
}
