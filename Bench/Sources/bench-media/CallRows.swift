import BenchKit
import TrunklineAudioCodecs
import TrunklineMediaSession
import TrunklineSRTP

/// Bridged calls per core: a whole connected call on virtual time beside what libopus alone takes for the same frames. Sockets and
/// threads are the benches relay's, bridge's and load's.
enum CallRows {
  private static let calls = BenchValue.perSecond(unit: "calls/core", times: 0.02)

  static func add(to bench: Bench) throws {
    let trunk = try Speech.packets(.pcmu, count: 500)
    let app = try Speech.packets(.opus, count: 500)
    var plan = SessionBench.Plan(fromTrunk: trunk, fromApp: app)
    let narrow = BareOpus(fromTrunk: trunk, fromApp: app)
    let first = try row(
      bench, "call PCMU ↔ Opus, speech, complexity 5, GCM-128", plan, narrow, goal: .atLeast(0.87, of: .limit))
    if let figure = first?.ours {
      bench.add(
        BenchRow(
          "calls per core for the stream our SDP asks for", unit: "calls/core", ours: figure, goal: .atLeast(155),
          note: "the row above"))
    }
    plan.profile = .aes128CM_HMAC_SHA1_80
    try row(bench, "call PCMU ↔ Opus, speech, complexity 5, CM-SHA1-80", plan, narrow, goal: .atLeast(0.87, of: .limit))
    plan.profile = .aeadAES128GCM

    try tapRow(bench, plan)

    var bars: [(String, BenchRow?)] = [("speech, complexity 5", first)]
    let hybrid = try HybridSpeech.packets(count: 500)
    plan.fromApp = hybrid
    let wide = try row(
      bench, "call PCMU ↔ Opus, app sends 32 kbit/s hybrid", plan, BareOpus(fromTrunk: trunk, fromApp: hybrid),
      goal: .atLeast(0.87, of: .limit))

    plan.fromApp = app
    plan.complexity = 10
    var bare = narrow
    bare.complexity = 10
    let best = try row(bench, "call PCMU ↔ Opus, speech, complexity 10", plan, bare, goal: .atLeast(120))

    let conversation = try row(
      bench, "call PCMU ↔ Opus, conversation, silence not encoded", conversationPlan(trunk, app), nil, goal: .atLeast(250),
      note: "each side silent half the time, in turns of 2 s", operations: 600, counted: 400)

    let wideband = try widebandRow(bench)
    bars += [("32 kbit/s hybrid from the app", wide), ("complexity 10", best), ("conversation", conversation)]
    bars.append(("G.722, wideband", wideband))
    picture(bench, bars)
    try MemoryRows.add(to: bench)

    plan = SessionBench.Plan(app: .pcmu, fromTrunk: trunk, fromApp: trunk)
    try row(
      bench, "call PCMU ↔ PCMU, relayed, GCM-128", plan, nil, goal: .atLeast(2700), note: "without sockets", operations: 2000)
  }

  /// The seam that recorders listen at, beside the same call without it.
  private static func tapRow(_ bench: Bench, _ plan: SessionBench.Plan) throws {
    var tapped = plan
    tapped.isTapped = true
    let without = BenchWork("without a tap") { loop in
      var call = try SessionBench.make(plan, packets: loop.total)
      loop.run { _ in call.step() }
    }
    let with = BenchWork("ours") { loop in
      var call = try SessionBench.make(tapped, packets: loop.total)
      loop.run { _ in call.step() }
    }
    try bench.compare(
      "call PCMU ↔ Opus, speech, with a tap", as: calls, operations: 500, rounds: 7, ours: with, limit: without,
      goal: .atLeast(0.98, of: .limit), oursMayAllocate: true, note: "beside the same call without one")
  }

  /// All at 16 kHz. rtpengine stands beside the media thread in bench-threads.
  private static func widebandRow(_ bench: Bench) throws -> BenchRow? {
    let (trunk, app) = (try Speech.packets(.g722, .wideband, count: 500), try Speech.packets(.opus, .wideband, count: 500))
    return try row(
      bench, "call G722 ↔ Opus, wideband speech, complexity 5, GCM-128",
      SessionBench.Plan(trunk: .g722, fromTrunk: trunk, fromApp: app),
      BareOpus(fromTrunk: trunk, fromApp: app, band: .wideband), goal: .atLeast(0.85, of: .limit))
  }

  private static func picture(_ bench: Bench, _ rows: [(name: String, row: BenchRow?)]) {
    var plot = BarPlot("Bridged calls per core, PCMU or G.722 ↔ Opus + SRTP, without sockets", label: "calls per core")
    for (name, row) in rows {
      guard let row else { continue }
      plot.add("ours: " + name, row.ours.value)
      if let limit = row.limit { plot.add("bare libopus", limit.value) }
    }
    bench.save(
      plot.svg, as: "media-calls", caption: "Bridged calls per core, beside what libopus alone takes for the same frames.")
  }

  /// The trunk sends faint noise while silent, as telephones do; the app says so once in 400 ms (RFC 7587 §3.1.3).
  private static func conversationPlan(_ trunk: [[UInt8]], _ app: [[UInt8]]) throws -> SessionBench.Plan {
    let turn = 100
    let quiet = try Speech.noise(count: turn)
    var fromTrunk: [[UInt8]?] = []
    var fromApp: [[UInt8]?] = []
    for number in 0..<2 * turn {
      let trunkTalks = number < turn
      fromTrunk.append(trunkTalks ? trunk[number % trunk.count] : quiet[number % turn])
      fromApp.append(!trunkTalks ? app[number % app.count] : number % 20 == 0 ? app[number % app.count] : nil)
    }
    return SessionBench.Plan(fromTrunk: fromTrunk, fromApp: fromApp)
  }

  @discardableResult private static func row(
    _ bench: Bench, _ name: String, _ plan: SessionBench.Plan, _ bare: BareOpus?, goal: BenchGoal, note: String = "",
    operations: Int = 500, counted: Int? = nil
  ) throws -> BenchRow? {
    let ours = BenchWork("ours") { loop in
      var call = try SessionBench.make(plan, packets: loop.total)
      loop.run { _ in call.step() }
      // Both directions flowed, or the numbers mean nothing; in a conversation one at a time.
      let least = plan.fromApp.contains { $0 == nil } ? loop.total : loop.total * 2 - 8
      guard call.sent >= least else { throw BenchError(text: "\(name): \(call.sent) packets only") }
    }
    let result = try bench.compare(
      name, as: calls, operations: operations, rounds: 7, counted: counted, ours: ours, limit: bare.map { $0.work }, goal: goal,
      oursMayAllocate: true, note: note)
    // One event for control in 5 s, with the statistics; nothing for a packet or a tick.
    if let result { bench.require((result.ours.mallocs ?? 0) <= 1 / 200, "\(name): ours allocates") }
    return result
  }
}
