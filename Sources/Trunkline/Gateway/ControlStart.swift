import AppSessions
import CallFlow
import CallModel
import Cluster
import CommandSupport
import Configuration
import Control
import Devices
import Logging
import Store
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

extension Control {
  /// Control with the state of the last process: devices, grants and blocked numbers. Blocks while files are read.
  /// - Parameter mostCalls: for how many calls the process has descriptors.
  convenience init(
    _ settings: Settings, loop: EventLoop, inbox: Inbox, sip: SIPComponent, plan: NetworkPlan, store: StoreComponent,
    cluster: ClusterComponent?, wakes: WakeTokens, outputs: ControlOutputs, mostCalls: Int, logs: Logs
  ) throws {
    let sockets = LoopBound(sip.sockets, to: loop)
    var machine = CallMachine(
      configuration: settings.callMachine(wakes, isClustered: cluster != nil, mostCalls: mostCalls),
      routing: settings.routing(try NumberTable.imported(settings, logs), own: plan.own),
      random: .system,
      network: settings.network { sockets.value.flow($0, toward: $1) })
    try machine.restore(store, settings.registrationDefaults, at: loop.now)
    let begun = loop.now
    try self.init(
      loop: loop,
      userAgent: UserAgent(
        configuration: .init(
          product: "Trunkline/\(Version.number)", own: settings.own(plan, bound: sip.bound),
          advertised: settings.advertisedAddresses(plan), nonceSecret: settings.cluster?.nodes?.key), random: .system),
      machine: machine, cluster: cluster.map { ClusterMachine($0.machine, random: .system, at: begun) }, outputs: outputs,
      metrics: ControlMetrics(steps: loop.steps, hasCluster: cluster != nil), inbox: inbox, logger: logs.logger("control"),
      masksNumbers: settings.log.numbers == .masked)
    // Posted to the inbox, so that immediate outputs of the machine (a first REGISTER, a look-up) are sent.
    sip.resolver.serversChanged = { [inbox] in inbox.post(.trunking(.nameServers($0))) }
    inbox.post(.trunking(.nameServers(sip.resolver.serverNames)))
  }
}

extension Settings {
  fileprivate func callMachine(_ wakes: WakeTokens, isClustered: Bool, mostCalls: Int) -> CallConfiguration {
    var configuration = calls
    configuration.push = pushSettings(wakes)
    configuration.events = eventRules
    configuration.isClustered = isClustered
    configuration.bounds.calls = min(configuration.bounds.calls, mostCalls)
    return configuration
  }
}

extension CallMachine {
  /// The devices that can be woken must be known before the first INVITE.
  fileprivate mutating func restore(_ store: StoreComponent, _ defaults: DeviceRegistry.Defaults, at now: Instant) throws {
    var nothing = Output()
    handle(.devices(.loaded(store.calls.devices)), at: now, into: &nothing)
    var stale = Output()
    handle(.grants(store.calls.grants, at: WallClock.nowMilliseconds()), at: now, into: &stale)
    for case .grants(let changes) in stale.actions { store.change(changes) }
    handle(.devices(.defaults(defaults)), at: now, into: &nothing)
    for (scope, numbers) in try store.directory.blocked() {
      handle(.blocked(scope: scope, numbers), at: now, into: &nothing)
    }
  }
}

extension NumberTable {
  /// What `trunkline users import` left. Blocks.
  static func imported(_ settings: Settings, _ logs: Logs) throws -> NumberTable {
    let table = try ImportedNumbers.read(settings.numbers)
    if !table.isEmpty {
      logs.logger("trunkline").notice(
        "imported numbers", metadata: ["numbers": "\(table.count)", "users": "\(table.userCount)", "bytes": "\(table.bytes)"])
    }
    return table
  }
}
