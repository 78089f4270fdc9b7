import BenchKit
import CBenchNet
import TrunklineAudioCodecs
import TrunklineRTP

/// RTP ↔ SRTP without transcoding: calls per core, packets per core, and the delay a packet gets.
struct RelayRows {
  let bench: Bench
  let cores: Cores
  init(_ bench: Bench, _ cores: Cores) { (self.bench, self.cores) = (bench, cores) }

  func run() throws {
    if ["relay: calls per core", "relay: packets per second and core"].contains(where: bench.wants) { try capacity() }
    if ["relay: added delay p50, 100 calls", "relay: added delay p99, 100 calls"].contains(where: bench.wants) { try delay() }
  }

  private var settle: Double { bench.isSmall ? 0.3 : 1.1 }

  private func capacity() throws {
    let calls = bench.isSmall ? 40 : 400
    bench.progress("relay: \(calls) calls through our media thread")
    let ours = try Ours(cores.inBatches).measure(calls, .pcmu, Material.relayed, seconds: bench.isSmall ? 0.4 : 5, settle: settle)
    let theirs = try Theirs.measure(bench, cores.inBatches, bench.isSmall ? 20 : 100, transcodes: false, Material.relayed)
    let note = ours.note
    let nanoseconds = bn_bare_relay(Int32(calls), bench.isSmall ? 2 : 100)
    guard nanoseconds > 0 else { throw BenchError(text: "no sockets for the bare relay") }
    bench.add(
      BenchRow(
        "relay: calls per core", unit: "calls/core", ours: BenchFigure("ours", ours.callsPerCore),
        peers: theirs.map { [BenchFigure("rtpengine", $0.callsPerCore)] } ?? [],
        limit: BenchFigure("bare sockets, no SRTP", 1e9 / (nanoseconds * 100)), goal: .atLeast(2_700), note: note))
    bench.add(
      BenchRow(
        "relay: packets per second and core", unit: "packets/s", ours: BenchFigure("ours", ours.callsPerCore * 100),
        peers: theirs.map { [BenchFigure("rtpengine", $0.callsPerCore * 100)] } ?? [], note: note))
    var bars = BarPlot("Relayed calls per core, RTP ↔ SRTP", label: "calls per core")
    bars.add("ours", ours.callsPerCore)
    if let theirs { bars.add("rtpengine", theirs.callsPerCore) }
    bars.add("bare sockets, no SRTP", 1e9 / (nanoseconds * 100))
    bench.save(bars.svg, as: "threads-relay", caption: "Relayed calls per core, by CPU time of the media thread.")
  }

  private func delay() throws {
    let calls = bench.isSmall ? 20 : 100
    bench.progress("relay: added delay at \(calls) calls")
    let ours = try Ours(cores).measure(calls, .pcmu, Material.relayed, seconds: bench.isSmall ? 0.4 : 5, settle: settle)
    let theirs = bench.isSmall ? nil : try Theirs.measure(bench, cores, calls, transcodes: false, Material.relayed)
    // On both cores: the time in which the machine wakes a thread that only answers.
    if let cpu = cores.generator { _ = bn_pin(0, cpu) }
    var bare = [Double](repeating: 0, count: bench.isSmall ? 1_000 : 20_000)
    let echoed = Int(bn_bare_echo(cores.measured ?? -1, Int32(bare.count), &bare))
    guard echoed > 0 else { throw BenchError(text: "no sockets for the bare echo") }
    for (name, share, goal) in [("p50", 0.5, 25.0), ("p99", 0.99, 100.0)] {
      bench.add(
        BenchRow(
          "relay: added delay \(name), 100 calls", unit: "µs", ours: BenchFigure("ours", quantile(ours.figures.transits, share)),
          peers: theirs.map { [BenchFigure("rtpengine", quantile($0.figures.transits, share))] } ?? [],
          limit: BenchFigure("bare echo of a sleeping thread", quantile(Array(bare[..<echoed]), share)), goal: .atMost(goal),
          note: ours.note))
    }
  }
}

/// A run of one implementation.
struct Measured {
  var figures: CallGenerator.Figures
  var callsPerCore: Double
  /// By design (`Cores.inBatches`): there the bench measures CPU time per packet, which does not depend on when the generator
  /// sends.
  var isBesideGenerator = false
  var note: String {
    let kept = "\(fixed(figures.worstShare * 100, 2)) % of the worst call's packets"
    if isBesideGenerator { return kept + ", generator on the same core" }
    let late = "generator late p99 \(fixed(quantile(figures.ownLateness, 0.99), 0)) µs"
    return kept + ", " + late + (figures.isVoid ? ": VOID" : "")
  }
}

/// Our media threads.
struct Ours {
  let cores: Cores
  init(_ cores: Cores) { self.cores = cores }

  func measure(
    _ calls: Int, _ encoding: AudioEncoding, _ material: CallMaterial, seconds: Double, settle: Double = 1.1
  ) throws -> Measured {
    let test = try PlaneUnderTest(cores)
    let pairs = try (0..<calls).map { try CallPair($0, trunk: material.trunkEncoding) }
    try test.connect(pairs, app: encoding)
    let generator = CallGenerator(calls: pairs, material: material)
    var used = (0.0, 0.0)
    let figures = try generator.run(
      seconds: seconds, settle: settle, atStart: { used.0 = test.cpuSeconds(of: "media-0") },
      atEnd: { used.1 = test.cpuSeconds(of: "media-0") })
    test.endCalls()
    return Measured(
      figures: figures, callsPerCore: Double(calls) * seconds / max(1e-9, used.1 - used.0),
      isBesideGenerator: cores.measured != nil && cores.generator == cores.measured)
  }
}
