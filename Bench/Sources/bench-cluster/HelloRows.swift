import BenchKit
import Foundation
import Glibc
import TrunklinePlatform

/// The number of apps a second that a node of a cluster welcomes, and what they cost the shared store in commands and memory.
final class HelloRows {
  private let bench: Bench
  private let site: Site
  private let reactor: Reactor

  init(_ bench: Bench, _ site: Site, _ reactor: Reactor) {
    (self.bench, self.site, self.reactor) = (bench, site, reactor)
    count = bench.isSmall ? 300 : 10_000
  }

  /// Names as `redis-benchmark` makes them: twelve digits.
  static func guest(_ number: Int) -> String {
    let digits = "\(number)"
    return "guest" + String(repeating: "0", count: 12 - digits.count) + digits
  }
  /// The number of apps in one run.
  let count: Int
  /// Commands of a session from its `hello` to its end; commands of a device at rest, in a second.
  private var ofSession = 0.0, ofRest = 0.0
  private var atRest = 0.0

  func all() throws {
    guard bench.mayWant("hellos", "device at rest", "commands of a session", "commands of an idle") else { return }
    Self.allowFiles()
    let rate = bench.isSmall ? 300.0 : 2_200
    let rounds = bench.isSmall ? 1 : 3
    let tokens = try (0..<count).map { try site.token(of: Self.guest($0)) }
    var alone: [Round] = []
    var ours: [Round] = []
    for round in 1...rounds {
      bench.progress("hellos: \(count) apps, \(Int(rate)) a second, run \(round) of \(rounds)")
      alone.append(try come(to: site.alone, tokens, rate))
      ours.append(try come(to: site.nodes[0], tokens, rate, staysAtRest: round == rounds))
    }
    func middle(_ rounds: [Round], _ value: (Round) -> Double) -> Double { median(rounds.map(value)) }
    bench.add(
      BenchRow(
        "hellos of a node, no TLS: welcome a second", unit: "1/s", ours: BenchFigure("ours", middle(ours, \.perSecond)),
        peers: [BenchFigure("one node alone", middle(alone, \.perSecond))], goal: bench.isSmall ? nil : .atLeast(2_000),
        note: String(
          format:
            "%.0f a second offered, median of %d runs of %d; each takes control %.3f, apps' thread %.3f, shared store %.3f ms; "
            + "alone control %.3f, apps' thread %.3f ms", rate, rounds, count, middle(ours, \.control), middle(ours, \.app),
          middle(ours, \.sharedStore), middle(alone, \.control), middle(alone, \.app))))
    bench.add(
      BenchRow(
        "hellos of a node, no TLS: connect → welcome, p99", unit: "ms", ours: BenchFigure("ours", middle(ours, \.p99)),
        peers: [BenchFigure("one node alone", middle(alone, \.p99))], goal: .atMost(250),
        note: String(format: "p50 %.1f ms, alone %.1f ms", middle(ours, \.p50), middle(alone, \.p50))))
    bench.add(
      BenchRow("commands of a session, come and gone", unit: "commands", ours: BenchFigure("ours", ofSession), goal: .atMost(2)))
    bench.add(
      BenchRow(
        "commands of an idle device", unit: "1/s", ours: BenchFigure("ours", ofRest), goal: .atMost(0),
        note: "\(count) devices; a node's own lease and tasks are not counted"))
    bench.add(
      BenchRow(
        "shared store's memory: a device at rest", unit: "KB", ours: BenchFigure("ours", atRest / 1_024), goal: .atMost(1),
        note: "MEMORY USAGE of whereabouts and registration, with a sealing key"))
    try secure(Array(tokens.prefix(bench.isSmall ? 50 : 3_000)))
  }

  /// Full handshakes of TLS 1.3, several at a time.
  private func secure(_ tokens: [String]) throws {
    let node = site.nodes[2]
    let atOnce = 64
    bench.progress("hellos: \(tokens.count) apps over TLS, \(atOnce) at a time")
    let files = TLSFiles(authorities: site.folder.appendingPathComponent("app.pem").path)
    let context = try TLSContext(client: TLSClientSettings(identity: files, host: "127.0.0.1"))
    let before = node.process.threadCPU
    var sockets: [AppSocket] = []
    var open: [AppSocket] = []
    reactor.run(for: 30, until: { sockets.count == tokens.count && open.isEmpty }) {
      open.removeAll { $0.stage == .welcome || $0.stage == .closed }
      while sockets.count < tokens.count, open.count < atOnce {
        let number = sockets.count
        let socket = AppSocket(reactor, port: node.app, user: Self.guest(number), token: tokens[number], tls: context)
        sockets.append(socket)
        open.append(socket)
      }
    }
    let round = Self.round(sockets, before, node.process.threadCPU)
    let welcome = sockets.count { $0.stage == .welcome }
    bench.require(welcome == tokens.count, "hellos: \(tokens.count - welcome) of \(tokens.count) are not welcome over TLS")
    for socket in sockets { socket.finish() }
    bench.add(
      BenchRow(
        "hellos of a node, full handshakes of TLS 1.3: welcome a second", unit: "1/s",
        ours: BenchFigure("ours", round.perSecond),
        note: String(
          format: "%d at a time, P-256; connect → welcome p50 %.0f, p99 %.0f ms; each takes control %.3f, apps' thread %.3f ms; "
            + "their thread gives handshakes 120 ms of a second", atOnce, round.p50, round.p99, round.control, round.app)))
  }

  private struct Round {
    var perSecond = 0.0, p50 = 0.0, p99 = 0.0
    /// Milliseconds of CPU per session on each thread.
    var control = 0.0, app = 0.0, sharedStore = 0.0
  }

  private func come(to node: Node, _ tokens: [String], _ rate: Double, staysAtRest: Bool = false) throws -> Round {
    let (cpu, commands) = (node.process.threadCPU, node.commands)
    var sockets: [AppSocket] = []
    sockets.reserveCapacity(count)
    reactor.pace(
      count, perSecond: rate, linger: 10, until: { sockets.allSatisfy { $0.stage == .welcome } }
    ) { sockets.append(AppSocket(reactor, port: node.app, user: Self.guest($0), token: tokens[$0])) }
    let welcome = sockets.count { $0.stage == .welcome }
    bench.require(welcome == count, "hellos: \(count - welcome) of \(count) are not welcome at \(node.name)")
    let round = Self.round(sockets, cpu, node.process.threadCPU)
    func grown(_ name: String) -> Double { (node.commands[name] ?? 0) - (commands[name] ?? 0) }
    let isNode = node !== site.alone
    if isNode {
      reactor.run(for: 5, until: { grown("enter") >= Double(count) })
      bench.require(grown("enter") >= Double(count), "hellos: \(Int(grown("enter"))) of \(count) were entered")
    }
    if staysAtRest { try rest(sockets, node) }
    for socket in sockets { socket.finish() }
    reactor.run(for: 10, until: { !isNode || grown("leave") >= Double(count) })
    if isNode {
      let all = node.commands.keys.filter { !Node.ownCommands.contains($0) && $0 != "register" }.reduce(0) { $0 + grown($1) }
      ofSession = all / Double(count)
    }
    reactor.run(for: bench.isSmall ? 0.1 : 1)
    return round
  }

  /// With all apps online: commands to the shared store while the apps are idle, and the memory of their registrations in it.
  private func rest(_ sockets: [AppSocket], _ node: Node) throws {
    let commands = node.commands
    let seconds = bench.isSmall ? 1.0 : 10
    reactor.run(for: seconds)
    let idle = node.commands.filter { !Node.ownCommands.contains($0.key) }
    ofRest = idle.reduce(0) { $0 + $1.value - (commands[$1.key] ?? 0) } / seconds / Double(count)
    var answers = 0
    var refusal = ""
    for socket in sockets {
      socket.onMessage = { message in
        if message.type == "ok" { answers += 1 } else if message.type == "err" { refusal = message.text }
      }
    }
    reactor.pace(count, perSecond: bench.isSmall ? 400 : 2_000, linger: 5, until: { answers == count }) { number in
      let push =
        #"{"kind":"apns-voip","token":"\#(randomHex(64))","topic":"com.example.phone.voip","sealKey":"CQ\#(String(repeating: "A", count: 41))"}"#
      sockets[number].send(#"{"t":"device.put","id":"\#(randomUUID())","d":{"push":\#(push)}}"#)
    }
    bench.require(answers == count, "hellos: \(count - answers) of \(count) devices could not register \(refusal)")
    reactor.run(for: 5, until: { (node.commands["register"] ?? 0) - (commands["register"] ?? 0) >= Double(count) })
    atRest = try site.redis.memory("tl:{u:guest*") / Double(count)
  }

  private static func round(_ sockets: [AppSocket], _ before: [String: Double], _ after: [String: Double]) -> Round {
    let done = sockets.filter { $0.stage == .welcome }
    guard let first = done.map(\.began).min(), let last = done.map(\.welcomedAt).max() else { return Round() }
    let times = done.map { milliseconds($0.began, $0.welcomedAt) }.sorted()
    func cost(_ beginning: String) -> Double {
      after.filter { $0.key.hasPrefix(beginning) }.reduce(0) { $0 + $1.value - (before[$1.key] ?? 0) } / Double(done.count)
    }
    return Round(
      perSecond: Double(done.count) / (milliseconds(first, last) / 1e3), p50: times[times.count / 2],
      p99: times[min(times.count - 1, times.count * 99 / 100)], control: cost("control"), app: cost("app-"),
      sharedStore: cost("shared-store")
    )
  }

  private static func allowFiles() {
    var files = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
    files.rlim_cur = files.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &files)
  }
}
