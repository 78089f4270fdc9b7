import BenchKit
import Foundation

/// The SDK in JavaScript: its size, what calls leave behind, and how soon a tap in a browser is a 200. `Bench/web.mjs` has the measuring.
struct WebRows {
  let bench: Bench
  let site: Site
  private static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../web.mjs")
    .standardizedFileURL.path

  private struct Size: Decodable { var served: Double, minified: Double?, calls: Double?, worker: Double }
  private struct Left: Decodable { var listeners: Int, timers: Int, peers: Int, microphones: Int }
  private struct Tap: Decodable { var at: Double, number: Int }

  func add() throws {
    guard let node = Self.program("node") ?? Self.program("nodejs") else {
      return bench.progress("no node: no figures of trunkline.js")
    }
    try size(node)
    try left(node)
    guard Self.program("chromium") != nil else { return bench.progress("no chromium: no tap in trunkline.js") }
    try taps(node)
  }

  private static func program(_ name: String) -> String? {
    ["/usr/bin", "/usr/local/bin"].map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  private func run<T: Decodable>(_ node: String, _ what: String, as type: T.Type) throws -> T {
    let process = try Spawned("web-\(what)", node, [Self.script, what], in: site.folder)
    let line = try process.line("\"event\":\"\(what)\"", within: 60)
    process.finish(within: 10)
    return try JSONDecoder().decode(T.self, from: Data(line.utf8))
  }

  private func size(_ node: String) throws {
    guard bench.wants("trunkline.js, gzip") else { return }
    let size = try run(node, "size", as: Size.self)
    let served = String(
      format: "as the gateway serves it, comments and all, %.1f kB; its service worker %.1f kB", size.served / 1_000,
      size.worker / 1_000)
    guard let minified = size.minified, let calls = size.calls else {
      return bench.progress("no esbuild: no size of trunkline.js; \(served)")
    }
    bench.add(
      BenchRow(
        "trunkline.js, gzip", unit: "kB", ours: BenchFigure("ours", minified / 1_000), goal: .atMost(12),
        note: String(format: "minified by esbuild as an app's bundler does, without push.js %.1f kB; ", calls / 1_000) + served))
  }

  private func left(_ node: String) throws {
    guard bench.wants("trunkline.js: left after 100 calls") else { return }
    let left = try run(node, "left", as: Left.self)
    let sum = left.listeners + left.timers + left.peers + left.microphones
    bench.add(
      BenchRow(
        "trunkline.js: left after 100 calls", unit: "", ours: BenchFigure("ours", Double(sum)), goal: .atMost(0),
        note: "listeners, timers, peer connections and open microphones"))
    bench.require(sum == 0, "100 calls of trunkline.js leave \(left)")
  }

  private func taps(_ node: String) throws {
    let name = "trunkline.js, 100 ms round trip: warm tap → 200 at the carrier"
    guard bench.wants(name) else { return }
    let count = bench.isSmall ? 1 : 10
    let page = try Spawned(
      "web-tap", node, [Self.script, "tap", "\(site.appPort)", try site.token(device: "browser"), "\(count)"], in: site.folder)
    defer { page.end() }
    _ = try page.line("\"event\":\"online\"", within: 30)
    let times = try (0..<count).map { number in
      bench.progress("tap \(number + 1) of \(count) in Chromium")
      let carrier = try site.carrier(talk: 1)
      defer { carrier.end() }
      let answered = try carrier.time(of: "answered", within: 15)
      let line = try page.line("\"event\":\"tap\",\"number\":\(number)", within: 5)
      carrier.finish(within: 5)
      return answered - (try JSONDecoder().decode(Tap.self, from: Data(line.utf8))).at
    }.sorted()
    let p95 = times[min(count - 1, Int((Double(count) * 0.95).rounded(.up)) - 1)]
    bench.add(
      BenchRow(
        name + ", p95", unit: "ms", ours: BenchFigure("ours", p95), goal: .atMost(150),
        note: String(
          format: "p95 of %d; median %.1f ms, fastest %.1f ms; headless Chromium, its microphone is opened by the tap", count,
          median(times), times[0])))
  }
}
