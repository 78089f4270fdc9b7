import Foundation
import Testing

extension Interop {
  /// The small run of `Bench/ears`: what headless Chromium hears of a carrier's speech, what the carrier hears of its, and what both
  /// and a capture between them counted. The large one is `make bench-ears`.
  @Suite(
    .tags(.audio),
    .enabled(
      if: SoakTests.binary != nil && (Surroundings.isRequired || (Surroundings.missing == nil && Surroundings.chromium != nil)),
      "TRUNKLINE_BINARY names no gateway, or there is no chromium or .venv: Scripts/test has them"), .serialized)
  struct EarsTests {
    @Test func `a clean call in Chromium has nothing made up, its buffer stays at its least, and nobody spends bits on copies`()
      async throws
    {
      try await expectGoodAudio {
        try await heard("clean").flatMap { call in
          faults(
            call, ["copies without loss": call.copies == 0],
            inTime: [
              "made up of the trunk's speech": call.record.fromTrunk.concealedMs == 0,
              "made up of the app's speech": call.record.fromApp.concealedMs == 0,
              "concealed in Chromium": call.concealedPct == 0, "NetEQ's target": call.targetMs <= 25,
              "PESQ trunk to app": call.pesqDown.allSatisfy { $0 >= 3.9 },
              // The demo's speech has digital silence in it, after which Chromium's encoder begins weakly.
              "PESQ app to trunk": call.pesqUp.allSatisfy { $0 >= 3.5 },
            ])
        }
      }
    }

    @Test func `where 3 % of the packets are lost on the app's network, Chromium gets copies and repairs with them`() async throws
    {
      try await expectGoodAudio {
        try await heard("app-3").flatMap { call in
          faults(
            call, ["copies at 3 % loss": call.copies > 100],
            inTime: ["PESQ trunk to app": call.pesqDown.allSatisfy { $0 >= 3.4 }])
        }
      }
    }

    /// A call, as ears.py measured it. Down is from the trunk to the app.
    private struct Heard: Decodable {
      struct Stream: Decodable { var concealedMs: Int }
      struct Record: Decodable { var fromTrunk, fromApp: Stream }
      var direction: String
      var pesqDown, pesqUp: [Double]
      var concealedPct, targetMs, copies, latestEverUpMs: Double
      var record: Record
    }

    /// An incoming and an outgoing call side by side.
    private func heard(_ row: String) async throws -> [Heard] {
      let folder = NSTemporaryDirectory() + "ears-test-\(UUID().uuidString)"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      try Speech.write(Speech.telephone, folder + "/telephone.wav")
      try Speech.write(Speech.app, folder + "/app.wav")
      let python = try #require(Surroundings.python)
      let ears = try Spawned(
        "ears", python,
        [
          Surroundings.package + "/Bench/ears/ears.py", "--binary", try #require(SoakTests.binary), "--rows", row, "--clients",
          "chromium",
          "--bridges", "trunkline", "--calls", "2", "--side-by-side", "2", "--passages", "1", "--voices",
          folder + "/telephone.wav",
          folder + "/app.wav", "--results", folder + "/calls.jsonl",
        ], in: folder)
      try #require(try await ears.finish(within: 150) == 0, "\(ears.text)")
      let lines = try String(contentsOfFile: folder + "/calls.jsonl", encoding: .utf8).split(separator: "\n")
      let calls = try lines.map { try JSONDecoder().decode(Heard.self, from: Data($0.utf8)) }
      #expect(Set(calls.map(\.direction)) == ["in", "out"], "\(ears.text)")
      return calls
    }

    /// Chromium is a program of this machine like others: what it sent late it heard late as well. A call in which it did not keep time is judged
    /// by counts alone; `make bench-ears` has the figures.
    private func faults(_ call: Heard, _ checks: [String: Bool], inTime timed: [String: Bool]) -> [String] {
      let isInTime = call.latestEverUpMs <= 5
      if !isInTime {
        print("ears: what was heard is not judged: Chromium sent \(call.latestEverUpMs) ms late, \(call.direction)")
      }
      return checks.merging(isInTime ? timed : [:]) { $1 }.filter { !$0.value }.map { "\($0.key): \(call)" }
    }
  }
}
