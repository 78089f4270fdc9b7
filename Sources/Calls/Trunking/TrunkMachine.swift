public import TrunklineBytes
public import TrunklineSIPDialogs

/// The trunks' servers and health: names resolved ahead of calls, registrations, probes, breakers.
///
/// A value without a clock, I/O or its own randomness; belongs to the control thread. Calls read `peer` and `isUsable`, the state
/// known at that moment: no call waits for DNS.
///
///     machine.handle(.configure(settings), at: now, into: &output)   // output.questions, output.requests: perform them
///     machine.handle(.resolved(question, answer), at: now, into: &output)
///     let peer = machine.peer("carrier", at: now)                    // servers in this call's order
public struct TrunkMachine: Sendable {
  public enum Input: Sendable {
    /// Replaces all settings; an unchanged trunk keeps its state. A registration that was removed is unregistered. `peerNames`:
    /// host names by trunk, also of trunks that only call us, whose addresses may send to us.
    case configure([TrunkSettings], peerNames: [String: [String]] = [:])
    case resolved(DNSQuestion, DNSAnswer)
    case requestAnswered(RequestID, RequestOutcome)
    /// REGISTER and OPTIONS of a trunk are this node's task from now on, or another's: used with `sharesDuties`.
    case duty(trunk: String, Bool)
    /// The reports of the nodes that monitor the other trunks: all their troubles. A trunk that is not listed counts as healthy.
    case reported([String: TrunkStatus.Trouble])
    /// The configured name servers, for the message about a name without an answer.
    case nameServers([String])
    /// A connection was lost.
    case flowLost(Flow)
    /// Addresses or routes of this machine have changed: trunks whose requests now leave from another address are notified at
    /// once.
    case networkChanged
    /// The process is about to end: no further refresh, and `Expires: 0` for each registration (RFC 3261 §10.2.2).
    case unregister
    case timer
  }

  /// The effects of a `handle` call.
  public struct Output: Sendable {
    public var questions: [DNSQuestion] = []
    public var requests: [(id: RequestID, request: OutboundRequest)] = []
    /// Flows that get a double-CRLF keep-alive now (RFC 5626 §3.5.1).
    public var keepAlives: [Flow] = []
    public var news: [TrunkNews] = []
    public init() {}
    public mutating func removeAll() {
      questions.removeAll(keepingCapacity: true)
      requests.removeAll(keepingCapacity: true)
      keepAlives.removeAll(keepingCapacity: true)
      news.removeAll(keepingCapacity: true)
    }
  }

  /// How the gateway reaches its peers.
  public struct Network: Sendable {
    public var transports: Set<TransportProtocol>
    public var families: Set<IPAddress.Family>
    /// The listener and the local address toward a server; nil if there is none.
    public var flow: @Sendable (TransportProtocol, SocketAddress) -> Flow?
    public init(
      transports: Set<TransportProtocol>, families: Set<IPAddress.Family>,
      flow: @escaping @Sendable (TransportProtocol, SocketAddress) -> Flow?
    ) {
      (self.transports, self.families, self.flow) = (transports, families, flow)
    }
  }

  struct Trunk: Sendable {
    var settings: TrunkSettings
    var plan = TargetPlan()
    var questions: Set<DNSQuestion> = []
    var registrar: Registrar?
    var prober: Prober?
    var breaker = CircuitBreaker(Limits.breaker)
    /// The servers that the open request has not tried.
    var untriedTargets: [TrunkTarget] = []
    var registeredFlow: Flow?
    /// Service-Route of the valid 200 (RFC 3608 §6.1): each 200 replaces it, and it ends with the binding.
    var serviceRoutes: [String] = []
    /// The servers of the first of them, if its host is a name; until it is found, the empty plan means the trunk's own.
    var routePlan = TargetPlan()
    /// The registrar's last Service-Route could not be followed.
    var isServiceRouteRefused = false
    /// The contact that the registrar bound last, as written; after one that replaces it, a request removes the old one.
    var boundContact: String?
    /// Contacts of REGISTERs without an answer: each may be bound. When one is granted, those that are not ours are removed, the
    /// newest `Limits.suspectContacts`.
    var suspectContacts: [String] = []
    /// When the next keep-alive on the registered flow is due; used while `registeredFlow` is UDP.
    var keepAliveDue: Instant?
    var isUnlocatedReported = false
    var isUnreachedReported = false
    var lastRefusal: RefusedRequest?
    struct UnansweredKind: Hashable {
      var method: String
      var failure: LocalFailure
    }
    var unanswered: [UnansweredKind: UInt64] = [:]
    /// Why its name led to no server.
    var lookUp: String?
    /// Our address that its last request was sent from; nil: no request was sent, or no listener has reached it since.
    var askedFrom: IPAddress?

    /// Servers are known: requests can be sent when they are due.
    var isLocated: Bool { !plan.rows.isEmpty }
  }
  enum RequestPurpose: Equatable {
    case registration, probe, leaving
    /// A registration from an address that was removed: its answer is ignored, but it may be granted.
    case abandoned
    /// Removes the binding of an address that we had before.
    case removal(contact: String)
  }

  /// An open request.
  struct PendingRequest {
    var trunk: String
    var purpose: RequestPurpose
    var flow: Flow
    /// The trunk as it was, if the configuration has since removed its registration: a binding that results is to be removed.
    var left: Trunk?
  }

  let network: Network
  let random: RandomSource
  /// There are other nodes: each trunk is registered and probed by one of them, and the others use its reports.
  public let sharesDuties: Bool
  private var duties: Set<String> = []
  /// For trunks that are other nodes' duty.
  private var reports: [String: TrunkStatus.Trouble] = [:]
  var trunks: [String: Trunk] = [:]
  var names = NameTable()
  private var peerNames: [String: [String]] = [:]
  private var peerAddresses: [String: Set<IPAddress>] = [:]
  var penalties: [SocketAddress: Instant] = [:]
  private var nameServers: [String] = []
  var pendingRequests: [RequestID: PendingRequest] = [:]
  var lastRequest: UInt64 = 0

  public init(network: Network, random: RandomSource, sharesDuties: Bool = false) {
    (self.network, self.random, self.sharesDuties) = (network, random, sharesDuties)
  }

  func isOnDuty(_ name: String) -> Bool { !sharesDuties || duties.contains(name) }

  public var nextDeadline: Instant? {
    var next = names.nextDeadline
    // By index: iteration would copy each trunk.
    for index in trunks.indices {
      // The deadlines of a name that is not found yet are those of its queries.
      if isOnDuty(trunks.keys[index]), trunks.values[index].isLocated {
        next = .earliest(next, .earliest(trunks.values[index].registrar?.due, trunks.values[index].prober?.due))
      }
      next = .earliest(next, trunks.values[index].prober?.pending?.until)
      next = .earliest(next, trunks.values[index].keepAliveDue)
    }
    return next
  }

  public mutating func handle(_ input: Input, at now: Instant, into output: inout Output) {
    switch input {
    case .configure(let settings, let peerNames):
      configure(settings, at: now, &output)
      self.peerNames = peerNames.filter { !$0.value.isEmpty }
      peerAddresses = peerAddresses.filter { self.peerNames[$0.key] != nil }
    case .resolved(let question, let answer): names.answered(question, answer, at: now)
    case .requestAnswered(let id, let outcome): answered(id, outcome, at: now, &output)
    case .duty(let name, let isOurs):
      if isOurs, trunks[name] != nil {
        // The registrar does not know us yet, and the known state of the trunk may be old.
        if duties.insert(name).inserted { trunks[name]?.registrar?.registerNow(at: now) }
      } else {
        duties.remove(name)
      }
    case .reported(let troubles): reports = troubles
    case .flowLost(let flow):
      for (name, trunk) in trunks where trunk.registeredFlow == flow {
        trunks[name]?.registeredFlow = nil
        trunks[name]?.registrar?.registerNow(at: now)
      }
    case .nameServers(let servers): nameServers = servers
    case .networkChanged: networkChanged(at: now)
    case .unregister: unregister(at: now, &output)
    case .timer: break
    }
    locate(at: now, &output)
    sendDue(at: now, &output)
  }

  private mutating func configure(_ settings: [TrunkSettings], at now: Instant, _ output: inout Output) {
    var next: [String: Trunk] = [:]
    for one in settings {
      let old = trunks[one.name]
      var trunk = old ?? Trunk(settings: one)
      if trunk.settings.server != one.server {
        trunk.plan = TargetPlan()
        trunk.isUnlocatedReported = false
        trunk.isUnreachedReported = false
      }
      if trunk.registrar?.settings != one.registration || trunk.settings.server != one.server
        || trunk.settings.credentials != one.credentials
      {
        trunk.registrar = one.registration.map { successor(of: old?.registrar, $0, at: now) }
        trunk.registeredFlow = nil
        trunk.serviceRoutes = []
      }
      if trunk.prober?.settings != one.probe { trunk.prober = one.probe.map { Prober($0, at: now) } }
      trunk.settings = one
      next[one.name] = trunk
    }
    for name in trunks.keys.sorted() {
      guard let old = trunks[name], old.registrar != nil else { continue }
      let (new, before) = (next[name], old.settings)
      let (wanted, last) = (new?.settings.registration, before.registration)
      let stays = new?.settings.server == before.server && wanted?.user == last?.user && wanted?.contactUser == last?.contactUser
      if !stays {
        leave(name, old, at: now, &output)
        next[name]?.boundContact = nil
      } else if new?.registrar != old.registrar {
        pendingRequests = pendingRequests.filter {
          $0.value.trunk != name || $0.value.purpose != .registration || $0.value.left != nil
        }
      }
    }
    trunks = next
    pendingRequests = pendingRequests.filter {
      trunks[$0.value.trunk] != nil || $0.value.purpose == .leaving || $0.value.left != nil
    }
  }

  /// A registration that replaces another. With the same user it binds the same contact: one Call-ID, and numbers above all that
  /// the old one may still send, so that a registrar recognises a late `Expires: 0` as out of date (RFC 3261 §10.3).
  private func successor(of old: Registrar?, _ settings: TrunkSettings.Registration, at now: Instant) -> Registrar {
    if let old, old.settings.user == settings.user, old.settings.contactUser == settings.contactUser {
      return Registrar(settings, callID: old.callID, sequence: old.sequence &+ 16, at: now)
    }
    return Registrar(
      settings, callID: random.text(24, alphabet: Self.letters), sequence: UInt32(random.next() % 65_536) + 1, at: now)
  }
  static let letters: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

  // MARK: names

  private mutating func locate(at now: Instant, _ output: inout Output) {
    var all: Set<DNSQuestion> = []
    names.expire(at: now)
    for name in trunks.keys.sorted() {
      guard let trunk = trunks[name] else { continue }
      var locator = ServerLocator(transports: network.transports, families: network.families) { [names] in names.answer($0) }
      let plan = locator.locate(trunk.settings.server)
      trunks[name]?.questions = locator.used
      all.formUnion(locator.used)
      locateRoute(name, at: now, &all, &output)
      guard locator.missing.isEmpty, plan != trunk.plan else { continue }
      let servers = plan.servers
      // An answer without servers does not remove the last good ones.
      guard !servers.isEmpty else {
        let why = lookUpFailure(trunk.settings.server, locator.used)
        trunks[name]?.lookUp = why
        if !trunk.isUnlocatedReported { output.news.append(.notLocated(trunk: name)) }
        trunks[name]?.isUnlocatedReported = true
        continue
      }
      trunks[name]?.plan = plan
      trunks[name]?.isUnlocatedReported = false
      trunks[name]?.lookUp = nil
      if servers != trunk.plan.servers {
        output.news.append(.located(trunk: name, Set(servers.map(\.address)).sorted { $0.description < $1.description }))
      }
      checkReach(name, &output)
    }
    locatePeers(&all, &output)
    names.keep(only: all, at: now)
    output.questions += names.due(all, at: now)
  }

  /// The proxy that the registrar names for calls and probes, if it is a name and no proxy of ours precedes it.
  private mutating func locateRoute(
    _ name: String, at now: Instant, _ all: inout Set<DNSQuestion>, _ output: inout Output
  ) {
    guard let trunk = trunks[name], trunk.settings.outboundProxy == nil, trunk.settings.edge == nil,
      let uri = trunk.serviceRoutes(at: now).first.flatMap(ServerURI.init(route:)), uri.address == nil
    else {
      trunks[name]?.routePlan = TargetPlan()
      return
    }
    var locator = ServerLocator(transports: network.transports, families: network.families) { [names] in names.answer($0) }
    let plan = locator.locate(uri)
    all.formUnion(locator.used)
    guard locator.missing.isEmpty, plan != trunk.routePlan else { return }
    trunks[name]?.routePlan = plan
    let servers = Set(plan.servers.map(\.address)).sorted { $0.description < $1.description }
    if !servers.isEmpty { output.news.append(.located(trunk: name, servers)) }
  }

  /// The message about a name that leads to no server.
  private func lookUpFailure(_ uri: ServerURI, _ questions: Set<DNSQuestion>) -> String {
    let silent = questions.contains { names.answer($0) == .failed }
    let servers = nameServers.isEmpty ? "" : " (\(nameServers.prefix(Limits.shownNameServers).joined(separator: ", ")))"
    return "\(uri.host): \(silent ? "no DNS answer" : "no such name or record")\(servers)"
  }

  /// The addresses of peers that are given by name; queried again when their time to live ends.
  private mutating func locatePeers(_ all: inout Set<DNSQuestion>, _ output: inout Output) {
    for trunk in peerNames.keys.sorted() {
      var found: Set<IPAddress> = []
      for host in peerNames[trunk]?.prefix(Limits.peerNames) ?? [] {
        for family in network.families {
          let question = DNSQuestion(host, family == .v4 ? .a : .aaaa)
          all.insert(question)
          if case .addresses(let addresses, _)? = names.answer(question) {
            found.formUnion(addresses.prefix(Limits.peerAddresses))
          }
        }
      }
      // As with servers, an answer without addresses removes none.
      guard !found.isEmpty, found != peerAddresses[trunk] else { continue }
      peerAddresses[trunk] = found
      let addresses = found.map { SocketAddress($0, ServerURI.port(of: .udp)) }
      output.news.append(.located(trunk: trunk, addresses.sorted { $0.description < $1.description }))
    }
  }

  // MARK: queries of calls

  /// A trunk with its servers in an order drawn for one call; those that failed lately are last. Nil before it is located, and if
  /// no listener reaches it.
  public func peer(_ name: String, at now: Instant) -> TrunkPeer? {
    guard let trunk = trunks[name] else { return nil }
    let targets = callTargets(trunk, at: now)
    guard let first = targets.first else { return nil }
    let settings = trunk.settings
    var peer = settings.peer(at: first)
    peer.serviceRoutes = trunk.serviceRoutes(at: now)
    peer.further = Array(targets.dropFirst())
    return peer
  }

  /// For calls and probes: those of the Service-Route if its name is found.
  func callTargets(_ trunk: Trunk, at now: Instant) -> [TrunkTarget] {
    guard !trunk.serviceRoutes(at: now).isEmpty, !trunk.routePlan.rows.isEmpty else { return targets(trunk, at: now) }
    let routed = targets(trunk, trunk.routePlan, at: now)
    return routed.isEmpty ? targets(trunk, at: now) : routed
  }

  func targets(_ trunk: Trunk, at now: Instant) -> [TrunkTarget] { targets(trunk, trunk.plan, at: now) }

  private func targets(_ trunk: Trunk, _ plan: TargetPlan, at now: Instant) -> [TrunkTarget] {
    let servers = plan.draw(random)
    let good = servers.filter { (penalties[$0.address] ?? .zero) <= now }
    let bad = servers.filter { (penalties[$0.address] ?? .zero) > now }
    var out: [TrunkTarget] = []
    for server in (good + bad).prefix(Limits.targets) {
      guard let flow = network.flow(server.transport, server.address) else { continue }
      // `;transport=udp` is the operator's choice: never another.
      let large = server.transport == .udp && trunk.settings.server.transport == nil ? network.flow(.tcp, server.address) : nil
      out.append(TrunkTarget(flow, large: large))
    }
    return out
  }

  /// Whether calls should try the trunk: probes are answered and the breaker allows it.
  public func isUsable(_ name: String, at now: Instant) -> Bool {
    guard let trunk = trunks[name] else { return false }
    return isAnswering(name) && trunk.breaker.allows(at: now)
  }

  /// Registered, or without a configured registration.
  public func isRegistered(_ name: String) -> Bool {
    isOnDuty(name) ? trunks[name]?.registrar?.isRegistered ?? true : reports[name] != .notRegistered
  }

  func isAnswering(_ name: String) -> Bool {
    isOnDuty(name) ? trunks[name]?.prober?.isUp ?? true : reports[name] != .notAnswering
  }

  /// The troubles of the trunks that are this node's duty among several: the others use its report.
  public var troubles: [String: TrunkStatus.Trouble] {
    var out: [String: TrunkStatus.Trouble] = [:]
    for name in duties where trunks[name] != nil {
      if !isAnswering(name) { out[name] = .notAnswering } else if !isRegistered(name) { out[name] = .notRegistered }
    }
    return out
  }

  // MARK: reports of calls

  public mutating func callStarted(_ name: String, at now: Instant) { trunks[name]?.breaker.attempted(at: now) }

  /// A server failed a call, which continued at the next.
  public mutating func serverFailed(_ address: SocketAddress, retryAfter: Int?, at now: Instant) {
    if penalties.count >= Limits.penalties { penalties = penalties.filter { $0.value > now } }
    if penalties.count >= Limits.penalties, let first = penalties.min(by: { $0.value < $1.value }) { penalties[first.key] = nil }
    let wanted = retryAfter.map { Duration.seconds($0) } ?? Limits.usualPenalty
    penalties[address] = now + min(max(wanted, Limits.penalty.lowerBound), Limits.penalty.upperBound)
  }

  /// A call got any answer from the far side, or failed by the trunk's fault.
  public mutating func callFinished(_ name: String, byFault: Bool, at now: Instant, into output: inout Output) {
    let wasOpen = trunks[name]?.breaker.isOpen ?? false
    let flipped = byFault ? trunks[name]?.breaker.failed(at: now) : trunks[name]?.breaker.succeeded()
    guard flipped == true, byFault != wasOpen else { return }
    output.news.append(.breaker(trunk: name, isOpen: byFault))
  }

  /// A call ended before it showed whether the trunk works.
  public mutating func callUndecided(_ name: String, at now: Instant) { trunks[name]?.breaker.undecided(at: now) }
}
