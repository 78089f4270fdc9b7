import BenchKit
import CBenchNet
import Synchronization
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklinePlatform

/// 400 handshakes a second beside running calls, media thread and DTLS thread on one core: how late are the calls' ticks, and are
/// the handshakes done?
struct HandshakeRows {
  static let perSecond = 400
  let bench: Bench
  let cores: Cores
  init(_ bench: Bench, _ cores: Cores) { (self.bench, self.cores) = (bench, cores) }

  func run() throws {
    let names = [
      "handshakes: tick lateness p99 of running calls", "handshakes: completed per second", "handshakes: calls' lateness p99",
    ]
    guard names.contains(where: bench.wants) else { return }
    let seconds = bench.isSmall ? 0.5 : 6.0
    let settle = bench.isSmall ? 0.2 : 1.0
    let test = try PlaneUnderTest(cores)
    let pairs = try (0..<(bench.isSmall ? 10 : 50)).map { try CallPair($0) }
    try test.connect(pairs, app: .opus)
    bench.progress("handshakes: \(Self.perSecond) a second beside \(pairs.count) transcoded calls")
    let quiet = try measure(test, pairs, seconds: bench.isSmall ? 0.3 : 3, settle)
    let storm = try Storm(test, perSecond: Self.perSecond)
    let done = test.count("trunkline_dtls_handshakes_total", "completed")
    let stormy = try measure(test, pairs, seconds: seconds, settle)
    storm.end()
    let completed = Double(test.count("trunkline_dtls_handshakes_total", "completed") - done) / (seconds + settle)
    let note = "\(fixed(quiet.tick, 0)) µs without handshakes; " + stormy.note
    bench.add(BenchRow(names[0], unit: "µs", ours: BenchFigure("ours", stormy.tick), goal: .atMost(1_000), note: note))
    bench.add(
      BenchRow(
        names[1], unit: "1/s", ours: BenchFigure("ours", completed), goal: .atLeast(Double(Self.perSecond) * 0.95),
        note: "\(storm.begun) begun, \(storm.failed) given up by the client, "
          + "dtls-0 used \(fixed(stormy.dtls * 100, 0)) % of the core"))
    bench.add(
      BenchRow(
        names[2], unit: "µs", ours: BenchFigure("ours", stormy.lateness),
        note: "\(fixed(quiet.lateness, 0)) µs without handshakes"))
    test.endCalls()
  }

  private struct Outcome {
    var tick = 0.0, lateness = 0.0, dtls = 0.0
    var note = ""
  }

  private func measure(_ test: PlaneUnderTest, _ pairs: [CallPair], seconds: Double, _ settle: Double) throws -> Outcome {
    for pair in pairs { (pair.toApp, pair.toTrunk) = (.init(), .init()) }
    let generator = CallGenerator(calls: pairs, material: try Material.spoken(Material.talk()))
    var (ticks, used) = (test.tickLateness, 0.0)
    var out = Outcome()
    let figures = try generator.run(
      seconds: seconds, settle: settle,
      atStart: { (ticks, used) = (test.tickLateness, test.cpuSeconds(of: "dtls-0")) },
      atEnd: {
        if let ticks, let now = test.tickLateness { out.tick = now.quantileMicroseconds(0.99, since: ticks) }
        out.dtls = (test.cpuSeconds(of: "dtls-0") - used) / seconds
      })
    out.lateness = quantile(figures.transits, 0.99)
    out.note = Measured(figures: figures, callsPerCore: 0).note
    return out
  }
}

/// Apps that come and go, on a thread of their own beside the generator: each makes one handshake and its call is closed.
///
/// Unchecked: `begun` and `failed` are read after `end`, everything else belongs to the thread.
final class Storm: @unchecked Sendable {
  private(set) var begun = 0, failed = 0
  private let test: PlaneUnderTest
  private let perSecond: Int
  private let start = MonotonicClock.now()
  private let isOver = Atomic<Bool>(false)
  private var running: [(dialling: Dialling, since: Instant)] = []
  private var thread: NamedThread?

  init(_ test: PlaneUnderTest, perSecond: Int) throws {
    (self.test, self.perSecond) = (test, perSecond)
    // Begins where it is started, beside the generator; real-time scheduling is not inherited.
    thread = try NamedThread.start(name: "storm", scheduling: .realtime) { [self] in
      while !isOver.load(ordering: .relaxed) {
        advance()
        bn_pause(500_000)
      }
      for entry in running { entry.dialling.close() }
    }
  }

  private func advance() {
    let now = MonotonicClock.now()
    let due = Int((now - start).inSeconds * Double(perSecond))
    while begun < due {
      begun += 1
      guard let pair = try? CallPair(begun), let dialling = try? Dialling(test, pair, .opus) else {
        failed += 1
        continue
      }
      running.append((dialling, now))
    }
    for (dialling, _) in running { try? dialling.advance() }
    running.removeAll { entry in
      let isLate = now - entry.since > .seconds(3)
      if isLate { failed += 1 }
      if entry.dialling.isDone || isLate { entry.dialling.close() }
      return entry.dialling.isDone || isLate
    }
  }

  func end() {
    isOver.store(true, ordering: .relaxed)
    thread?.join()
  }
}
