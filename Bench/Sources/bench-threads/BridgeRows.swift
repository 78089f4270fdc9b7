import BenchKit
import CBenchNet
import TrunklineAudioCodecs
import TrunklineRTP

/// PCMU ↔ Opus + SRTP, and G.722 ↔ Opus at 16 kHz: calls per core beside bare libopus on the same frames and beside rtpengine, and how late
/// packets leave.
struct BridgeRows {
  let bench: Bench
  let cores: Cores
  init(_ bench: Bench, _ cores: Cores) { (self.bench, self.cores) = (bench, cores) }

  func run() throws {
    try narrow()
    try wide()
  }

  private func wide() throws {
    let name = "bridge: calls per core, G.722 and Opus at 16 kHz"
    guard bench.wants(name) else { return }
    let talk = Material.wideTalk()
    let material = try Material.spoken(talk, .wideband)
    let calls = bench.isSmall ? 10 : 50
    let frames = bench.isSmall ? 500 : 10_000
    let before = try Material.bareOpus(talk, material, calls: calls, frames: frames)
    bench.progress("bridge: \(calls) wideband calls through our media thread")
    let ours = try Ours(cores.inBatches).measure(
      calls, .opus, material, seconds: bench.isSmall ? 0.4 : 6, settle: bench.isSmall ? 0.3 : 1.1)
    let after = try Material.bareOpus(talk, material, calls: calls, frames: frames)
    let theirs = bench.isSmall ? nil : try Theirs.measure(bench, cores, 10, transcodes: true, material)
    bench.add(
      BenchRow(
        name, unit: "calls/core", ours: BenchFigure("ours", ours.callsPerCore),
        peers: theirs.map { [BenchFigure("rtpengine", $0.callsPerCore)] } ?? [],
        limit: BenchFigure("bare libopus at 16 kHz", 2 * 2e7 / (before + after)), goal: .atLeast(0.85, of: .limit),
        note: ours.note))
  }

  private func narrow() throws {
    let wanted = [
      "bridge: calls per core, continuous speech", "bridge: calls per core, conversation", "bridge: lateness p99 at half load",
    ]
    guard wanted.contains(where: bench.wants) else { return }
    let talk = Material.talk()
    let material = try Material.spoken(talk)
    let calls = bench.isSmall ? 10 : 80
    let seconds = bench.isSmall ? 0.4 : 6.0
    // Before and after: the machine's speed must not stand between ours and the limit.
    let before = try Material.bareOpus(talk, material, calls: calls, frames: bench.isSmall ? 500 : 20_000)
    bench.progress("bridge: \(calls) calls through our media thread")
    let ours = try Ours(cores.inBatches).measure(calls, .opus, material, seconds: seconds, settle: bench.isSmall ? 0.3 : 1.1)
    let after = try Material.bareOpus(talk, material, calls: calls, frames: bench.isSmall ? 500 : 20_000)
    let limit = 2 * 2e7 / (before + after)
    let theirs = bench.isSmall ? nil : try Theirs.measure(bench, cores, 14, transcodes: true, material)
    let peers = theirs.map { [BenchFigure("rtpengine", $0.callsPerCore)] } ?? []
    bench.add(
      BenchRow(
        wanted[0], unit: "calls/core", ours: BenchFigure("ours", ours.callsPerCore), peers: peers,
        limit: BenchFigure("bare libopus, as many calls in turn", limit),
        goal: .atLeast(0.87, of: .limit), note: ours.note))
    if bench.wants(wanted[2]) {
      bench.progress("bridge: lateness of \(calls) calls")
      // The jitter buffers have found their delay by then; what they still change is no lateness of the thread.
      let late = try Ours(cores).measure(calls, .opus, material, seconds: seconds, settle: bench.isSmall ? 0.3 : 6)
      bench.add(
        BenchRow(
          wanted[2], unit: "µs", ours: BenchFigure("ours", quantile(late.figures.transits, 0.99)),
          peers: theirs.map { [BenchFigure("rtpengine", quantile($0.figures.transits, 0.99))] } ?? [], goal: .atMost(1_000),
          note: "ours: \(calls) calls; " + late.note))
    }
    guard bench.wants(wanted[1]), !bench.isSmall else { return }
    let conversation = try Self.conversation(talk)
    let half = try Ours(cores.inBatches).measure(calls, .opus, conversation, seconds: seconds)
    bench.add(
      BenchRow(
        wanted[1], unit: "calls/core", ours: BenchFigure("ours", half.callsPerCore),
        limit: BenchFigure("bare libopus, all frames", limit),
        goal: .atLeast(250), note: "each side silent half of the time, in turns of 1 s"))
  }

  /// Each side talks for a second while the other is silent.
  private static func conversation(_ talk: [[Int16]]) throws -> CallMaterial {
    let silence = [Int16](repeating: 0, count: 160)
    let carrier = talk.indices.map { $0 / 50 % 2 == 0 ? talk[$0] : silence }
    let app = talk.indices.map { $0 / 50 % 2 == 1 ? talk[$0] : silence }
    return CallMaterial(trunk: try Material.spoken(carrier).trunk, app: try Material.spoken(app).app, stamps: false)
  }
}
