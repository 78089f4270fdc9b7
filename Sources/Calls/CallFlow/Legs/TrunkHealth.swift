import CallModel
import Trunking
import TrunklineBytes
import TrunklineSIPDialogs

/// Addresses and health of the trunks: `TrunkMachine`, whose output becomes actions, and what was last reported of each trunk.
/// Without a network there is no machine: each trunk has its fixed `peer` and is usable.
///
/// | input | effect |
/// |---|---|
/// | `configure`, `handle`, `callFinished` | actions, and the trunks whose state may have changed. `configure` again forgets the reports of removed trunks |
/// | `callStarted`, `callUndecided`, `callRefused`, `requestUnanswered`, `serverFailed` | the health of a trunk or server; of an unknown one: none |
/// | `report` | true: the trunk became usable or unusable since its last report, or this is the first |
struct TrunkHealth {
  private var machine: TrunkMachine?
  /// Empty between inputs; kept for its storage.
  private var output = TrunkMachine.Output()
  private(set) var isConfigured = false
  /// Whether each trunk was up in the last report.
  private var reported: [String: Bool] = [:]

  init(_ network: TrunkMachine.Network?, random: RandomSource, sharesDuties: Bool) {
    machine = network.map { TrunkMachine(network: $0, random: random, sharesDuties: sharesDuties) }
  }

  var nextDeadline: Instant? { machine?.nextDeadline }
  var isUnregistering: Bool { machine?.isUnregistering ?? false }
  var troubles: [String: TrunkStatus.Trouble] { machine?.troubles ?? [:] }

  func status(_ trunk: String, at now: Instant, wallOffset: Int64) -> TrunkStatus {
    machine?.status(trunk, at: now, wallOffset: wallOffset) ?? TrunkStatus(trunk: trunk)
  }

  // MARK: queries of calls

  func isUsable(_ trunk: String, at now: Instant) -> Bool { machine?.isUsable(trunk, at: now) ?? true }

  /// The trunk with its servers as of now; nil: it cannot be called.
  func located(_ trunk: Routing.Trunk, at now: Instant) -> Routing.Trunk? {
    guard let machine, trunk.settings != nil else { return trunk }
    guard let peer = machine.peer(trunk.name, at: now).flatMap({ trunk.callable($0) }) else { return nil }
    var trunk = trunk
    trunk.peer = peer
    return trunk
  }

  /// The same for a new call; nil also if the trunk is down. One that should be registered and is not comes after the others.
  func candidate(_ trunk: Routing.Trunk, at now: Instant) -> (trunk: Routing.Trunk, isRegistered: Bool)? {
    guard let machine, trunk.settings != nil else { return trunk.peer == nil ? nil : (trunk, true) }
    guard machine.isUsable(trunk.name, at: now), let located = located(trunk, at: now) else { return nil }
    return (located, machine.isRegistered(trunk.name))
  }

  // MARK: inputs

  mutating func configure(_ routing: Routing, _ step: inout Step) -> [String] {
    isConfigured = true
    reported = reported.filter { routing.trunk($0.key) != nil }
    return handle(
      .configure(
        routing.trunks.compactMap(\.settings),
        peerNames: Dictionary(routing.trunks.map { ($0.name, $0.peerNames) }) { first, _ in first }),
      &step)
  }

  mutating func handle(_ input: TrunkMachine.Input, _ step: inout Step) -> [String] {
    machine?.handle(input, at: step.now, into: &output)
    return forward(&step)
  }

  mutating func callFinished(_ trunk: String, byFault: Bool, _ step: inout Step) -> [String] {
    machine?.callFinished(trunk, byFault: byFault, at: step.now, into: &output)
    return forward(&step)
  }

  mutating func callStarted(_ trunk: String, at now: Instant) { machine?.callStarted(trunk, at: now) }
  mutating func callUndecided(_ trunk: String, at now: Instant) { machine?.callUndecided(trunk, at: now) }
  mutating func callRefused(_ trunk: String, code: Int, at now: Instant) { machine?.callRefused(trunk, code: code, at: now) }
  mutating func serverFailed(_ address: SocketAddress, retryAfter: Int?, at now: Instant) {
    machine?.serverFailed(address, retryAfter: retryAfter, at: now)
  }
  mutating func requestUnanswered(_ trunk: String, method: String, _ failure: LocalFailure, at now: Instant) {
    machine?.requestUnanswered(trunk, method: method, failure, at: now)
  }

  mutating func report(_ status: TrunkStatus) -> Bool { reported.updateValue(status.up, forKey: status.trunk) != status.up }

  private mutating func forward(_ step: inout Step) -> [String] {
    for question in output.questions { step.output.actions.append(.lookUp(question)) }
    for flow in output.keepAlives { step.output.actions.append(.keepAlive(flow)) }
    for (id, request) in output.requests { step.sip(.request(id, request)) }
    for news in output.news { step.output.actions.append(.trunkNews(news)) }
    let changed = output.news.map(\.trunk)
    output.removeAll()
    return changed
  }
}
