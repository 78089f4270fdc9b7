import TrunklineBytes
import TrunklineSIPDialogs

/// REGISTER and OPTIONS: when they are due, and what their answers mean.
extension TrunkMachine {
  /// Registrars have yet to answer the removal of our registrations.
  public var isUnregistering: Bool { pendingRequests.values.contains { $0.purpose == .leaving || $0.left != nil } }

  /// A registration names the address that it was sent from: with another address the trunk registers at once. So does one that
  /// had no route before.
  mutating func networkChanged(at now: Instant) {
    names.retryFailed(at: now)
    for name in trunks.keys.sorted() {
      guard let trunk = trunks[name], trunk.isLocated, isOnDuty(name) else { continue }
      let known = trunk.registeredFlow
      guard let flow = known.map({ network.flow($0.transport, $0.remote) }) ?? targets(trunk, at: now).first?.flow,
        flow.local.ip != (known?.local.ip ?? trunk.askedFrom)
      else { continue }
      for server in trunk.plan.servers { penalties[server.address] = nil }
      if trunk.registrar?.due == nil { trunks[name]?.registrar?.abandon(at: now) }
      trunks[name]?.registrar?.registerNow(at: now)
      trunks[name]?.prober?.probeNow(at: now)
      // requests under way were sent from an address that was removed
      for (id, request) in pendingRequests where request.trunk == name && request.left == nil {
        switch request.purpose {
        case .registration: pendingRequests[id]?.purpose = .abandoned
        case .probe: pendingRequests[id] = nil
        case .removal(let contact):
          pendingRequests[id] = nil
          trunks[name]?.suspect(contact)
        case .leaving, .abandoned: break
        }
      }
    }
  }

  mutating func unregister(at now: Instant, _ output: inout Output) {
    // another node registers next, with the same contact
    if sharesDuties { return }
    for name in trunks.keys.sorted() {
      guard let trunk = trunks[name], let registrar = trunk.registrar else { continue }
      trunks[name]?.registrar = nil
      guard registrar.isRegistered else { continue }
      // a refresh that is under way has used the next number
      restore(name, trunk, sequence: registrar.sequence &+ (registrar.due == nil ? 2 : 1), at: now, &output)
    }
  }

  /// Removes a registration that the configuration no longer has; one that is under way, once its answer has arrived.
  mutating func leave(_ name: String, _ old: Trunk, at now: Instant, _ output: inout Output) {
    guard let registrar = old.registrar else { return }
    let underWay = pendingRequests.first { $0.value.trunk == name && $0.value.purpose == .registration && $0.value.left == nil }
    if let id = underWay?.key {
      pendingRequests[id]?.left = old
      return
    }
    if registrar.isRegistered { restore(name, old, sequence: registrar.sequence &+ 1, at: now, &output) }
  }

  /// Sends `Expires: 0` to the server that it registered at (RFC 3261 §10.2.2).
  private mutating func restore(_ name: String, _ trunk: Trunk, sequence: UInt32, at now: Instant, _ output: inout Output) {
    guard let registrar = trunk.registrar, let flow = trunk.registeredFlow ?? targets(trunk, at: now).first?.flow else { return }
    ask(
      name, for: .leaving, settings: trunk.settings, registrar: registrar, target: TrunkTarget(flow), sequence: sequence,
      expires: 0, &output)
  }

  private mutating func ask(
    _ name: String, for purpose: RequestPurpose, settings: TrunkSettings, registrar: Registrar, target: TrunkTarget,
    sequence: UInt32, expires: Int?, _ output: inout Output
  ) {
    lastRequest += 1
    let id = RequestID(lastRequest)
    pendingRequests[id] = PendingRequest(trunk: name, purpose: purpose, flow: target.flow)
    let own = "sip:\(registrar.settings.user)@\(settings.domain)"
    let peer = settings.peer(at: target)
    var request = OutboundRequest(
      trunk: peer, method: .register, uri: "sip:\(settings.domain)\(peer.uriParameter(on: target.flow))", from: own, to: own,
      callID: registrar.callID, sequence: sequence, contactUser: registrar.settings.contactUser, expires: expires)
    if case .removal(let contact) = purpose { request.removedContact = contact }
    output.requests.append((id, request))
  }

  mutating func sendDue(at now: Instant, _ output: inout Output) {
    for name in trunks.keys.sorted() {
      if let pending = trunks[name]?.prober?.pending, pending.until <= now {
        answered(pending.id, RequestOutcome(code: 408), at: now, &output)
      }
      keepAlive(name, at: now, &output)
      guard let trunk = trunks[name], trunk.isLocated, isOnDuty(name) else { continue }
      let registers = trunk.registrar?.due.map { $0 <= now } ?? false
      let probes = trunk.prober?.due.map { $0 <= now } ?? false
      guard registers || probes else { continue }
      let targets = targets(trunk, at: now)
      if targets.isEmpty || trunk.isUnreachedReported { checkReach(name, &output) }
      guard !targets.isEmpty else {
        // No listener reaches any of its servers. That may change with the network: it is checked again later.
        trunks[name]?.askedFrom = nil
        if registers { trunks[name]?.registrar?.postpone(until: now + Limits.unreachablePause) }
        if probes { trunks[name]?.prober?.postpone(until: now + Limits.unreachablePause) }
        continue
      }
      if registers { ask(name, for: .registration, targets: targets, at: now, &output) }
      if probes { ask(name, for: .probe, targets: callTargets(trunk, at: now), at: now, &output) }
    }
  }

  /// A registration over UDP alone keeps no path open: the next REGISTER may be minutes away.
  private mutating func keepAlive(_ name: String, at now: Instant, _ output: inout Output) {
    guard let trunk = trunks[name], let flow = trunk.registeredFlow, flow.transport == .udp, isOnDuty(name),
      let registrar = trunk.registrar, registrar.isBound(at: now), registrar.settings.keepAlive > .zero
    else {
      trunks[name]?.keepAliveDue = nil
      return
    }
    guard let due = trunk.keepAliveDue else {
      trunks[name]?.keepAliveDue = now + registrar.settings.keepAlive
      return
    }
    guard due <= now else { return }
    output.keepAlives.append(flow)
    trunks[name]?.keepAliveDue = now + registrar.settings.keepAlive
  }

  private mutating func ask(
    _ name: String, for purpose: RequestPurpose, targets: [TrunkTarget], at now: Instant, _ output: inout Output
  ) {
    guard let trunk = trunks[name], let target = targets.first else { return }
    trunks[name]?.askedFrom = target.flow.local.ip
    if purpose == .registration, let registrar = trunk.registrar {
      trunks[name]?.registrar?.sent()
      trunks[name]?.untriedTargets = Array(targets.dropFirst())
      return ask(
        name, for: purpose, settings: trunk.settings, registrar: registrar, target: target, sequence: registrar.sequence &+ 1,
        expires: registrar.wanted, &output)
    }
    let settings = trunk.settings
    var peer = settings.peer(at: target)
    peer.serviceRoutes = trunk.serviceRoutes(at: now)
    let server = "sip:\(settings.domain)\(peer.uriParameter(on: target.flow))"
    lastRequest += 1
    let id = RequestID(lastRequest)
    pendingRequests[id] = PendingRequest(trunk: name, purpose: purpose, flow: target.flow)
    trunks[name]?.prober?.sent(id, at: now)
    output.requests.append(
      (
        id,
        OutboundRequest(
          trunk: peer, method: .options, uri: server, to: server,
          callID: random.text(24, alphabet: Self.letters))
      ))
  }

  mutating func answered(_ id: RequestID, _ outcome: RequestOutcome, at now: Instant, _ output: inout Output) {
    guard let request = pendingRequests.removeValue(forKey: id) else { return }
    if let left = request.left { return leftAnswered(request, of: left, outcome, at: now, &output) }
    if case .removal(let contact) = request.purpose {
      // a refused removal says nothing about the trunk
      guard !(200..<300).contains(outcome.code) else { return }
      return output.news.append(.formerContactKept(trunk: request.trunk, contact: contact, code: outcome.code))
    }
    if request.purpose == .abandoned { return abandonedAnswered(request, outcome, at: now, &output) }
    guard let trunk = trunks[request.trunk] else { return }
    let isFault = outcome.byTransport || outcome.code == 408 || outcome.code == 503
    if isFault { serverFailed(request.flow.remote, retryAfter: outcome.retryAfter, at: now) }
    if isFault || request.purpose == .registration, !(200..<300).contains(outcome.code) {
      let method = request.purpose == .probe ? "OPTIONS" : "REGISTER"
      if let failure = outcome.failure {
        requestUnanswered(request.trunk, method: method, failure, at: now)
      } else {
        trunks[request.trunk]?.lastRefusal = RefusedRequest(method: method, code: outcome.code, at: now)
      }
    }
    switch request.purpose {
    case .leaving, .removal, .abandoned: break
    case .probe:
      if !isFault { penalties[request.flow.remote] = nil }
      if trunks[request.trunk]?.prober?.answered(alive: !isFault, at: now) == true {
        output.news.append(.probed(trunk: request.trunk, isUp: !isFault))
      }
    case .registration:
      if !outcome.isResponse { trunks[request.trunk]?.suspect(outcome.contact) }
      if isFault, !trunk.untriedTargets.isEmpty, outcome.retryAfter == nil || outcome.code == 503 {
        trunks[request.trunk]?.registrar?.sequence = outcome.sequence
        return ask(request.trunk, for: .registration, targets: trunk.untriedTargets, at: now, &output)
      }
      trunks[request.trunk]?.registeredFlow = (200..<300).contains(outcome.code) ? request.flow : nil
      if (200..<300).contains(outcome.code) { replaceServiceRoutes(outcome.serviceRoutes, request.trunk, &output) }
      let news = trunks[request.trunk]?.registrar?.answered(outcome, request.trunk, random: random, at: now)
      if let news = news ?? nil { output.news.append(news) }
      if let contact = outcome.contact { bound(contact, by: request, before: trunk, at: now, &output) }
    }
  }

  /// A Service-Route that cannot be followed counts as none: the proxy that REGISTER went to may know the way.
  private mutating func replaceServiceRoutes(_ routes: [String]?, _ name: String, _ output: inout Output) {
    trunks[name]?.serviceRoutes = routes ?? []
    if routes == nil, trunks[name]?.isServiceRouteRefused == false { output.news.append(.serviceRouteRefused(trunk: name)) }
    trunks[name]?.isServiceRouteRefused = routes == nil
  }

  /// The registrar has a new binding. An earlier one under another Contact is suspect from now on.
  private mutating func bound(
    _ contact: String, by request: PendingRequest, before: Trunk, at now: Instant, _ output: inout Output
  ) {
    guard request.purpose == .registration, let registrar = trunks[request.trunk]?.registrar, registrar.isGranted(at: now) else {
      return
    }
    trunks[request.trunk]?.boundContact = contact
    if before.registrar?.isBound(at: now) == true { trunks[request.trunk]?.suspect(before.boundContact) }
    removeSuspect(request.trunk, before.settings, &output)
  }

  /// A REGISTER from an address that was removed was answered, or given up: it counts as a binding unless it was refused.
  private mutating func abandonedAnswered(
    _ request: PendingRequest, _ outcome: RequestOutcome, at now: Instant, _ output: inout Output
  ) {
    guard let trunk = trunks[request.trunk], !outcome.isResponse || (200..<300).contains(outcome.code) else { return }
    trunks[request.trunk]?.suspect(outcome.contact)
    if trunk.registrar?.isGranted(at: now) == true { removeSuspect(request.trunk, trunk.settings, &output) }
  }

  /// Removes each Contact that may be bound beside ours, once, in a request of its own: until such a binding expires the
  /// registrar forks calls to an address that may be another host's.
  private mutating func removeSuspect(_ name: String, _ settings: TrunkSettings, _ output: inout Output) {
    guard let trunk = trunks[name], let flow = trunk.registeredFlow else { return }
    trunks[name]?.suspectContacts = []
    for contact in trunk.suspectContacts where contact != trunk.boundContact {
      // the removal has CSeq numbers of its own, also for a challenge: those of the next refresh are above all that it may use
      trunks[name]?.registrar?.sequence &+= 16
      guard let registrar = trunks[name]?.registrar else { return }
      ask(
        name, for: .removal(contact: contact), settings: settings, registrar: registrar, target: TrunkTarget(flow),
        sequence: registrar.sequence &- 15,
        expires: nil, &output)
    }
  }

  /// A REGISTER of a removed trunk was answered: its binding, or the one before it, is removed.
  private mutating func leftAnswered(
    _ request: PendingRequest, of left: Trunk, _ outcome: RequestOutcome, at now: Instant, _ output: inout Output
  ) {
    var left = left
    let isBound = (200..<300).contains(outcome.code)
    if isBound { left.registeredFlow = request.flow }
    guard isBound || left.registrar?.isRegistered == true else { return }
    restore(request.trunk, left, sequence: outcome.sequence &+ 1, at: now, &output)
  }
}

extension TrunkMachine.Trunk {
  func serviceRoutes(at now: Instant) -> [String] { registrar?.isBound(at: now) == true ? serviceRoutes : [] }

  /// A registrar may have a binding of ours under this Contact.
  mutating func suspect(_ contact: String?) {
    guard let contact, !suspectContacts.contains(contact) else { return }
    if suspectContacts.count == Limits.suspectContacts { suspectContacts.removeFirst() }
    suspectContacts.append(contact)
  }
}
