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

  /// What a listener hears of a talker whose tick comes `lead` milliseconds before the listener's; both every 20 ms.
  private func heard(_ rounds: Int, frame: (Int) -> [Int16], lead: (Int) -> Int) -> [Int16] {
    var mixer = GroupMixer()
    guard let talker = mixer.join(), let listener = mixer.join() else { return [] }
    var heard: [Int16] = []
    // −1: the listener's tick, which comes first where both are due
    var events: [(at: Int, said: Int)] = []
    for round in 0..<rounds {
      let due: Int = 20 * round + 100
      events.append((due, -1))
      events.append((due - lead(round), round))
    }
    events.sort { $0.at == $1.at ? $0.said < $1.said : $0.at < $1.at }
    for event in events {
      let now = Instant.zero + .milliseconds(event.at)
      if event.said >= 0 {
        frame(event.said).withUnsafeBufferPointer { mixer.mix($0.baseAddress!, .narrowband, from: talker, at: now) }
      } else {
        var room = quiet
        _ = room.withUnsafeMutableBufferPointer {
          mixer.add(to: $0.baseAddress!, .narrowband, hasAudio: false, for: listener, at: now)
        }
        heard += room
      }
    }
    return heard
  }

  @Test(arguments: [1, -1]) func `clocks that drift cost a frame for every 20 ms, and no click`(sign: Int) {
    // 1 ms in four rounds
    let heard = heard(400, frame: { tone($0) }, lead: { (round: Int) -> Int in 10 + sign * (round / 4) })
    // a tone of 440 Hz at 8,000 steps by 2,760
    #expect(largestStep(heard.dropFirst(640)) < 4_000, "\(largestStep(heard.dropFirst(640)))")
    #expect(level(heard.suffix(8_000)) > 5_500)
  }

  @Test func `a tick that wanders by 16 ms within words costs one frame, and then none`() {
    // 8 ms before the listener's to 8 ms after it and back, by 1 ms in four rounds
    let heard = heard(1_000, frame: { tone($0) }, lead: { (round: Int) -> Int in abs(round / 4 % 32 - 16) - 8 })
    #expect(heard.count == 160_000)
    func plays(_ index: Int, _ said: Int) -> Bool {
      let start: Int = index * 160
      return Array(heard[start..<start + 160]) == tone(said)
    }
    // the first frame of all fades in, as does the one after the gap
    let gap = (1..<1_000).first { !plays($0, $0) } ?? 1_000
    #expect(gap < 100)
    let other = (gap + 2..<1_000).filter { !plays($0, $0 - 1) }
    #expect(other.isEmpty)
  }

  @Test func `what a tick that came late has cost is made up for in the next pause`() {
    // 440 Hz, a pause of 0.4 s, 440 Hz; the talker's tick comes 5 ms late once, and 12 ms earlier from then on
    func lead(_ round: Int) -> Int {
      if round == 50 { return -5 }
      return round < 50 ? 2 : 12
    }
    let heard = heard(200, frame: { (100..<120).contains($0) ? quiet : tone($0) }, lead: lead)
    let (before, after) = (Array(heard[9_600..<9_760]), Array(heard[24_000..<24_160]))
    #expect(before == tone(59))
    #expect(after == tone(150))
    #expect(largestStep(heard) < 4_000)
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
