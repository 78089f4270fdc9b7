import AppSessions
import CallModel
import Devices
import TrunklineAppProtocol
import TrunklineBytes

// The answers of questions: whether a call is admitted, where it is handled, and which devices elsewhere it may wake.

extension ClusterMachine {
  // MARK: answers

  mutating func answer(_ question: Question, _ step: inout Step) {
    switch question.subject {
    case .locate(let wanted): answer(wanted, question, &step)
    case .claim(let claim): answer(claim, question, &step)
    case .tombstone(let call): step.actions.append(.tombstone(call, question.tombstone))
    case .admit(let call, let trunk, let most):
      let isAdmitted = admits(trunk, most: most, question, isConnected: step.requests.isConnected)
      if !isAdmitted {
        step.statistics.trunkRefusals += 1
        undo(question, call, &step)
      } else {
        markUnanswered(question, call, &step)
      }
      step.actions.append(.admitted(call, trunk: trunk, isAdmitted))
    case .sessionState(let request, let key):
      let known = question.located[key.user]?.devices.first { $0.key == key } ?? memory.device(key)
      step.actions.append(.sessionState(request, key, registration: known, isRevoked: memory.isRevoked(key, known)))
    case .welcome(let key, let session):
      if let device = question.registration {
        step.actions.append(.welcome(key, session, registration: device, isRevoked: memory.isRevoked(key, device)))
      } else {
        if !question.waiting.isEmpty { step.statistics.blindWelcomes += 1 }
        let known = memory.device(key)
        step.actions.append(.welcome(key, session, registration: known, isRevoked: memory.isRevoked(key, known)))
      }
    }
  }

  private mutating func answer(_ wanted: LocateQuestion, _ question: Question, _ step: inout Step) {
    var question = question
    let isCounted = wanted.mostOfTrunk == nil || calls.trunks(of: wanted.call)?.contains(wanted.trunk) != false
    // No answer in time: count by our share.
    if !isCounted, !question.waiting.isEmpty { count(wanted.call, wanted.trunk, &question) }
    let users = Array(wanted.users.prefix(Limits.usersPerCall))
    let isHeard = users.allSatisfy { question.located[$0] != nil }
    if let reason = refusal(
      wanted.call, users: users, trunk: wanted.mostOfTrunk.map { (wanted.trunk, $0) }, most: wanted.mostOfUser, question, &step)
    {
      step.statistics.locates[.refused, default: 0] += 1
      undo(question, wanted.call, &step)
      return step.actions.append(.located(wanted.call, .refused(reason)))
    }
    let remote = question.remote ?? remoteDevices(users, question, &step)
    if question.remote == nil, wanted.mayRedirect, state == .up, isHeard,
      let node = steering(wanted, of: users, remote: remote, question, step.now)
    {
      step.statistics.locates[.steered, default: 0] += 1
      undo(question, wanted.call, &step)
      return step.actions.append(.located(wanted.call, .redirect(to: node.sip)))
    }
    if let most = wanted.mostOfTrunk, !isCounted, question.waiting.isEmpty {
      // The call stays here, and counts from now on.
      question.remote = remote
      count(wanted.call, on: wanted.trunk, most: most, &question, &step)
      return pose(question, &step)
    }
    markUnanswered(question, wanted.call, &step)
    step.statistics.locates[!isHeard ? .unknown : remote.isEmpty ? .here : .elsewhere, default: 0] += 1
    step.actions.append(
      .located(
        wanted.call,
        .here(remoteDevices: remote.map(RemoteDevice.init), registry: registries(users, question), isHeard: isHeard)))
  }

  private func registries(_ users: [String], _ question: Question) -> [String: [Device]] {
    var registry: [String: [Device]] = [:]
    for user in users { registry[user] = question.located[user]?.devices ?? memory.devices(of: user) }
    return registry
  }

  // MARK: limits

  mutating func refusal(
    _ call: CallID, users: [String], trunk: (name: String, most: Int)?, most: Int, mostOutgoing: Int? = nil, _ question: Question,
    _ step: inout Step
  ) -> Refusal.Reason? {
    if let trunk, !admits(trunk.name, most: trunk.most, question, isConnected: step.requests.isConnected) {
      step.statistics.trunkRefusals += 1
      return .trunkLimit
    }
    for user in users {
      let others = othersBefore(call, of: user, question, &step)
      let outgoing = others.count { $0 == .outgoing }
      if others.count >= most || mostOutgoing.map({ outgoing >= $0 }) ?? false {
        step.statistics.userRefusals += 1
        return .userLimit
      }
    }
    return nil
  }

  /// The shared store decides; without its answer this node's share does.
  private func admits(_ trunk: String, most: Int, _ question: Question, isConnected: Bool) -> Bool {
    guard question.addedTrunk == trunk else { return true }
    if let verdict = question.verdicts[.trunk(trunk)] { return verdict }
    // The larger of an even share of the known nodes and our count when the shared store was lost: all nodes together admit
    // less than twice the limit.
    let even = (most + knownNodes - 1) / knownNodes
    return calls.count(of: trunk) <= max(even, isConnected ? 0 : calls.countAtLoss(of: trunk))
  }

  /// The user's other calls that count: those that were entered before this one, at living incarnations.
  private mutating func othersBefore(
    _ call: CallID, of user: String, _ question: Question, _ step: inout Step
  ) -> [CallDirection] {
    guard let located = question.located[user] else {
      return calls.calls(of: user).filter { $0 != call }.compactMap { calls.direction(of: $0) }
    }
    let rank = located.calls.first { $0.call == call && $0.incarnation == incarnation }?.rank ?? .max
    return located.calls.prefix(Limits.callsPerUser).filter { $0.call != call && counts($0, of: user, &step) && $0.rank < rank }
      .map(\.direction)
  }

  /// False for a call that its node does not have, as far as is known. Removes the locations that no other node will remove: our
  /// own, and those of an incarnation that no reaper handles any longer.
  private mutating func counts(_ location: CallLocation, of user: String, _ step: inout Step) -> Bool {
    switch liveness(location.incarnation, step.now) {
    case .ours where calls.has(location.call), .living: return true
    case .ours: write(.location(user, location.call), &step)
    case .dead where isOver(location.incarnation): write(.location(user, location.call), &step)
    case .dead, .unknown: break
    }
    step.statistics.hintsDropped += 1
    return false
  }

  /// Dead, and no reaper will handle it: the node that reads a hint of it removes the hint.
  private func isOver(_ other: Incarnation) -> Bool {
    suspects.isDeparted(other) || other.node == incarnation.node && !suspects.isUnderSuspicion(other)
  }

  // MARK: steering

  /// The remote devices of these users, by hints that count. A device whose node has just died reconnects within seconds: it
  /// counts as in the background, so the call pushes to it at once and waits for it.
  private mutating func remoteDevices(_ users: [String], _ question: Question, _ step: inout Step) -> [Whereabouts] {
    var found: [Whereabouts] = []
    for user in users {
      for location in question.located[user]?.whereabouts.prefix(Limits.whereaboutsPerUser) ?? []
      where location.device.user == user {
        switch liveness(location.incarnation, step.now) {
        case .living: if !devices.has(location.device) { found.append(location) }
        case .ours where devices.has(location.device): break
        case .ours:
          step.statistics.hintsDropped += 1
          write(.left(location.device, location.session), &step)
        case .dead where suspects.hasDiedLately(location.incarnation, step.now):
          guard !devices.has(location.device) else { break }
          var location = location
          location.state = .bg
          found.append(location)
        case .dead, .unknown:
          step.statistics.hintsDropped += 1
          if isOver(location.incarnation) { write(.left(location.device, location.session), &step) }
        }
      }
    }
    return found.sorted { ($0.device.user, $0.device.device) < ($1.device.user, $1.device.device) }
  }

  /// Rule (2): the node of the users' live calls, or else the node with most of their connected devices. A node that refuses
  /// calls is not eligible.
  private func steering(
    _ wanted: LocateQuestion, of users: [String], remote: [Whereabouts], _ question: Question, _ now: Instant
  ) -> NodeLease? {
    func accepting(_ other: Incarnation) -> NodeLease? {
      guard let lease = peers[other], other.node != incarnation.node, !lease.isDraining, !lease.refuses else { return nil }
      return lease.sip == self.lease.published.sip ? nil : lease
    }
    let live = users.flatMap { question.located[$0]?.calls ?? [] }.filter { $0.call != wanted.call }
      .sorted { ($0.rank, $0.incarnation) < ($1.rank, $1.incarnation) }
    let hasCallHere = live.contains { $0.incarnation == incarnation && calls.has($0.call) }
    if hasCallHere { return nil }
    if let first = live.first(where: { if case .living = liveness($0.incarnation, now) { true } else { false } }) {
      return accepting(first.incarnation)
    }
    guard !users.contains(where: { wanted.connectedHere.contains($0) || devices.hasAny(of: $0) }) else { return nil }
    var counts: [Incarnation: Int] = [:]
    for location in remote { counts[location.incarnation, default: 0] += 1 }
    let best = counts.filter { accepting($0.key) != nil }.max { ($0.value, $1.key) < ($1.value, $0.key) }
    return best.flatMap { accepting($0.key) }
  }
}
