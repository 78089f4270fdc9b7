import Foundation
import SpeechScore
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineRTP

@testable import TrunklineMediaSession

/// Calls of one group with both far ends each, on the ticks of one thread; the ticks of each lie elsewhere in the 20 ms.
private struct Group: ~Copyable {
  static let id = MediaGroupID(raw: 1)
  let mixer: UnsafeMutablePointer<GroupMixer>
  var calls: [UnsafeMutablePointer<Bench>] = []
  var members: [Int?] = []

  init(_ trunks: [AudioEncoding], apps: [AudioEncoding]? = nil, adjust: (inout TrunkLegParameters) -> Void = { _ in }) throws {
    mixer = .allocate(capacity: 1)
    mixer.initialize(to: GroupMixer())
    for (index, encoding) in trunks.enumerated() {
      let app = apps?[index] ?? .opus
      let call = UnsafeMutablePointer<Bench>.allocate(capacity: 1)
      call.initialize(to: try Bench(app: app, trunk: encoding, band: min(app.band, encoding.band), adjust: adjust))
      calls.append(call)
      members.append(nil)
      call.pointee.connect()
    }
  }
  deinit {
    for call in calls {
      call.deinitialize(count: 1)
      call.deallocate()
    }
    mixer.deinitialize(count: 1)
    mixer.deallocate()
  }

  mutating func join(_ index: Int) {
    calls[index].pointee.command(.group(Bench.id, Self.id))
    members[index] = mixer.pointee.join()
  }
  mutating func leave(_ index: Int) {
    calls[index].pointee.command(.group(Bench.id, nil))
    if let member = members[index] { mixer.pointee.leave(member) }
    members[index] = nil
  }
  mutating func joinAll() { for index in calls.indices { join(index) } }

  mutating func run(
    frames: Int, trunk: (_ call: Int, _ frame: Int) -> [Int16]?, app: (_ call: Int, _ frame: Int) -> [Int16]? = { _, _ in nil }
  ) throws {
    for frame in 0..<frames {
      for (index, call) in calls.enumerated() {
        if let samples = trunk(index, frame) { call.pointee.trunkSays(samples) }
        if let samples = app(index, frame) { try call.pointee.appSays(samples) }
      }
      // ticks of the calls one after the other, as in slots of a thread's wheel
      for (index, call) in calls.enumerated() { tick(index, call, index % 2 == 0 ? .trunkToApp : .appToTrunk) }
      for (index, call) in calls.enumerated() { tick(index, call, index % 2 == 0 ? .appToTrunk : .trunkToApp) }
      for call in calls {
        call.pointee.collect()
        call.pointee.now = call.pointee.now + .milliseconds(20)
      }
    }
  }

  private func tick(_ index: Int, _ call: UnsafeMutablePointer<Bench>, _ direction: AudioDirection) {
    guard !call.pointee.session.skipsTick(direction) else { return }
    let now = call.pointee.now
    if let member = members[index] {
      call.pointee.session.tick(direction, in: mixer, as: member, at: now, into: &call.pointee.output)
    } else {
      call.pointee.session.tick(direction, at: now, into: &call.pointee.output)
    }
  }
}

@Suite struct GroupedCallTests {
  @Test func `each trunk hears its app and the other trunks, each app its own trunk only`() throws {
    var group = try Group([.pcmu, .pcma, .pcmu])
    group.joinAll()
    try group.run(frames: 300) { call, frame in
      tone(frame, hertz: [400, 600, 900][call], amplitude: 4_000)
    } app: { _, frame in
      tone(frame, hertz: 1_400, amplitude: 4_000)
    }
    for (index, call) in group.calls.enumerated() {
      let (trunk, app) = (Array(call.pointee.heardByTrunk.suffix(8_000)), Array(call.pointee.heardByApp.suffix(8_000)))
      for (other, hertz) in [400.0, 600, 900].enumerated() {
        #expect(
          other == index ? amplitude(trunk, hertz) < 200 : amplitude(trunk, hertz) > 3_000,
          "trunk \(index), \(hertz): \(amplitude(trunk, hertz))")
        #expect(
          other == index ? amplitude(app, hertz) > 2_800 : amplitude(app, hertz) < 200,
          "app \(index), \(hertz): \(amplitude(app, hertz))")
      }
      #expect(amplitude(trunk, 1_400) > 2_500 && amplitude(app, 1_400) < 200)
      #expect(call.pointee.toTrunk.isContinuous)
    }
  }

  @Test func `speech of one trunk comes to another as it does to an app, at its level`() throws {
    var group = try Group([.pcmu, .pcmu])
    group.joinAll()
    try group.run(frames: speech.count) { call, frame in call == 0 ? speech[frame] : quiet }
    let heard = group.calls[1].pointee.heardByTrunk
    let comparison = try #require(SpeechComparison(played: Array(speech.joined()), heard: heard))
    #expect(comparison.heardSpeech && comparison.similarity > 0.99, "\(comparison)")
    #expect(abs(comparison.levelDifferenceDecibels) < 0.1 && comparison.longestGapMilliseconds <= 20, "\(comparison)")
    // a jitter buffer of an empty network, and at most a tick of the group
    #expect(comparison.delayMilliseconds < 45, "\(comparison)")
  }

  @Test func `a loss of one trunk is made up before the others hear it`() throws {
    var group = try Group([.pcmu, .pcmu])
    group.joinAll()
    try group.run(frames: 400) { call, frame in call == 0 && frame % 10 != 9 ? tone(frame, hertz: 400) : call == 0 ? nil : quiet }
    let heard = Array(group.calls[1].pointee.heardByTrunk.suffix(40_000))
    #expect(level(heard) > 0.9 * 8_000 / 2.0.squareRoot(), "\(level(heard))")
    #expect((0..<240).allSatisfy { level(heard[$0 * 160..<$0 * 160 + 160]) > 2_000 }, "no frame is empty")
  }

  @Test func `who is held hears hold audio, and neither hears nor is heard; so with a trunk that holds us`() throws {
    var group = try Group([.pcmu, .pcmu, .pcmu])
    group.joinAll()
    func talk(_ frames: Int) throws {
      try group.run(frames: frames) { call, frame in tone(frame, hertz: [400, 600, 900][call], amplitude: 4_000) }
    }
    try talk(50)
    group.calls[0].pointee.command(.hold(Bench.id, true))
    try talk(100)
    let (held, second) = (group.calls[0].pointee.heardByTrunk.suffix(8_000), group.calls[1].pointee.heardByTrunk.suffix(8_000))
    #expect(level(held) < 10, "silence is what this trunk has for held calls")
    #expect(amplitude(Array(second), 400) < 100 && amplitude(Array(second), 900) > 3_000)
    group.calls[0].pointee.command(.hold(Bench.id, false))
    var parameters = group.calls[2].pointee.trunk
    parameters.sends = false
    group.calls[2].pointee.command(.setTrunk(Bench.id, parameters))
    let before = group.calls[2].pointee.toTrunk.count
    try talk(100)
    let again = Array(group.calls[1].pointee.heardByTrunk.suffix(8_000))
    #expect(amplitude(again, 400) > 3_000 && amplitude(again, 900) < 100)
    #expect(group.calls[2].pointee.toTrunk.count == before)
  }

  @Test func `a muted app is silent to its trunk, which hears the others on`() throws {
    var group = try Group([.pcmu, .pcmu])
    group.joinAll()
    group.calls[0].pointee.command(.mute(Bench.id, true))
    try group.run(frames: 150) { _, frame in
      tone(frame, hertz: 400)
    } app: { _, frame in
      tone(frame, hertz: 1_400)
    }
    let heard = Array(group.calls[0].pointee.heardByTrunk.suffix(8_000))
    #expect(amplitude(heard, 400) > 6_000 && amplitude(heard, 1_400) < 50)
  }

  @Test func `a relayed call is coded in a group, and relayed again after it at the next pause`() throws {
    var group = try Group([.pcmu, .pcmu], apps: [.pcmu, .pcmu])
    try group.run(frames: 20, trunk: { _, frame in tone(frame) }, app: { _, frame in tone(frame) })
    let call = group.calls[0]
    #expect(call.pointee.session.uplink.relay.isOn && call.pointee.session.downlink.relay.isOn)
    group.joinAll()
    #expect(!call.pointee.session.uplink.relay.isOn && !call.pointee.session.downlink.relay.isOn)
    try group.run(
      frames: 50, trunk: { call, frame in tone(frame, hertz: call == 0 ? 400 : 700) }, app: { _, frame in tone(frame) })
    #expect(amplitude(Array(call.pointee.heardByTrunk.suffix(3_200)), 700) > 6_000)
    group.leave(0)
    group.leave(1)
    try group.run(frames: 20, trunk: { _, _ in quiet }, app: { _, _ in quiet })
    #expect(call.pointee.session.uplink.relay.isOn && call.pointee.session.downlink.relay.isOn)
    #expect(call.pointee.toTrunk.isContinuous)
    let before = call.pointee.toTrunk.count
    try call.pointee.appSays(tone(0))
    #expect(call.pointee.toTrunk.count == before + 1, "relayed: no tick was needed")
  }

  @Test func `a wide trunk hears another one above 4 kHz, beside a narrow one`() throws {
    var group = try Group([.g722, .g722, .pcma])
    group.joinAll()
    func wide(_ frame: Int, _ hertz: Double) -> [Int16] {
      (0..<320).map { Int16(4_000 * sine(Double(frame * 320 + $0) * hertz / 16_000)) }
    }
    try group.run(frames: 200) { call, frame in call == 0 ? wide(frame, 5_000) : call == 1 ? wide(frame, 1_000) : quiet }
    #expect(amplitude(Array(group.calls[1].pointee.heardByTrunk.suffix(16_000)), 5_000, 16_000) > 3_000)
    #expect(amplitude(Array(group.calls[2].pointee.heardByTrunk.suffix(8_000)), 1_000) > 3_000)
  }

  @Test func `digits are heard by their own trunk only`() throws {
    var group = try Group([.pcmu, .pcmu])
    group.joinAll()
    try group.run(frames: 20) { _, frame in tone(frame, amplitude: 1_000) }
    let before = group.calls[1].pointee.toTrunk.count
    group.calls[0].pointee.command(.sendDigits(Bench.id, DigitRequest(digits: "5")))
    try group.run(frames: 20) { _, frame in tone(frame, amplitude: 1_000) }
    #expect(group.calls[0].pointee.toTrunk.contains { $0.header.payloadType == 101 })
    #expect(group.calls[1].pointee.toTrunk[before...].allSatisfy { $0.header.payloadType == 0 })
  }
}

private func sine(_ turns: Double) -> Double { Foundation.sin(2 * .pi * turns.truncatingRemainder(dividingBy: 1)) }

/// The amplitude of one frequency.
private func amplitude(_ samples: [Int16], _ hertz: Double, _ rate: Double = 8_000) -> Double {
  var (real, imaginary) = (0.0, 0.0)
  for (index, sample) in samples.enumerated() {
    let turns = Double(index) * hertz / rate
    real += Double(sample) * sine(turns)
    imaginary += Double(sample) * sine(turns + 0.25)
  }
  return 2 * (real * real + imaginary * imaginary).squareRoot() / Double(max(1, samples.count))
}
