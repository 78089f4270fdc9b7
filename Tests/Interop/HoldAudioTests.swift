import Foundation
import Testing

extension Interop {
  /// What a held trunk hears through a real gateway, with `hold: signal`.
  @Suite(
    .tags(.audio), .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct HoldAudioTests {
    @Test func `the app holds: the trunk hears the file, and the app's voice again after it`() async throws {
      let folder = try NameServer.folder()
      defer { try? FileManager.default.removeItem(atPath: folder) }
      // 1,000 Hz, a whole number of samples a turn
      try Speech.write(
        (0..<8_000).map { k in [0, 5_656, 8_000, 5_656, 0, -5_656, -8_000, -5_656][k % 8] }, folder + "/music.wav")
      let gateway = try await GatewayUnderTest(trunk: "hold: signal, hold_audio: \(folder)/music.wav")
      let trunk = try await Peers.trunk(gateway, ["--calls", "1", "--record", "trunk-heard.wav"])
      let phone = try await Peers.phone(gateway, ["--call", "+15557654321", "--calls", "1"])
      _ = try await phone.event("call.connected")
      try await Task.sleep(for: .milliseconds(600))
      phone.type("hold")
      try await Task.sleep(for: .milliseconds(1_500))
      phone.type("resume")
      try await Task.sleep(for: .milliseconds(600))
      phone.type("end")
      _ = try await phone.event("call.ended")
      _ = try await trunk.finish(within: 10)
      phone.signal(SIGTERM)
      let heard = try Speech.read(gateway.folder + "/trunk-heard.wav")
      // frames of 20 ms whose period is 8 samples, as only the file's is
      let frames = stride(from: 0, to: heard.count - 160, by: 160).map { Array(heard[$0..<$0 + 160]) }
      let tones = frames.count { frame in
        let differs = zip(frame, frame.dropFirst(8)).map { abs(Int($0) - Int($1)) }.max() ?? 0
        return differs < 700 && (frame.map { abs(Int($0)) }.max() ?? 0) > 6_000
      }
      #expect((50...85).contains(tones), "\(tones) frames of the file in 1.5 s, \(frames.count) in all")
      #expect(gateway.records.count <= 1)
      try await gateway.finish()
    }
  }
}
