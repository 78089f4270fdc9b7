import ArgumentParser
import CTrunklineLinux
import CallFlow
import CallModel
import CommandSupport
import Configuration
import Foundation
import JSONWebToken
import Peers
import TrunklineBytes
import TrunklinePlatform

/// `trunkline-lab load`: many calls at once against a running gateway.
struct LoadCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "load", abstract: "Plays many calls at once through a running gateway and measures them.",
    discussion: """
      Reads the gateway's own configuration: its addresses, its key, and as many users as there are to be calls, each with a
      number. One process plays the carrier and all apps; half of the calls are placed by apps. Ends with status 0 only if every
      call was set up, lost nothing, ended as planned, has its record, and every gauge of the gateway is back where it was.

      Without --config it starts a gateway of its own for every number of --steps, bound to one core while the load uses the
      others, until the calls are more than that core carries, and then goes back by halves until it knows how many are carried to
      5 %; at last it offers 1.5 times as many at once. A step is void if the load could not keep its own time: run it with less
      beside it.

      With --node it plays through a cluster: apps connect to all nodes in turn, the carrier calls the node of --config, and is called
      by all. Records and gauges are those of all nodes. The nodes' configurations have the same users, key and trunk.

      Ctrl-C hangs up, prints what was measured and ends with status 130; a second one ends at once.

      EXAMPLES:
        trunkline-lab load --steps 5,10 --seconds 10
        trunkline-lab load --steps 20,40,60,80,100,120,140
        trunkline-lab load --relay --steps 100,200,300
        trunkline-lab load --wide --steps 20,40,60,80
        trunkline-lab load --config load.yaml --calls 50 --seconds 60 --pid $(pidof trunkline)
        trunkline-lab load --config load.yaml --calls 100 --seconds 600 --network 0,0,0 --network 2,30,1 --json
        trunkline-lab load --config n1.yaml --node n2.yaml --node n3.yaml --calls 300 --seconds 10 --outgoing 20
        trunkline-lab load --sessions 10000 --rate 1000 --seconds 10 --reconnect-within 10
      """)

  @Option(help: "The gateway's configuration file.") var config: String?
  @Option(help: ArgumentHelp("The configuration of another node of --config's cluster; several times.", valueName: "file"))
  var node: [String] = []
  @Option(help: ArgumentHelp("Calls at once, one number after the other, each with a gateway of its own.", valueName: "n,n,…"))
  var steps = "20,60,100,140,180,220"
  @Option(help: ArgumentHelp("Calls at once with --config.", valueName: "n")) var calls = 50
  @Option(help: "How long all of them stay up, in each step.") var seconds = 60.0
  @Option(help: ArgumentHelp("Calls begun a second.", valueName: "n")) var rate = 10.0
  @Option(help: ArgumentHelp("The share of calls that apps make.", valueName: "percent")) var outgoing = 50
  @Option(help: ArgumentHelp("Calls whose speech is scored from the first word on, if they last 3.5 s.", valueName: "n"))
  var sampled = 4
  @Flag(help: "Apps use the carrier's PCMU, which is relayed, instead of Opus, which is transcoded.") var relay = false
  @Flag(
    help:
      "The carrier uses G.722 and apps Opus of 16 kHz: calls of HD voice. The trunk of --config needs G722 among its codecs.")
  var wide = false
  @Option(
    help: ArgumentHelp(
      "A state of the carrier's network; several are used in turn.", valueName: "loss %,jitter ms,reorder %"))
  var network: [String] = []
  @Option(
    help: "Idle sessions instead of calls, against a gateway of its own: its memory, and how it handles all reconnecting.")
  var sessions: Int?
  @Option(help: ArgumentHelp("The time in which all --sessions are cut to come back; 0 leaves them.", valueName: "seconds"))
  var reconnectWithin = 10.0
  @Flag(help: "The --sessions come over TLS.") var tls = false
  @Option(help: "The gateway's process, for its memory and CPU.") var pid: Int32?
  @Flag(help: "Prints the figures as JSON; progress goes to standard error.") var json = false

  /// Time limit for records and gauges after the last call.
  static let afterwards = Duration.seconds(40)

  func validate() throws {
    guard calls > 0, seconds > 0, rate > 0, sampled >= 0 else {
      throw ValidationError("--calls, --seconds and --rate: numbers above zero; --sampled: zero or more")
    }
    guard (0...100).contains(outgoing) else { throw ValidationError("--outgoing: 0 to 100") }
    guard LoadSteps.numbers(steps) != nil else { throw ValidationError("--steps \(steps): as in 20,40,60") }
    guard node.isEmpty || config != nil else { throw ValidationError("--node: of the cluster of --config") }
    guard !wide || !relay else { throw ValidationError("--wide and --relay exclude each other") }
    if let sessions, !(1...20_000).contains(sessions) { throw ValidationError("--sessions: 1 to 20000") }
    if let bad = network.first(where: { LoadOptions.Network($0) == nil }) {
      throw ValidationError("--network \(bad): as in 2,30,1")
    }
  }

  func run() throws {
    // Other work on this machine must not count as the gateway's lateness, or as ours.
    if clx_set_realtime(1) != 0 { complain("no permission for real-time scheduling: the load's own lateness may void its times") }
    let stop = LoadStop()
    let signals = StopSignal { stop.signalled() }
    defer { withExtendedLifetime(signals) {} }
    if let sessions { return try runSessions(sessions, stop) }
    guard let config else { return try runSteps(stop) }
    try Descriptors.allow(calls * Descriptors.perCall)
    let nodes = try ([config] + node).map { try SettingsSource.load($0) }
    let report = try play(nodes, calls: calls, seconds: seconds, pid: pid, stop) { complain($0) }
    print(json ? try Self.encoded(report) : report.table)
    if stop.isStopped { throw ExitCode(LoadStop.status) }
    if !report.failures.isEmpty { throw ExitCode(1) }
  }

  /// One run against an existing gateway, or the nodes of a cluster; `mayBeRefused`: the offered load may exceed its capacity.
  func play(
    _ nodes: [Settings], calls: Int, seconds: Double, pid: Int32?, mayBeRefused: Bool = false, _ stop: LoadStop,
    progress: @escaping (String) -> Void
  ) throws -> LoadReport {
    var options = try loadOptions(nodes, calls, seconds)
    options.mayBeRefused = mayBeRefused
    let admins = nodes.map(\.listen).map {
      AdminClient(address: $0.admin, token: $0.adminToken?.exposed, certificate: $0.adminTLS?.certificate)
    }
    let watch = try GatewayWatch(admins, pid: pid)
    defer { watch.stop() }
    let before = try watch.metrics()
    let old = Set(Self.records(nodes).map(\.call))
    let generator: LoadGenerator
    do {
      generator = try LoadGenerator(options, onHold: { watch.watch($0) }, report: progress)
    } catch {
      throw ValidationError("\(error)")
    }
    let result = stop.during({ generator.run() }, hangUp: { generator.stop() })
    return try conclude(result, watch: watch, before: before, nodes: nodes, old: old, waitsForGauges: !mayBeRefused, stop: stop)
  }

  private func loadOptions(_ nodes: [Settings], _ calls: Int, _ seconds: Double) throws -> LoadOptions {
    var options = LoadOptions()
    let settings = nodes[0]
    let users = settings.users.filter { !$0.numbers.isEmpty }
    guard users.count >= calls else {
      throw ValidationError(
        "the configuration has \(users.count) users with a number, \(calls) are needed: add some, or lower --calls")
    }
    guard let sip = settings.listen.sipUDP.first, let carrier = settings.trunks.lazy.compactMap(\.serverAddress).first else {
      throw ValidationError(
        "the configuration needs listen.sip.udp and a trunk with an address, where the load's carrier listens")
    }
    options.clients = try Self.clients(Array(users.prefix(calls)), settings)
    for index in options.clients.indices { options.clients[index].url = Self.url(nodes[index % nodes.count]) }
    options.url = Self.url(settings)
    options.gateway = sip
    options.listen = carrier
    if !sip.ip.isLoopback { options.mediaAddress = routeAddress(toward: sip) ?? .loopback }
    options.hold = .seconds(seconds)
    options.callsPerSecond = rate
    options.outgoingPercent = outgoing
    options.sampled = sampled
    options.relays = relay
    options.isWide = wide
    options.networks = network.compactMap { LoadOptions.Network($0) }
    return options
  }

  static func clients(_ users: [Routing.User], _ settings: Settings) throws -> [LoadOptions.Client] {
    let signer = try TokenSigner(keys: settings.auth.keys())
    let expiry = WallClock.nowMilliseconds() / 1000 + 86_400
    return try users.map { user in
      let claims = Claims(sub: user.id, dev: "load", aud: [settings.auth.audience], exp: expiry)
      return .init(token: try signer.sign(claims), device: "load", number: user.numbers[0])
    }
  }

  static func url(_ settings: Settings) -> String {
    "\(settings.listen.appTLS == nil ? "ws" : "wss")://\(settings.listen.app)/v1/connect"
  }

  /// Waits for records and gauges, then collects all figures.
  private func conclude(
    _ result: LoadResult, watch: GatewayWatch, before: GatewayWatch.Metrics, nodes: [Settings], old: Set<CallID>,
    waitsForGauges: Bool, stop: LoadStop
  ) throws -> LoadReport {
    let end = MonotonicClock.now() + Self.afterwards
    var after = try watch.metrics()
    var records: [CallRecord] = []
    repeat {
      records = Self.records(nodes).filter { !old.contains($0.call) }
      after = try watch.metrics()
      let wanted = stop.isStopped ? result.connected : result.asked - result.refused
      if records.count >= wanted, stop.isStopped || !waitsForGauges || LoadReport.unreturned(before: before, after: after).isEmpty
      {
        break
      }
      usleep(250_000)
    } while MonotonicClock.now() < end
    var report = LoadReport(result)
    report.process = watch.figures(calls: result.connected)
    report.record(before: before, held: watch.atHold, after: after)
    report.record(records)
    var limits = LoadReport.Limits()
    limits.isGoodNetwork = network.isEmpty
    report.evaluate(limits)
    return report
  }

  private static func records(_ nodes: [Settings]) -> [CallRecord] {
    let decoder = JSONDecoder()
    return nodes.flatMap { node in
      let text = (try? String(contentsOfFile: node.records, encoding: .utf8)) ?? ""
      return text.split(separator: "\n").compactMap { try? decoder.decode(CallRecord.self, from: Data($0.utf8)) }
    }
  }

  static func encoded(_ report: some Encodable) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(report), as: UTF8.self)
  }
}
