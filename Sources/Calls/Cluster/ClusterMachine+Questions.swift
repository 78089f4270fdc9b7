import AppSessions
import CallFlow
import Devices
import TrunklineBytes

// Questions of a call or a hello to the shared store: several requests at once, one answer, a time limit.

extension ClusterMachine {
  mutating func locate(_ wanted: LocateQuestion, _ step: inout Step) {
    var question = newQuestion(.locate(wanted))
    enter(wanted.call, wanted.users, .incoming, &question)
    // A call that is likely to be redirected is not counted here first: this count could exceed the limit at the other node.
    let isLikelyElsewhere =
      wanted.mayRedirect && state == .up
      && !wanted.users.contains { wanted.connectedHere.contains($0) || devicesOfUser[$0] != nil }
    if let most = wanted.mostOfTrunk, !isLikelyElsewhere { count(wanted.call, wanted.trunk, most, &question, &step) }
    requestLocations(wanted.call, wanted.users, .incoming, &question, &step)
    pose(question, &step)
  }

  mutating func admit(_ call: CallID, _ trunk: String, _ most: Int, _ step: inout Step) {
    var question = newQuestion(.admit(call, trunk: trunk, most: most))
    // a call that arrived over a trunk and leaves over it counts twice
    if calls[call] == nil { calls[call] = OwnCall(direction: .outgoing) }
    count(call, trunk, &question)
    ask(.admit(trunk: trunk, most: most, at: incarnation), .trunk(trunk), call: call, of: &question, &step)
    pose(question, &step)
  }

  mutating func tombstone(_ call: CallID, _ step: inout Step) {
    var question = newQuestion(.tombstone(call))
    ask(.tombstone(of: call), .tombstone, call: nil, of: &question, &step)
    pose(question, &step)
  }

  // MARK: requests of a question

  /// Adds the call to these users, and notes in the question which of them are new.
  mutating func enter(_ call: CallID, _ users: [String], _ direction: CallDirection, _ question: inout Question) {
    var own = calls[call] ?? OwnCall(direction: direction)
    question.addedUsers += enter(call, users, &own)
    calls[call] = own
  }

  /// Counts the call for the trunk, unless it is counted already.
  mutating func count(_ call: CallID, _ trunk: String, _ most: Int, _ question: inout Question, _ step: inout Step) {
    if calls[call] == nil { calls[call] = OwnCall(direction: .outgoing) }
    guard calls[call]?.trunks.contains(trunk) == false else { return }
    count(call, trunk, &question)
    ask(.admit(trunk: trunk, most: most, at: incarnation), .trunk(trunk), call: call, of: &question, &step)
  }

  mutating func count(_ call: CallID, _ trunk: String, _ question: inout Question) {
    limitedTrunks.insert(trunk)
    calls[call]?.trunks.append(trunk)
    callsOfTrunk[trunk, default: 0] += 1
    question.addedTrunk = trunk
    question.sharesBefore = sharesSent[trunk] ?? 0
  }

  mutating func requestLocations(
    _ call: CallID, _ users: [String], _ direction: CallDirection, _ question: inout Question, _ step: inout Step
  ) {
    for user in users.prefix(Limits.usersPerCall) {
      let isNew = question.addedUsers.contains(user)
      let location = isNew ? CallLocation(call, at: incarnation, direction) : nil
      ask(.locate(user: user, entering: location), .user(user), call: call, of: &question, &step)
    }
  }

  @discardableResult mutating func ask(
    _ request: SharedStoreRequest, _ part: Part, call: CallID?, of question: inout Question, _ step: inout Step
  ) -> Bool {
    guard send(request, .part(question.number, call, part), &step) else { return false }
    question.waiting.insert(part)
    return true
  }

  /// Waits for the parts of the question, or answers it. The time limit starts when it is posed first.
  mutating func pose(_ question: Question, _ step: inout Step) {
    guard !question.waiting.isEmpty else {
      timers.cancel(.question(question.number))
      return answer(question, &step)
    }
    questions[question.number] = question
    timers.schedule(.question(question.number), notLaterThan: step.now + settings.wait)
  }

  mutating func newQuestion(_ subject: Question.Subject) -> Question {
    lastQuestion += 1
    return Question(subject, number: lastQuestion)
  }

  // MARK: replies

  mutating func partReplied(
    _ id: UInt64, _ call: CallID?, _ part: Part, _ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step
  ) {
    // removed from the table, so that it is changed without a copy
    var question = questions.removeValue(forKey: id)
    let isAnswered = question == nil
    if case .success(let reply) = result {
      switch (part, reply) {
      case (.user(let user), .located(let located)) where located.user == user:
        statistics.valuesDropped += UInt64(max(0, located.dropped))
        remember(located, &step)
        question?.located[user] = located
        if !isAnswered { meetUnknown(in: located, &step) }
      case (.enter(let key, let session), .entered(let before, let locations, let device, let since, let isOlder, let dropped)):
        statistics.valuesDropped += UInt64(max(0, dropped))
        question?.registration = device
        entered(
          key, session, before: before, calls: locations, device: device, since: since, isOlder: isOlder, isAnswered: isAnswered,
          &step)
      case (.start, .granted(let isGranted, let holder)):
        let isOurs = isGranted || holder == incarnation
        question?.verdicts[part] = isOurs
        question?.holder = holder
      case (.trunk(let trunk), .granted(let isGranted, _)):
        question?.verdicts[part] = isGranted
        if isAnswered, !isGranted { write(.share(trunk), &step) }
      case (.hour, .granted(let isGranted, _)): question?.verdicts[part] = isGranted
      case (.tombstone, .tombstone(let found, let dropped)):
        statistics.valuesDropped += UInt64(max(0, dropped))
        question?.tombstone = found
      default: break
      }
    } else if case .enter(let key, _) = part {
      markUnwritten(.device(key), &step)
    } else if isAnswered, case .user(let user) = part, let call, calls[call]?.users.contains(user) == true {
      markUnwritten(.location(user, call), &step)
    }
    if let question { partDone(question, part, &step) }
  }

  /// The leases were read, or the reading failed.
  mutating func leasesRead(_ step: inout Step) {
    let waiters = leaseWaiters
    leaseWaiters = []
    for id in waiters { if let question = questions.removeValue(forKey: id) { partDone(question, .leases, &step) } }
  }

  /// - Parameter question: removed from `questions`; stored again if it waits for more parts.
  private mutating func partDone(_ question: Question, _ part: Part, _ step: inout Step) {
    var question = question
    let id = question.number
    question.waiting.remove(part)
    guard question.waiting.isEmpty else { return questions[id] = question }
    if !question.hasAskedLeases, hasUnknown(question, step.now),
      send(.renew(lease, for: settings.lease), .renewal, &step)
    {
      renewalSent = step.now
      question.hasAskedLeases = true
      question.waiting.insert(.leases)
      questions[id] = question
      leaseWaiters.append(id)
      return
    }
    if case .claim(let claim) = question.subject, !question.hasStart, question.verdicts[.start] != false {
      return continueClaim(claim, question, &step)
    }
    answer(question, &step)
    // a question that continues keeps its deadline
    if questions[id] == nil { timers.cancel(.question(id)) }
  }

  private mutating func meetUnknown(in located: LocatedUser, _ step: inout Step) {
    for other in strangers(in: located, step.now) where unknown[other] == nil && unknown.count < Limits.departed {
      unknown[other] = step.now
    }
  }

  /// An incarnation that no renewal has shown is new or long dead: the leases are read again, within the same wait.
  private func hasUnknown(_ question: Question, _ now: Instant) -> Bool {
    isViewFresh(now) && question.located.values.contains { !strangers(in: $0, now).isEmpty }
  }

  /// Incarnations of unknown liveness: usually none.
  private func strangers(in located: LocatedUser, _ now: Instant) -> [Incarnation] {
    func isStranger(_ other: Incarnation) -> Bool { if case .unknown = liveness(other, now) { true } else { false } }
    var out: [Incarnation] = []
    for location in located.whereabouts.prefix(Limits.whereaboutsPerUser) where isStranger(location.incarnation) {
      out.append(location.incarnation)
    }
    for location in located.calls.prefix(Limits.callsPerUser) where isStranger(location.incarnation) {
      out.append(location.incarnation)
    }
    return out
  }

  // MARK: answers

  mutating func answer(_ question: Question, _ step: inout Step) {
    switch question.subject {
    case .locate(let wanted): answer(wanted, question, &step)
    case .claim(let claim): answer(claim, question, &step)
    case .tombstone(let call): step.actions.append(.tombstone(call, question.tombstone))
    case .admit(let call, let trunk, let most):
      let isAdmitted = admits(trunk, most, question)
      if !isAdmitted {
        statistics.trunkRefusals += 1
        undo(question, call, &step)
      } else {
        markUnanswered(question, call, &step)
      }
      step.actions.append(.admitted(call, trunk: trunk, isAdmitted))
    case .sessionState(let request, let key):
      let known = question.located[key.user]?.devices.first { $0.key == key } ?? memory[key.user]?.devices.first { $0.key == key }
      step.actions.append(.sessionState(request, key, registration: known, isRevoked: isRevoked(key, known)))
    case .welcome(let key, let session):
      if let device = question.registration {
        step.actions.append(.welcome(key, session, registration: device, isRevoked: isRevoked(key, device)))
      } else {
        if !question.waiting.isEmpty { statistics.blindWelcomes += 1 }
        let known = memory[key.user]?.devices.first { $0.key == key }
        step.actions.append(.welcome(key, session, registration: known, isRevoked: isRevoked(key, known)))
      }
    }
  }

  private mutating func answer(_ wanted: LocateQuestion, _ question: Question, _ step: inout Step) {
    var question = question
    let isCounted = wanted.mostOfTrunk == nil || calls[wanted.call]?.trunks.contains(wanted.trunk) != false
    // No answer in time: count by our share.
    if !isCounted, !question.waiting.isEmpty { count(wanted.call, wanted.trunk, &question) }
    let users = Array(wanted.users.prefix(Limits.usersPerCall))
    let isHeard = users.allSatisfy { question.located[$0] != nil }
    if let reason = refusal(
      wanted.call, users: users, trunk: wanted.mostOfTrunk.map { (wanted.trunk, $0) }, most: wanted.mostOfUser, question, &step)
    {
      statistics.locates[.refused, default: 0] += 1
      undo(question, wanted.call, &step)
      return step.actions.append(.located(wanted.call, .refused(reason)))
    }
    let remote = question.remote ?? remoteDevices(users, question, &step)
    if question.remote == nil, wanted.mayRedirect, state == .up, isHeard,
      let node = steering(wanted, users, remote, question, step.now)
    {
      statistics.locates[.steered, default: 0] += 1
      undo(question, wanted.call, &step)
      return step.actions.append(.located(wanted.call, .redirect(to: node.sip)))
    }
    if let most = wanted.mostOfTrunk, !isCounted, question.waiting.isEmpty {
      // The call stays here, and counts from now on.
      question.remote = remote
      count(wanted.call, wanted.trunk, most, &question, &step)
      return pose(question, &step)
    }
    markUnanswered(question, wanted.call, &step)
    statistics.locates[!isHeard ? .unknown : remote.isEmpty ? .here : .elsewhere, default: 0] += 1
    step.actions.append(
      .located(
        wanted.call,
        .here(remoteDevices: remote.map(RemoteDevice.init), registry: registries(users, question), isHeard: isHeard)))
  }

  private func registries(_ users: [String], _ question: Question) -> [String: [Device]] {
    var registry: [String: [Device]] = [:]
    for user in users { registry[user] = question.located[user]?.devices ?? remembered(user) }
    return registry
  }

  // MARK: limits

  mutating func refusal(
    _ call: CallID, users: [String], trunk: (name: String, most: Int)?, most: Int, mostOutgoing: Int? = nil, _ question: Question,
    _ step: inout Step
  ) -> Refusal.Reason? {
    if let trunk, !admits(trunk.name, trunk.most, question) {
      statistics.trunkRefusals += 1
      return .trunkLimit
    }
    for user in users {
      let others = othersBefore(call, of: user, question, &step)
      let outgoing = others.count { $0 == .outgoing }
      if others.count >= most || mostOutgoing.map({ outgoing >= $0 }) ?? false {
        statistics.userRefusals += 1
        return .userLimit
      }
    }
    return nil
  }

  /// The shared store decides; without its answer this node's share does.
  private func admits(_ trunk: String, _ most: Int, _ question: Question) -> Bool {
    guard question.addedTrunk == trunk else { return true }
    if let verdict = question.verdicts[.trunk(trunk)] { return verdict }
    // The larger of an even share of the known nodes and our count when the shared store was lost: all nodes together admit
    // less than twice the limit.
    let even = (most + knownNodes - 1) / knownNodes
    return callsOfTrunk[trunk, default: 0] <= max(even, isConnected ? 0 : callsAtLoss[trunk] ?? 0)
  }

  /// The user's other calls that count: those that were entered before this one, at living incarnations.
  private mutating func othersBefore(
    _ call: CallID, of user: String, _ question: Question, _ step: inout Step
  ) -> [CallDirection] {
    guard let located = question.located[user] else {
      return (callsOfUser[user] ?? []).filter { $0 != call }.compactMap { calls[$0]?.direction }
    }
    let rank = located.calls.first { $0.call == call && $0.incarnation == incarnation }?.rank ?? .max
    return located.calls.prefix(Limits.callsPerUser).filter { $0.call != call && counts($0, of: user, &step) && $0.rank < rank }
      .map(\.direction)
  }

  /// False for a call that its node does not have, as far as is known. Removes the locations that no other node will remove: our
  /// own, and those of an incarnation that no reaper handles any longer.
  private mutating func counts(_ location: CallLocation, of user: String, _ step: inout Step) -> Bool {
    switch liveness(location.incarnation, step.now) {
    case .ours where calls[location.call] != nil, .living: return true
    case .ours: write(.location(user, location.call), &step)
    case .dead where isOver(location.incarnation): write(.location(user, location.call), &step)
    case .dead, .unknown: break
    }
    statistics.hintsDropped += 1
    return false
  }

  /// Dead, and no reaper will handle it: the node that reads a hint of it removes the hint.
  private func isOver(_ other: Incarnation) -> Bool {
    departed[other] != nil || other.node == incarnation.node && suspects[other] == nil
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
        case .living: if devices[location.device] == nil { found.append(location) }
        case .ours where devices[location.device] != nil: break
        case .ours:
          statistics.hintsDropped += 1
          write(.left(location.device, location.session), &step)
        case .dead where hasDiedLately(location.incarnation, step.now):
          guard devices[location.device] == nil else { break }
          var location = location
          location.state = .bg
          found.append(location)
        case .dead, .unknown:
          statistics.hintsDropped += 1
          if isOver(location.incarnation) { write(.left(location.device, location.session), &step) }
        }
      }
    }
    return found.sorted { ($0.device.user, $0.device.device) < ($1.device.user, $1.device.device) }
  }

  /// Rule (2): the node of the users' live calls, or else the node with most of their connected devices. A node that refuses
  /// calls is not eligible.
  private func steering(
    _ wanted: LocateQuestion, _ users: [String], _ remote: [Whereabouts], _ question: Question, _ now: Instant
  ) -> NodeLease? {
    func accepting(_ other: Incarnation) -> NodeLease? {
      guard let lease = peers[other], other.node != incarnation.node, !lease.isDraining, !lease.refuses else { return nil }
      return lease.sip == self.lease.sip ? nil : lease
    }
    let live = users.flatMap { question.located[$0]?.calls ?? [] }.filter { $0.call != wanted.call }
      .sorted { ($0.rank, $0.incarnation) < ($1.rank, $1.incarnation) }
    let hasCallHere = live.contains { $0.incarnation == incarnation && calls[$0.call] != nil }
    if hasCallHere { return nil }
    if let first = live.first(where: { if case .living = liveness($0.incarnation, now) { true } else { false } }) {
      return accepting(first.incarnation)
    }
    guard !users.contains(where: { wanted.connectedHere.contains($0) || devicesOfUser[$0] != nil }) else { return nil }
    var counts: [Incarnation: Int] = [:]
    for location in remote { counts[location.incarnation, default: 0] += 1 }
    let best = counts.filter { accepting($0.key) != nil }.max { ($0.value, $1.key) < ($1.value, $0.key) }
    return best.flatMap { accepting($0.key) }
  }
}
