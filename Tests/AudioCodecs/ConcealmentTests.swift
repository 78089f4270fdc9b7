import Testing
import TrunklineAudioCodecs
import TrunklineBytes

final class Concealment {
  var concealer = PitchConcealer()
  func receive(_ samples: [Int16]) -> [Int16] {
    var samples = samples
    var span = samples.mutableSpan
    concealer.received(&span, count: span.count)
    return samples
  }
  func conceal(_ count: Int, before next: [Int16]? = nil) -> [Int16] {
    var samples = [Int16](repeating: 0, count: count)
    var span = samples.mutableSpan
    if let next { concealer.conceal(count, into: &span, before: next.span) } else { concealer.conceal(count, into: &span) }
    return samples
  }
}

@Suite struct ConcealmentTests {
  @Test func `good audio passes unchanged`() {
    let concealment = Concealment()
    for frame in 0..<10 { #expect(concealment.receive(voice(160, from: frame * 160)) == voice(160, from: frame * 160)) }
  }

  /// Ratio of signal to error of concealed audio, compared with the lost audio, in dB.
  func fidelity(_ made: [Int16], _ lost: [Int16]) -> Double {
    let error = zip(made, lost).map { Int16(clamping: Int($0) - Int($1)) }
    return level(lost) - level(error)
  }

  @Test(arguments: [43, 50, 80, 117])
  func `a lost 10 ms of a steady voice is nearly what was lost`(_ period: Int) {
    let concealment = Concealment()
    for frame in 0..<10 { _ = concealment.receive(voice(160, period: period, from: frame * 160, pauses: false)) }
    let made = concealment.conceal(80)
    #expect(fidelity(made, voice(80, period: period, from: 1600, pauses: false)) > 10)
  }

  @Test func `it joins what was before and what comes after without a step`() {
    let concealment = Concealment()
    var heard: [Int16] = []
    func sine(_ from: Int) -> [Int16] { (from..<from + 160).map { Int16(8000 * sin8(Double($0) / 53)) } }
    for frame in 0..<40 { heard += frame % 8 == 7 ? concealment.conceal(160) : concealment.receive(sine(frame * 160)) }
    // A sine of amplitude 8000 and period 53 moves by at most 950 per sample; a step would be thousands.
    let steps = zip(heard, heard.dropFirst()).map { abs(Int($0) - Int($1)) }
    #expect(steps.max() ?? 0 < 2400)
  }

  /// A sine by two parabolas: exact enough for a test, without the C library.
  func sin8(_ turns: Double) -> Double {
    let phase = turns - turns.rounded(.down)
    return phase < 0.5 ? 16 * phase * (0.5 - phase) : -16 * (phase - 0.5) * (1 - phase)
  }

  @Test func `a long loss fades to the noise of the pauses before it`() {
    let concealment = Concealment()
    for frame in 0..<10 { _ = concealment.receive(voice(160, from: frame * 160, pauses: false)) }
    let made = (0..<10).map { _ in concealment.conceal(160) }
    #expect(level(made[0]) > level(voice(160, from: 1600, pauses: false)) - 4)
    #expect(level(made[2]) < level(made[0]) - 3)
    #expect(level(made[3]) < level(made[0]) - 6)
    // A voice without pauses does not show the background: −50 dBov at most.
    #expect(made[6...].allSatisfy { level($0) < -49 && level($0) > -53 })
    // The voice is audible again.
    #expect(level(concealment.receive(voice(160, from: 3200, pauses: false))) > -40)
  }

  @Test func `noise after a long loss is as loud as the pauses, and silence stays silent`() {
    for amplitude in [0, 20, 40] {
      let concealment = Concealment()
      var random = SplitMix64(seed: 3)
      let pause = (0..<1600).map { _ in Int16(Int(random.next() % UInt64(2 * amplitude + 1)) - amplitude) }
      for start in stride(from: 0, to: 1600, by: 160) { _ = concealment.receive(Array(pause[start..<start + 160])) }
      for frame in 0..<25 { _ = concealment.receive(voice(160, from: frame * 160, pauses: false)) }
      _ = concealment.conceal(960)
      let noise = level(concealment.conceal(960))
      #expect(amplitude == 0 ? noise < -85 : abs(noise - level(pause)) < 1.5, "\(amplitude)")
    }
  }

  /// 20 ms of a voice whose pitch and strength change, from `frame` on.
  private func glide(_ frame: Int, rises: Bool = false) -> [Int16] {
    (frame * 160..<frame * 160 + 160).map { index in
      let turns = Double(index) / 60 + Double(index) * Double(index) / 400_000
      let strength = rises ? min(1, 0.1 + max(0, Double(index - 1_800)) / 300) : 1
      return Int16(strength * (7_000 * sin8(turns) + 4_000 * sin8(2 * turns + 0.2) + 3_000 * sin8(5 * turns)))
    }
  }

  @Test(arguments: [false, true])
  func `a concealed loss is nearer to the lost audio if its successor is known`(_ rises: Bool) {
    let (blind, led) = (Concealment(), Concealment())
    for frame in 0..<12 {
      _ = blind.receive(glide(frame, rises: rises))
      _ = led.receive(glide(frame, rises: rises))
    }
    let lost = glide(12, rises: rises)
    let alone = fidelity(blind.conceal(160), lost)
    let both = fidelity(led.conceal(160, before: glide(13, rises: rises)), lost)
    #expect(both > alone + 3, "\(both) \(alone)")
    // The packet that the concealment was joined to is played unchanged, and without a step.
    #expect(led.receive(glide(13, rises: rises)) == glide(13, rises: rises))
    #expect(blind.receive(glide(13, rises: rises)) != glide(13, rises: rises))
  }

  @Test func `audio that the concealment was not joined to is faded in, although the end of the loss was known`() {
    let concealment = Concealment()
    for frame in 0..<12 { _ = concealment.receive(glide(frame)) }
    _ = concealment.conceal(160, before: glide(13))
    // The lost packet was only reordered.
    #expect(concealment.receive(glide(12)) != glide(12))
    #expect(concealment.receive(glide(13)) == glide(13))
  }

  @Test func `the beginning of a word after a pause is not spread over the pause`() {
    let concealment = Concealment()
    for _ in 0..<12 { _ = concealment.receive([Int16](repeating: 0, count: 160)) }
    let made = concealment.conceal(160, before: glide(13))
    #expect(level(Array(made[..<40])) < level(glide(13)) - 10)
    #expect(level(Array(made[120...])) > level(glide(13)) - 8)
  }

  @Test func `silence and full scale noise are extrapolated without a trap`() {
    let concealment = Concealment()
    #expect(concealment.conceal(160).allSatisfy { $0 == 0 })
    for _ in 0..<20 {
      _ = concealment.receive((0..<160).map { $0 % 2 == 0 ? .min : .max })
      _ = concealment.conceal(37)
      _ = concealment.receive([.min])
      _ = concealment.conceal(500)
      for length in [0, 1, 7, 79, 80, 160, 960] {
        let next = [Int16](repeating: length % 2 == 0 ? .min : .max, count: length)
        _ = concealment.conceal(length, before: next)
        _ = concealment.receive(next)
      }
    }
  }
}
