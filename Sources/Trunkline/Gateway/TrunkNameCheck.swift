import Configuration
import Logging
import Trunking
import TrunklineBytes
import TrunklinePlatform
import TrunklineResolver
import TrunklineSIPDialogs

/// Looks up the names of trunks as the gateway does, for `serve --check`: by NAPTR and SRV too, which a name may have alone.
enum TrunkNameCheck {
  /// A line for each trunk that no server is found for within `time`. Waits for the name servers on the caller's thread.
  static func warnings(_ trunks: [TrunkSettings], _ settings: Settings, within time: Duration = .seconds(5)) -> [String] {
    guard trunks.contains(where: { $0.server.address == nil }) else { return [] }
    guard let loop = try? EventLoop(name: "names") else { return [] }
    // nothing is sent: where to send from is of no interest
    let network = settings.network { transport, remote in
      Flow(transport: transport, local: SocketAddress(remote.ip.family == .v4 ? .any : .any6, 0), remote: remote)
    }
    let run = Run(TrunkMachine(network: network, random: .system), trunks.map(\.name), loop)
    let resolver = try? Resolver(
      loop: loop, servers: settings.dns.servers, logger: Logger(label: "dns") { _ in SwiftLogNoOpLogHandler() }
    ) {
      run.feed(.resolved($0, $1))
    }
    guard let resolver else { return [] }
    run.resolver = resolver
    let end = loop.addTimer("end") { loop.stop() }
    loop.setTimer(end, at: loop.now + time)
    LoopBound(run, to: loop).post { [servers = resolver.serverNames] run in
      run.feed(.nameServers(servers))
      run.feed(.configure(trunks.map(\.withoutRequests)))
    }
    loop.run()
    resolver.close()
    return run.failures
  }

  /// On the loop's thread, which is the caller's.
  private final class Run {
    private var machine: TrunkMachine
    private let names: [String]
    private let loop: EventLoop
    private var timer: EventLoop.TimerID?
    weak var resolver: Resolver?

    init(_ machine: TrunkMachine, _ names: [String], _ loop: EventLoop) {
      (self.machine, self.names, self.loop) = (machine, names, loop)
      timer = loop.addTimer("trunks") { [weak self] in self?.feed(.timer) }
    }

    func feed(_ input: TrunkMachine.Input) {
      var output = TrunkMachine.Output()
      machine.handle(input, at: loop.now, into: &output)
      for question in output.questions { resolver?.ask(question) }
      if let timer { loop.setTimer(timer, at: machine.nextDeadline) }
      if case .nameServers = input { return }
      let statuses = names.map { machine.status($0, at: loop.now, wallOffset: 0) }
      if statuses.allSatisfy({ $0.map { !$0.servers.isEmpty || $0.lookUp != nil } ?? true }) { loop.stop() }
    }

    var failures: [String] {
      names.compactMap { name in
        guard let status = machine.status(name, at: loop.now, wallOffset: 0), status.servers.isEmpty else { return nil }
        return "trunk \(name): no server is found: \(status.lookUp ?? "no DNS answer")"
      }
    }
  }
}

extension TrunkSettings {
  fileprivate var withoutRequests: TrunkSettings {
    var out = self
    out.registration = nil
    out.probe = nil
    return out
  }
}
