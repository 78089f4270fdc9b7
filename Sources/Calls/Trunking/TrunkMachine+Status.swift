public import TrunklineBytes
import TrunklineSIPDialogs

/// What operators ask.
extension TrunkMachine {
  /// A request of ours that its trunk did not grant.
  struct RefusedRequest {
    var method: String
    /// Nil: there was none, for a reason of our own.
    var code: Int?
    var failure: LocalFailure?
    var at: Instant
  }

  /// The trunk at `now`, without its calls; nil for one that is not configured here. `wallOffset`: milliseconds from `Instant` to 1970.
  public func status(_ name: String, at now: Instant, wallOffset: Int64) -> TrunkStatus? {
    guard let trunk = trunks[name] else { return nil }
    func wall(_ instant: Instant) -> Int64 { instant.nanoseconds / 1_000_000 &+ wallOffset }
    var out = TrunkStatus(trunk: name)
    let (isAnswering, isReached) = (isAnswering(name), isReached(trunk.plan))
    let addresses = Set(trunk.plan.servers.map(\.address)).sorted { $0.description < $1.description }
    out.servers = addresses.map { .init(address: "\($0)", up: isAnswering && isReached && (penalties[$0] ?? .zero) <= now) }
    out.nextProbe = trunk.prober?.due.map(wall)
    out.breakerOpen = trunk.breaker.isOpen
    out.lastRefusal = trunk.lastRefusal.map { .init(method: $0.method, code: $0.code, failure: $0.failure, at: wall($0.at)) }
    let unanswered = trunk.unanswered.sorted {
      ($0.key.method, $0.key.failure.rawValue) < ($1.key.method, $1.key.failure.rawValue)
    }
    out.unanswered =
      unanswered.isEmpty ? nil : unanswered.map { .init(method: $0.key.method, failure: $0.key.failure, count: $0.value) }
    if addresses.isEmpty { out.lookUp = trunk.lookUp }
    if addresses.isEmpty { out.mark(.notLocated) } else if !isReached { out.mark(.noListener) }
    if !isAnswering { out.mark(.notAnswering) }
    if trunk.registrar != nil, !isOnDuty(name) {
      out.registration = .init(registered: isRegistered(name), expires: nil)
      if !isRegistered(name) { out.mark(.notRegistered) }
    } else if let registrar = trunk.registrar {
      out.registration = .init(registered: registrar.isGranted(at: now), expires: registrar.expiry.map(wall))
      if !registrar.isBound(at: now) { out.mark(.notRegistered) }
    }
    return out
  }

  /// Whether a listener reaches one of the servers, of which as many count as a call may try.
  func isReached(_ plan: TargetPlan) -> Bool {
    let servers = plan.rows.lazy.flatMap { row in row.addresses.lazy.map { (row.transport, $0) } }
    return servers.prefix(Limits.targets).contains { network.flow($0.0, $0.1) != nil }
  }

  /// Tells once of a trunk with servers that no listener reaches any of them, and again after one did.
  mutating func checkReach(_ name: String, _ output: inout Output) {
    guard let trunk = trunks[name], trunk.isLocated else { return }
    let isReached = isReached(trunk.plan)
    if !isReached, !trunk.isUnreachedReported {
      output.news.append(
        .unreached(trunk: name, Set(trunk.plan.servers.map(\.address)).sorted { $0.description < $1.description }))
    }
    trunks[name]?.isUnreachedReported = !isReached
  }

  /// A request of ours had no answer.
  public mutating func requestUnanswered(_ name: String, method: String, _ failure: LocalFailure, at now: Instant) {
    trunks[name]?.lastRefusal = RefusedRequest(method: method, failure: failure, at: now)
    trunks[name]?.unanswered[.init(method: method, failure: failure), default: 0] &+= 1
  }

  /// An INVITE of ours was refused for good.
  public mutating func callRefused(_ name: String, code: Int, at now: Instant) {
    trunks[name]?.lastRefusal = RefusedRequest(method: "INVITE", code: code, at: now)
  }
}
