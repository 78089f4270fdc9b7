import Foundation
import SpeechScore
import Testing

extension Interop {
  /// An app 100 ms of round trip away, on socket and media; both sides speak from the first millisecond after the answer.
  @Suite(
    .tags(.audio), .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct FirstWordsTests {
    @Test func `first words of an incoming call arrive both ways at 100 ms round trip`() async throws {
      try await expectGoodAudio { try await incoming() }
    }

    @Test func `first words of an outgoing call arrive both ways at 100 ms round trip`() async throws {
      try await expectGoodAudio { try await outgoing() }
    }

    private func incoming() async throws -> [String] {
      let far = try await FarApp(["--answer", "--answer-after", "0.5", "--calls", "1"])
      let trunk = try await Peers.trunk(far.gateway, ["--call", "+15551230001", "--talk", "\(far.talk)"] + far.trunkSpeech)
      #expect(try await trunk.finish(within: 30) == 0, "\(trunk.text)\n\(far.phone.text)")
      return try await far.faults(trunk)
    }

    private func outgoing() async throws -> [String] {
      let far = try await FarApp(["--calls", "1"], trunk: ["--calls", "1", "--answer-after", "0.4"])
      let trunk = try #require(far.trunk)
      #expect(try await trunk.finish(within: 30) == 0, "\(trunk.text)\n\(far.phone.text)")
      return try await far.faults(trunk)
    }
  }
}

/// A gateway, the path with delay, and our phone behind it.
private struct FarApp {
  static let roundTripMilliseconds = 100.0
  let gateway: GatewayUnderTest
  let path: Spawned
  let phone: Spawned
  let trunk: Spawned?
  let toApp = Array(Speech.fromFirstWord(Speech.telephone).prefix(36_000))
  let toTrunk = Array(Speech.fromFirstWord(Speech.app).prefix(36_000))
  let trunkSpeech = ["--play", "telephone.wav", "--record", "trunk-heard.wav"]
  /// Seconds until both have said everything.
  var talk: Double { Double(max(toApp.count, toTrunk.count)) / 8_000 + 0.6 }

  /// With `trunk` that carrier waits for a call and the phone calls it.
  init(_ arguments: [String], trunk waiting: [String]? = nil) async throws {
    gateway = try await GatewayUnderTest()
    try Speech.write(toApp, gateway.folder + "/telephone.wav")
    try Speech.write(toTrunk, gateway.folder + "/app.wav")
    let port = try FreePorts.tcp()
    path = try Peers.python(
      "delayed-path", "delayed_path.py",
      [
        "--listen", "\(port)", "--app", "\(gateway.app)", "--media", "\(gateway.trunkPorts + 58)",
        "--rtt", "\(Self.roundTripMilliseconds)",
      ], gateway)
    _ = try await path.event("listening", within: 15)
    let talk = Double(max(toApp.count, toTrunk.count)) / 8_000 + 0.6
    if let waiting { trunk = try await Peers.trunk(gateway, waiting + trunkSpeech) } else { trunk = nil }
    phone = try await Peers.ownPhone(
      gateway, through: port,
      arguments + ["--play", "app.wav", "--record", "app-heard.wav"]
        + (waiting == nil ? [] : ["--call", "+15559990001", "--talk", "\(talk)"]))
  }

  func faults(_ trunk: Spawned) async throws -> [String] {
    #expect(try await phone.finish(within: 10) == 0, "\(phone.text)")
    path.signal(SIGKILL)
    try await path.finish(within: 5)
    let faults =
      try faults("telephone → app", toApp, from: trunk, heardBy: phone, "app-heard.wav")
      + faults("app → telephone", toTrunk, from: phone, heardBy: trunk, "trunk-heard.wav")
    try await gateway.finish()
    return faults
  }

  private func faults(
    _ what: String, _ said: [Int16], from speaker: Spawned, heardBy listener: Spawned, _ file: String
  ) throws -> [String] {
    let recording = try Speech.read(gateway.folder + "/" + file)
    let comparison = try #require(SpeechComparison(played: said, heard: recording), "\(what)")
    // The listener catches up by 70 ms within the first words, more than one alignment of the whole bears: their beginning is looked at by itself.
    let words = 4_800
    let end = min(recording.count, max(0, Int(comparison.delayMilliseconds * 8)) + 2_400 + words)
    let start = try #require(SpeechComparison(played: Array(said.prefix(words)), heard: Array(recording[..<end])), "\(what)")
    let clipped = min(comparison.clippedStartMilliseconds, start.clippedStartMilliseconds)
    let spoken = try #require(speaker.fields("spokenAt", of: "ended").first.flatMap(Double.init))
    let heard = try #require(listener.fields("heardAt", of: "ended").first.flatMap(Double.init))
    // Both clocks are this machine's. The median over the whole speech: catching up with the first words is over by then.
    let added = heard + comparison.delayMilliseconds - spoken - Self.roundTripMilliseconds / 2
    print("\(what): \(Int(added)) ms beyond the path's, clipped \(clipped) ms")
    let isGood = comparison.heardSpeech && clipped <= 20 && added < 150
    return isGood ? [] : ["\(what): \(added) ms beyond the path's, \(comparison)"]
  }
}

extension Speech {
  /// Without the silence before the first word.
  static func fromFirstWord(_ samples: [Int16]) -> [Int16] {
    Array(samples[(samples.firstIndex { abs(Int($0)) > 1_000 } ?? 0)...])
  }
}
