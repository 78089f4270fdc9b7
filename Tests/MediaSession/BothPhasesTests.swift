import Foundation
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineJitterBuffer
import TrunklineRTP

@testable import TrunklineMediaSession

/// Each direction's tick follows its own packets, wherever in the 20 ms those of trunk and app come.
@Suite struct BothPhasesTests {
  /// How packets wander about their time, by up to 3 ms.
  enum Wander: CaseIterable { case none, chance, slow }

  /// One side of a call: when its packets come.
  struct Side {
    var phase: Int
    /// Of a millisecond, beyond the phase.
    var fraction = 0.4
    var packetMilliseconds = 20
    /// So many packets come together.
    var together = 1
    var partsPerMillion = 0

    func times(_ wander: Wander, turn: Int, seconds: Int, _ random: inout SplitMix64) -> [Double] {
      (0..<seconds * 1_000 / packetMilliseconds).map { number in
        let sent = Double((number / together + 1) * together * packetMilliseconds) * (1 + Double(partsPerMillion) / 1e6)
        let extra: Double =
          switch wander {
          case .none: 0
          case .chance: Double(random.next() % 3_000) / 1_000
          // A triangle of 12 s.
          case .slow: Double(abs((Int(sent) / 20 + turn) % 600 - 300)) / 100
          }
        return sent + Double(phase) + fraction + extra
      }
    }
  }

  /// A call of G.711 in two laws, on a thread of 1 ms steps; what both receivers counted.
  static func call(
    _ trunk: Side, _ app: Side, _ wander: Wander, seconds: Int, seed: UInt64? = nil
  ) throws -> [PlayoutStatistics] {
    var bench = try Bench(app: .pcmu, trunk: .pcma)
    bench.connect()
    var random = SplitMix64(seed: seed ?? UInt64(trunk.phase * 20 + app.phase + 1))
    let start = bench.now
    let fromTrunk = [UInt8](repeating: 0x35, count: trunk.packetMilliseconds * 8)
    let fromApp = [UInt8](repeating: 0x35, count: app.packetMilliseconds * 8)
    let trunkTimes = trunk.times(wander, turn: 0, seconds: seconds, &random)
    let appTimes = app.times(wander, turn: 170, seconds: seconds, &random)
    var (nextTrunk, nextApp) = (0, 0)
    var phases: [AudioDirection: Int] = [.trunkToApp: 0, .appToTrunk: 0]
    var dues = phases
    while let (direction, due) = dues.min(by: { ($0.value, $0.key.rawValue) < ($1.value, $1.key.rawValue) }),
      due < seconds * 1_000 - 100
    {
      while nextTrunk < trunkTimes.count, trunkTimes[nextTrunk] <= Double(due) {
        bench.now = start + .nanoseconds(Int64(trunkTimes[nextTrunk] * 1e6))
        bench.trunkSends(fromTrunk, payloadType: 8)
        bench.trunkTimestamp &+= UInt32(fromTrunk.count)
        nextTrunk += 1
      }
      while nextApp < appTimes.count, appTimes[nextApp] <= Double(due) {
        bench.now = start + .nanoseconds(Int64(appTimes[nextApp] * 1e6))
        try bench.appSends(fromApp, payloadType: 0)
        bench.appTimestamp &+= UInt32(fromApp.count)
        nextApp += 1
      }
      bench.now = start + .milliseconds(due)
      bench.session.tick(direction, at: bench.now, into: &bench.output)
      bench.collect()
      let phase = phases[direction] ?? 0
      let wanted = bench.session.preferredPhase(direction, current: phase) ?? phase
      phases[direction] = wanted
      dues[direction] = due + 20 + (wanted - phase + 30) % 20 - 10
    }
    return [bench.session.downlink.receiver.statistics, bench.session.uplink.receiver.statistics]
  }

  private func check(_ trunk: Side, _ app: Side, _ wander: Wander, seconds: Int, stretches: Bool = false) throws {
    for (name, counts) in zip(["trunk", "app"], try Self.call(trunk, app, wander, seconds: seconds)) {
      let what = "\(name) of \(trunk), \(app), \(wander)"
      #expect(counts.concealedSamples == 0, "made up, \(what)")
      #expect(
        stretches || counts.removedSamplesForAcceleration + counts.insertedSamplesForDeceleration == 0, "stretched, \(what)")
      #expect(counts.playedSamples > UInt64(seconds * 8_000 - 1_600), "\(what)")
    }
  }

  @Test(arguments: 0..<20)
  func `at no pair of phases is anything made up or stretched`(_ trunkPhase: Int) throws {
    for appPhase in 0..<20 {
      let (trunk, app) = (Side(phase: trunkPhase), Side(phase: appPhase))
      try check(trunk, app, .chance, seconds: 2)
      if (trunkPhase + appPhase) % 4 == 0 { try check(trunk, app, .none, seconds: 2) }
      if (trunkPhase + 3 * appPhase) % 8 == 0 { try check(trunk, app, .slow, seconds: 8) }
    }
  }

  /// Calls of 20 s at phases of chance, clocks up to 20 ppm apart. `TRUNKLINE_CALLS=10000` for as many (docs/design/play-out.md).
  @Test func `in none of many calls is anything made up or stretched`() throws {
    let count = ProcessInfo.processInfo.environment["TRUNKLINE_CALLS"].flatMap { Int($0) } ?? 12
    var random = SplitMix64(seed: 14)
    func side() -> Side {
      Side(
        phase: Int(random.next() % 20), fraction: Double(random.next() % 1_000) / 1_000,
        partsPerMillion: Int(random.next() % 21) - 10)
    }
    var (madeUp, stretched): ([String], [String]) = ([], [])
    for call in 0..<count {
      let (trunk, app, wander) = (side(), side(), Wander.allCases[Int(random.next() % 3)])
      let counts = try Self.call(trunk, app, wander, seconds: 20, seed: random.next())
      let what = "call \(call): \(trunk), \(app), \(wander)"
      if counts.contains(where: { $0.concealedSamples > 0 }) { madeUp.append(what) }
      if counts.contains(where: { $0.removedSamplesForAcceleration + $0.insertedSamplesForDeceleration > 0 }) {
        stretched.append(what)
      }
    }
    if count > 100 { print("\(count) calls: something made up in \(madeUp.count), stretched in \(stretched.count)") }
    #expect(madeUp.isEmpty, "\(madeUp.prefix(5))")
    #expect(stretched.isEmpty, "\(stretched.prefix(5))")
  }

  @Test(arguments: [10, 30, 40, 60])
  func `packets of another length are served beside the other side's`(_ milliseconds: Int) throws {
    for (trunkPhase, appPhase) in [(0, 0), (0, 7), (5, 19), (13, 2), (19, 18)] {
      let long = Side(phase: trunkPhase, packetMilliseconds: milliseconds)
      // What the start of 10 and 30 ms packets waits too long goes in pauses.
      let stretches = milliseconds % 20 != 0
      try check(long, Side(phase: appPhase), .chance, seconds: 4, stretches: stretches)
      try check(Side(phase: appPhase), long, .chance, seconds: 4, stretches: stretches)
    }
  }

  /// Android's capture of 40 ms.
  @Test func `packets that come in pairs are served`() throws {
    for (trunkPhase, appPhase) in [(0, 0), (0, 7), (5, 19), (13, 2), (19, 18)] {
      try check(Side(phase: trunkPhase), Side(phase: appPhase, together: 2), .chance, seconds: 4)
    }
  }

  /// Two clocks that drift past each other: each 67 s a tick's worth is put in or taken out, and nothing else.
  @Test(arguments: [-300, 300]) func `a clock that is 300 ppm off makes nothing up`(_ partsPerMillion: Int) throws {
    for phase in [0, 9] {
      let app = Side(phase: phase, partsPerMillion: partsPerMillion)
      try check(Side(phase: 0), app, .chance, seconds: 30, stretches: true)
    }
  }

  /// An Android phone whose clock is off and whose packets come in pairs, beside trunks of other packet lengths; the same with 10 ms packets.
  @Test(arguments: [-300, 300]) func `pairs and short packets of a clock that is off are served beside any trunk`(
    _ partsPerMillion: Int
  ) throws {
    for (phase, milliseconds) in [(3, 10), (11, 20), (17, 30)] {
      let trunk = Side(phase: phase, packetMilliseconds: milliseconds)
      try check(trunk, Side(phase: 6, together: 2, partsPerMillion: partsPerMillion), .chance, seconds: 30, stretches: true)
      try check(
        trunk, Side(phase: 6, packetMilliseconds: 10, partsPerMillion: partsPerMillion), .chance, seconds: 30, stretches: true)
    }
  }
}
