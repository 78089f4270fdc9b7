import Foundation
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

/// The mixer alone, with narrowband and wideband frames.
private struct Table: ~Copyable {
  var mixer = GroupMixer()
  let slots: [Int]
  var now = Instant.zero
  /// What each member heard.
  var heard: [[Int16]]
  let bands: [AudioBand]

  init(_ bands: [AudioBand]) {
    self.bands = bands
    var mixer = GroupMixer()
    var slots: [Int] = []
    for _ in bands { slots.append(mixer.join() ?? -1) }
    (self.slots, heard) = (slots, Array(repeating: [], count: bands.count))
    self.mixer = mixer
  }
  init(_ count: Int) { self.init(Array(repeating: .narrowband, count: count)) }

  mutating func say(_ member: Int, _ samples: [Int16]) {
    samples.withUnsafeBufferPointer { mixer.mix($0.baseAddress!, bands[member], from: slots[member], at: now) }
  }

  /// What `member` hears in addition to its own app.
  mutating func listen(_ member: Int, app: [Int16]? = nil) {
    let band = bands[member]
    var frame = app ?? [Int16](repeating: 0, count: band.samplesPerTick)
    let member = slots[member]
    let isHeard = frame.withUnsafeMutableBufferPointer { [now] room in
      mixer.add(to: room.baseAddress!, band, hasAudio: app != nil, for: member, at: now)
    }
    heard[member] += isHeard ? frame : [Int16](repeating: 0, count: band.samplesPerTick)
  }

  /// A round in which all of `talk` send a frame and all members listen.
  mutating func round(_ talk: [Int: [Int16]]) {
    for member in bands.indices {
      say(member, talk[member] ?? [Int16](repeating: 0, count: bands[member].samplesPerTick))
    }
    for member in bands.indices { listen(member) }
    now = now + .milliseconds(20)
  }
}

private func largestStep(_ samples: some Collection<Int16>) -> Int {
  zip(samples, samples.dropFirst()).map { abs(Int($0) - Int($1)) }.max() ?? 0
}

@Suite struct GroupMixerTests {
  @Test func `one talker at a time comes out sample for sample, and no member hears itself`() {
    var table = Table(5)
    for (index, frame) in speech.enumerated() { table.round([(index / 100) % 5: frame]) }
    for member in 0..<5 {
      var differing = 0
      for (index, frame) in speech.enumerated().dropFirst() {
        let talks = (index / 100) % 5 == member
        // the first frame of a talker's turn may fade in
        if index % 100 == 0 { continue }
        let got = Array(table.heard[member][index * 160..<(index + 1) * 160])
        if got != (talks ? quiet : frame) { differing += 1 }
      }
      #expect(differing == 0, "member \(member)")
    }
  }

  @Test func `of four others the quietest is not heard, and lowers no other level`() {
    var table = Table(5)
    let amplitudes: [Double] = [6_000, 5_000, 4_000, 3_000, 300]
    for index in 0..<100 {
      let talk = (0..<5).map { ($0, tone(index, hertz: 300 + 170 * Double($0), amplitude: amplitudes[$0])) }
      table.round(Dictionary(uniqueKeysWithValues: talk))
    }
    let first = Array(table.heard[0].suffix(8_000))
    for member in 1...3 { #expect(strength(first, 300 + 170 * Double(member)) > 0.95 * amplitudes[member], "\(member)") }
    #expect(strength(first, 300 + 170 * 4) < 30)
    // the quietest member hears the loudest three of the others
    let last = Array(table.heard[4].suffix(8_000))
    #expect(strength(last, 300 + 170 * 3) < 60 && strength(last, 300) > 5_700)
  }

  @Test func `five who talk at once are neither clipped nor pumped`() {
    var table = Table(5)
    for index in 0..<200 {
      let talk = (0..<5).map { ($0, tone(index, hertz: 300 + 170 * Double($0), amplitude: 12_000)) }
      table.round(Dictionary(uniqueKeysWithValues: talk))
    }
    let heard = table.heard[0].dropFirst(320)
    #expect(heard.allSatisfy { abs(Int($0)) < 32_767 }, "full scale is never reached")
    // levels kept below the bend: a member that continues alone is at once as loud as before
    for index in 200..<210 { table.round([1: tone(index, hertz: 470, amplitude: 12_000)]) }
    let alone = Array(table.heard[0].suffix(1_280))
    #expect(abs(level(alone) - 12_000 / 2.0.squareRoot()) < 100, "\(level(alone))")
  }

  @Test func `a member joins the loudest without a click, and only if it is clearly louder`() {
    var table = Table(5)
    func say(_ index: Int, _ fifth: Double) {
      let talk = (1..<4).map { ($0, tone(index, hertz: 200 + 50 * Double($0), amplitude: 3_000)) }
      table.round(Dictionary(uniqueKeysWithValues: talk + [(4, tone(index, hertz: 600, amplitude: fifth))]))
    }
    for index in 0..<50 { say(index, 500) }
    for index in 50..<100 { say(index, 4_500) }
    #expect(strength(Array(table.heard[0].suffix(4_000)), 600) < 100, "3.5 dB louder is not enough")
    for index in 100..<150 { say(index, 9_000) }
    #expect(strength(Array(table.heard[0].suffix(4_000)), 600) > 8_000)
    // 600 Hz at 9,000 steps by 4,200, three tones of 3,000 by 2,000 together
    #expect(largestStep(table.heard[0]) < 6_400, "\(largestStep(table.heard[0]))")
  }

  @Test func `ticks that move past each other cost a frame, and no click`() {
    for isLater in [true, false] {
      var mixer = GroupMixer()
      var heard: [Int16] = []
      guard let talker = mixer.join(), let listener = mixer.join() else { return #expect(Bool(false)) }
      var said = 0
      // in milliseconds: the talker's tick lies 2 ms before the listener's and wanders 4 ms later, or 24 ms and 30 before
      for millisecond in 0..<2_000 {
        let moved = millisecond > 1_000 ? 4 : 0
        let talkerPhase = isLater ? 2 + moved : 4 - moved
        let listenerPhase = isLater ? 4 : 2
        let now = Instant.zero + .milliseconds(millisecond)
        if (millisecond - talkerPhase + 20) % 20 == 0 {
          let frame = tone(said, hertz: 440, amplitude: 8_000)
          frame.withUnsafeBufferPointer { mixer.mix($0.baseAddress!, .narrowband, from: talker, at: now) }
          said += 1
        }
        if (millisecond - listenerPhase + 20) % 20 == 0 {
          var frame = quiet
          _ = frame.withUnsafeMutableBufferPointer {
            mixer.add(to: $0.baseAddress!, .narrowband, hasAudio: false, for: listener, at: now)
          }
          heard += frame
        }
      }
      // a tone of 440 Hz at 8,000 steps by 2,760
      #expect(largestStep(heard.dropFirst(640)) < 4_000, "\(isLater): \(largestStep(heard.dropFirst(640)))")
      #expect(level(heard.suffix(8_000)) > 5_500)
    }
  }

  @Test func `a held member is skipped, and heard from where it resumes`() {
    var table = Table(3)
    for index in 0..<20 { table.round([0: tone(index), 1: tone(index, hertz: 700)]) }
    // member 0 sends nothing for 5 s, and does not listen
    for index in 20..<270 {
      table.say(1, tone(index, hertz: 700))
      table.say(2, quiet)
      for member in 1..<3 { table.listen(member) }
      table.now = table.now + .milliseconds(20)
    }
    #expect(strength(Array(table.heard[2].suffix(8_000)), 440) < 10)
    for index in 270..<290 { table.round([0: tone(index), 1: tone(index, hertz: 700)]) }
    #expect(strength(Array(table.heard[2].suffix(1_600)), 440) > 7_500)
    // frames that waited meanwhile are old: member 0 hears the current one
    let (now, got) = (tone(289, hertz: 700), Array(table.heard[0].suffix(160)))
    #expect(got == now)
    // tones of 440 and 700 Hz at 8,000 step by 7,160 together
    #expect(largestStep(table.heard[2]) < 7_300)
  }

  @Test func `a wide talker is heard whole by a wide trunk and up to 4 kHz by a narrow one, at the same level`() {
    var table = Table([.wideband, .wideband, .narrowband])
    func wide(_ frame: Int, _ hertz: Double) -> [Int16] {
      (0..<320).map { Int16(8_000 * sine((Double(frame * 320 + $0) * hertz / 16_000).truncatingRemainder(dividingBy: 1))) }
    }
    for index in 0..<100 { table.round([0: zip(wide(index, 1_000), wide(index, 6_000)).map { $0 / 2 + $1 / 2 }]) }
    let (whole, low) = (Array(table.heard[1].suffix(16_000)), Array(table.heard[2].suffix(8_000)))
    #expect(strength(whole, 6_000, 16_000) > 3_900 && strength(whole, 1_000, 16_000) > 3_900)
    #expect(abs(strength(low, 1_000) - 4_000) < 200, "\(strength(low, 1_000))")
    #expect(level(low) < 3_000, "nothing of 6 kHz is folded in")
    // and in the other direction
    for index in 0..<100 { table.round([2: tone(index, hertz: 1_000)]) }
    let narrow = Array(table.heard[1].suffix(16_000))
    #expect(abs(strength(narrow, 1_000, 16_000) - 8_000) < 400, "\(strength(narrow, 1_000, 16_000))")
    #expect(strength(narrow, 7_000, 16_000) < 80)
  }

  @Test func `there is no sixth member, and a slot that was left is free again`() {
    var table = Table(5)
    let sixth = table.mixer.join()
    #expect(sixth == nil)
    table.round([0: tone(0)])
    table.mixer.leave(0)
    table.mixer.leave(7)
    let (again, isEmpty) = (table.mixer.join(), table.mixer.isEmpty)
    #expect(again == 0 && !isEmpty)
    for member in 0..<5 { table.mixer.leave(member) }
    let isOver = table.mixer.isEmpty
    #expect(isOver)
    // without members nothing happens
    table.say(0, tone(1))
    table.listen(1)
  }
}

/// The sine of a phase in cycles.
private func sine(_ turns: Double) -> Double { sin(2 * .pi * turns) }

/// The amplitude of one frequency.
private func strength(_ samples: [Int16], _ hertz: Double, _ rate: Double = 8_000) -> Double {
  var (real, imaginary) = (0.0, 0.0)
  for (index, sample) in samples.enumerated() {
    let turns = (Double(index) * hertz / rate).truncatingRemainder(dividingBy: 1)
    real += Double(sample) * sine(turns)
    imaginary += Double(sample) * sine((turns + 0.25).truncatingRemainder(dividingBy: 1))
  }
  return 2 * (real * real + imaginary * imaginary).squareRoot() / Double(max(1, samples.count))
}
