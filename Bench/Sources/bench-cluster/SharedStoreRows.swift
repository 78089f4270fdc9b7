import BenchKit
import Foundation

/// The commands that calls and nodes send to the shared store, and how many of them one Redis core handles here.
struct SharedStoreRows {
  let bench: Bench
  let site: Site
  let reactor: Reactor

  func commands() throws {
    guard bench.mayWant("commands of a call", "connections") else { return }
    let apps = try AppSockets.online(reactor, site, at: site.nodes[1], users: 0..<10)
    defer { for app in apps { app.finish() } }
    for app in apps { app.declines() }
    let carrier = try Carrier(reactor, host: Site.limited)
    let edge = try Carrier(reactor, host: Site.edge, isEdgeOf: "limited")
    for (name, from, node, most) in [
      ("at the right node", carrier, 1, 8.0), ("at the wrong node, redirected", edge, 0, 10),
      ("at the wrong node, woken through its socket", carrier, 0, 10),
    ] {
      try count("commands of a call \(name)", from, site.nodes[node], most)
    }
    let clients = try site.redis.say("CLIENT", "LIST").split(separator: "\n").count { !$0.contains("cmd=client") }
    bench.add(
      BenchRow(
        "connections of a node to the shared store", unit: "connections",
        ours: BenchFigure("ours", Double(clients) / Double(site.nodes.count)), goal: .atMost(2)))
  }

  /// Each call comes on a trunk with `max_calls`; it rings and is declined, or is given up once the app has its offer.
  private func count(_ name: String, _ carrier: Carrier, _ node: Node, _ most: Double) throws {
    let calls = bench.isSmall ? 10 : 100
    func sent() -> [String: Double] {
      site.nodes.map(\.commands).reduce(into: [:]) { sum, own in sum.merge(own, uniquingKeysWith: +) }
    }
    // until all apps of earlier rows, thousands of them, have left
    var (before, last) = (sent(), [String: Double]())
    for _ in 0..<60 where before.filter({ !Node.ownCommands.contains($0.key) }) != last {
      last = before.filter { !Node.ownCommands.contains($0.key) }
      reactor.run(for: 0.5)
      before = sent()
    }
    for number in 0..<calls {
      let call = carrier.call(Site.number(number % 10), to: node.sip)
      if !reactor.run(for: 0.1, until: { call.final != 0 }) { carrier.cancel(call) }
      bench.require(reactor.run(for: 2, until: { call.final != 0 }), "\(name): a call did not end")
    }
    reactor.run(for: 0.3)
    let grown = sent().filter { !Node.ownCommands.contains($0.key) }.mapValues { $0 }
      .map { ($0.key, ($0.value - (before[$0.key] ?? 0)) / Double(calls)) }.filter { $0.1 > 0 }.sorted { $0.0 < $1.0 }
    bench.add(
      BenchRow(
        name, unit: "commands", ours: BenchFigure("ours", grown.reduce(0) { $0 + $1.1 }), goal: .atMost(most),
        note: grown.map { "\($0.0) \(fixed($0.1, 1))" }.joined(separator: ", ")))
  }

  /// One Redis core under the `locate` of a call exactly as a node sends it, by `redis-benchmark`; a GET shows the limit.
  func locates(_ guests: Int) throws {
    guard bench.mayWant("locates") else { return }
    guard let program = Program.find("redis-benchmark") else { return bench.progress("left out: redis-benchmark (redis-tools)") }
    guard var words = try overheard() else { throw BenchError(text: "no locate was overheard") }
    // the keys of a random guest: guests' names end in twelve digits
    words = words.map { $0.replacingOccurrences(of: "{u:\(Site.user(0))}", with: "{u:guest__rand_int__}") }
    let common = ["-p", "\(site.redis.port)", "-c", "50", "-n", bench.isSmall ? "2000" : "300000", "--csv"]
    func run(_ command: [String]) throws -> (perSecond: Double, p99: Double) {
      let said = try Program.run(program, common + command).output.split(separator: "\n").last ?? ""
      // the command itself may hold commas: rate, mean, least, p50, p95, p99 and most follow it
      let fields = said.split(separator: ",").suffix(7).map { String($0).replacingOccurrences(of: "\"", with: "") }
      guard fields.count == 7, let rate = Double(fields[0]), let p99 = Double(fields[5]) else {
        throw BenchError(text: "redis-benchmark said \(said)")
      }
      return (rate, p99)
    }
    let ours = try run(["-r", "\(guests)"] + words)
    let limit = try run(["GET", "nothing"])
    bench.add(
      BenchRow(
        "locates of one Redis core", unit: "1/s", ours: BenchFigure("ours", ours.perSecond),
        limit: BenchFigure("GET", limit.perSecond),
        note: String(
          format: "50 connections, a call entered by each; p99 %.2f ms, of GET %.2f ms; redis-benchmark", ours.p99, limit.p99)))
  }

  /// The words of the command that a call sends, observed by MONITOR.
  private func overheard() throws -> [String]? {
    let (monitor, pipe) = (Process(), Pipe())
    monitor.executableURL = URL(fileURLWithPath: Program.find("redis-cli") ?? "")
    (monitor.arguments, monitor.standardOutput, monitor.standardInput) = (
      ["-p", "\(site.redis.port)", "MONITOR"], pipe, FileHandle.nullDevice
    )
    try monitor.run()
    usleep(300_000)
    let carrier = try Carrier(reactor, host: Site.carrier)
    let call = carrier.call(Site.number(0), to: site.nodes[0].sip)
    reactor.run(for: 2, until: { call.final != 0 })
    usleep(300_000)
    monitor.terminate()
    let text = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    monitor.waitUntilExit()
    // MONITOR also shows the script's own commands, with "lua" instead of an address
    guard
      let line = text.split(separator: "\n").first(where: {
        $0.contains("\"EVALSHA\"") && $0.contains("{u:\(Site.user(0))}:where") && $0.contains(":calls")
      })
    else { return nil }
    return Self.words(line)
  }

  /// The quoted strings of a line; `\"` and `\\` are unescaped.
  private static func words(_ line: Substring) -> [String] {
    var out: [String] = []
    var word: String?
    var isEscaped = false
    for character in line {
      if isEscaped {
        word?.append(character)
        isEscaped = false
      } else if character == "\\" {
        isEscaped = true
      } else if character == "\"" {
        if let done = word { out.append(done) }
        word = word == nil ? "" : nil
      } else {
        word?.append(character)
      }
    }
    return out
  }
}
