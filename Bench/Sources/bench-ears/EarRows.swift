import BenchKit

/// The calls as rows: ours beside Janus, with intervals over calls and the lead call by call.
struct EarRows {
  private let bench: Bench
  private let calls: [EarCall]
  private static let clients = ["chromium": "Chromium", "aiortc": "aiortc"]
  private static let networks = [
    "clean": "clean", "trunk-1": "1 % loss on the trunk", "trunk-3": "3 % loss on the trunk", "trunk-5": "5 % loss on the trunk",
    "trunk-10": "10 % loss on the trunk", "app-1": "1 % loss on the app's network", "app-3": "3 % loss on the app's network",
    "app-5": "5 % loss on the app's network", "app-10": "10 % loss on the app's network", "jitter": "jitter",
    "skew": "clocks 300 ppm apart",
    "pauses": "pauses in speech", "rtt-100": "100 ms of round trip",
  ]

  init(_ bench: Bench, _ calls: [EarCall]) { (self.bench, self.calls) = (bench, calls) }

  func add() {
    for client in ["chromium", "aiortc"] {
      for row in unique(calls.filter { $0.client == client }.map(\.row)) { add(client, row) }
      picture(client)
    }
  }

  private func of(_ client: String, _ row: String, _ bridge: String) -> [EarCall] {
    calls.filter { ($0.client, $0.row, $0.bridge) == (client, row, bridge) }
  }

  private func add(_ client: String, _ row: String) {
    let (ours, theirs) = (of(client, row, "trunkline"), of(client, row, "janus"))
    let condition = "\(Self.clients[client] ?? client), \(Self.networks[row] ?? row)"
    let isClean = ["clean", "skew", "pauses", "rtt-100"].contains(row)
    let note = "\(ours.count) calls, \(ours.reduce(0) { $0 + $1.attempt }) made again"
    func measured(
      _ what: String, _ unit: String, _ goal: BenchGoal? = nil, note: String = "", _ values: (EarCall) -> [Double]
    ) {
      guard let mine = Interval(groups: ours.map(values)) else { return }
      let others = Interval(groups: theirs.map(values))
      let pairs = ours.compactMap { call in theirs.first { $0.number == call.number }.map { (values(call), values($0)) } }
      bench.add(
        BenchRow(
          "\(condition): \(what)", unit: unit, ours: BenchFigure("ours", mine.mean, interval: mine),
          peers: others.map { [BenchFigure("Janus", $0.mean, interval: $0)] } ?? [], goal: goal,
          lead: Interval(groups: pairs.map { pair in zip(pair.0, pair.1).map { $0 - $1 } }), note: note))
    }
    func one(_ value: Double?) -> [Double] { value.map { [$0] } ?? [] }

    measured("PESQ trunk to app", "MOS", Marks.down(row), note: note) { $0.pesqDown }
    measured("PESQ app to trunk", "MOS", Marks.up(row)) { $0.pesqUp }
    if let most = Marks.drop(row) {
      plain("\(condition): what the loss costs, app to trunk", "MOS", client == "chromium" ? .atMost(most) : nil) {
        drop(client, row, $0)
      }
    }
    measured("mouth to ear, trunk to app", "ms", client == "chromium" && isClean && row != "rtt-100" ? .atMost(65) : nil) {
      one($0.earDownMs)
    }
    plain("\(condition): made up at the client, median", "%", client == "chromium" && row == "clean" ? .atMost(0.05) : nil) {
      bridge in
      let all = of(client, row, bridge).compactMap(\.concealedPct).sorted()
      return all.isEmpty ? nil : all[all.count / 2]
    }
    let punctual = ours.compactMap(\.madeUpMs)
    if row == "clean", !punctual.isEmpty {
      bench.add(
        BenchRow(
          "\(condition): calls in which the gateway made anything up", unit: "calls",
          ours: BenchFigure("ours", Double(punctual.count { $0 > 0 })), goal: .atMost(0),
          note: "of \(punctual.count) whose carrier and client sent in time"))
    }
    measured("copies (FEC) that came to the client", "packets") { one($0.copies) }
    measured("repaired from copies at the client", "ms") { one($0.repairedMs) }
    if client == "chromium" { measured("NetEQ's target", "ms", isClean ? .atMost(25) : nil) { one($0.targetMs) } }
    measured("through the bridge, trunk to app", "ms", row == "clean" ? .atMost(10) : nil) { one($0.transitDownMs) }
    measured("through the bridge, app to trunk", "ms", row == "clean" ? .atMost(15) : nil) { one($0.transitUpMs) }
    measured("delay moves in a call, trunk to app", "ms", client == "aiortc" && row == "clean" ? .atMost(2) : nil) {
      one($0.wobbleDownMs)
    }
    measured("delay moves in a call, app to trunk", "ms", row == "clean" ? .atMost(2) : nil) { one($0.wobbleUpMs) }
    measured("clipped at the beginning, trunk to app", "ms") { one($0.clippedDownMs) }
    measured("sent to the app", "kbit/s") { [$0.kbpsDown] }
    measured("sent by the app", "kbit/s") { [$0.kbpsUp] }
    measured("to the app more than 5 ms after their timestamp", "packets") { [Double($0.laterDown)] }
  }

  /// One figure for each bridge, without an interval.
  private func plain(_ row: String, _ unit: String, _ goal: BenchGoal?, _ value: (String) -> Double?) {
    guard let mine = value("trunkline") else { return }
    bench.add(
      BenchRow(
        row, unit: unit, ours: BenchFigure("ours", mine), peers: value("janus").map { [BenchFigure("Janus", $0)] } ?? [],
        goal: goal))
  }

  /// PESQ app to trunk less than on a clean network.
  private func drop(_ client: String, _ row: String, _ bridge: String) -> Double? {
    func mean(_ row: String) -> Double? { Interval(groups: of(client, row, bridge).map(\.pesqUp))?.mean }
    guard let clean = mean("clean"), let lossy = mean(row) else { return nil }
    return clean - lossy
  }

  /// PESQ by loss, for each way through the call.
  private func picture(_ client: String) {
    let losses = [0.0, 1, 3, 5, 10]
    for (way, title, values) in [
      ("down", "trunk to app", { (call: EarCall) in call.pesqDown }), ("up", "app to trunk", { (call: EarCall) in call.pesqUp }),
    ] {
      var plot = Plot(
        "PESQ, \(title), \(Self.clients[client] ?? client)", x: .init("packets lost, %"),
        y: .init("PESQ-NB, MOS", range: 1.5...4.6))
      for (bridge, name) in [("trunkline", "ours"), ("janus", "Janus")] {
        for (side, where_) in [("app", "app's network"), ("trunk", "trunk")] where way == "down" || side == "app" {
          let points = losses.compactMap { loss in
            Interval(groups: of(client, loss == 0 ? "clean" : "\(side)-\(Int(loss))", bridge).map(values)).map { (loss, $0.mean) }
          }
          if points.count > 1 { plot.add("\(name), \(where_)", points) }
        }
      }
      if !plot.isEmpty {
        bench.save(
          plot.svg, as: "ears-\(client)-\(way)",
          caption:
            "What \(way == "down" ? (Self.clients[client] ?? client) : "the trunk") hears by how many packets the network loses.")
      }
    }
  }

  private func unique(_ names: [String]) -> [String] {
    names.reduce(into: []) { names, name in if !names.contains(name) { names.append(name) } }
  }
}

/// What has to be reached, by network.
enum Marks {
  static func down(_ row: String) -> BenchGoal? {
    switch row {
    case "clean": .atLeast(3.9)
    case "trunk-3": .atLeast(3.6)
    case "trunk-5": .atLeast(3.45)
    case "trunk-10": .atLeast(3)
    default: nil
    }
  }
  static func drop(_ row: String) -> Double? { ["app-3": 0.3, "app-5": 0.6, "app-10": 1][row] }
  static func up(_ row: String) -> BenchGoal? { row == "clean" ? .atLeast(3.9) : nil }
}
