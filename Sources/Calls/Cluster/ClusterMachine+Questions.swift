import AppSessions
import CallModel
import Devices
import TrunklineBytes

// Questions of a call or a hello to the shared store: several requests at once, one answer, a time limit.

extension ClusterMachine {
  mutating func locate(_ wanted: LocateQuestion, _ step: inout Step) {
    var question = questions.new(.locate(wanted))
    enter(wanted.call, wanted.users, .incoming, &question)
    // A call that is likely to be redirected is not counted here first: this count could exceed the limit at the other node.
    let isLikelyElsewhere =
      wanted.mayRedirect && state == .up
      && !wanted.users.contains { wanted.connectedHere.contains($0) || devices.hasAny(of: $0) }
    if let most = wanted.mostOfTrunk, !isLikelyElsewhere { count(wanted.call, on: wanted.trunk, most: most, &question, &step) }
    requestLocations(wanted.call, of: wanted.users, direction: .incoming, &question, &step)
    pose(question, &step)
  }

  mutating func admit(_ call: CallID, to trunk: String, most: Int, _ step: inout Step) {
    var question = questions.new(.admit(call, trunk: trunk, most: most))
    // a call that arrived over a trunk and leaves over it counts twice
    count(call, trunk, &question)
    ask(.admit(trunk: trunk, most: most, at: incarnation), .trunk(trunk), call: call, of: &question, &step)
    pose(question, &step)
  }

  mutating func tombstone(_ call: CallID, _ step: inout Step) {
    var question = questions.new(.tombstone(call))
    ask(.tombstone(of: call), .tombstone, call: nil, of: &question, &step)
    pose(question, &step)
  }

  // MARK: requests of a question

  /// Adds the call to these users, and notes in the question which of them are new.
  mutating func enter(_ call: CallID, _ users: [String], _ direction: CallDirection, _ question: inout Question) {
    question.addedUsers += calls.enter(call, users, direction)
  }

  /// Counts the call for the trunk, unless it is counted already.
  mutating func count(_ call: CallID, on trunk: String, most: Int, _ question: inout Question, _ step: inout Step) {
    guard calls.trunks(of: call)?.contains(trunk) != true else { return }
    count(call, trunk, &question)
    ask(.admit(trunk: trunk, most: most, at: incarnation), .trunk(trunk), call: call, of: &question, &step)
  }

  mutating func count(_ call: CallID, _ trunk: String, _ question: inout Question) {
    calls.count(call, trunk: trunk)
    question.addedTrunk = trunk
    question.sharesBefore = calls.sharesSent(of: trunk)
  }

  mutating func requestLocations(
    _ call: CallID, of users: [String], direction: CallDirection, _ question: inout Question, _ step: inout Step
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
    guard step.send(request, .part(question.number, call, part)) else { return false }
    question.waiting.insert(part)
    return true
  }

  /// Waits for the parts of the question, or answers it. The time limit starts when it is posed first.
  mutating func pose(_ question: Question, _ step: inout Step) {
    guard !question.waiting.isEmpty else {
      step.timers.cancel(.question(question.number))
      return answer(question, &step)
    }
    questions.put(question, &step)
  }

  // MARK: replies

  mutating func partReplied(
    _ id: UInt64, of call: CallID?, _ part: Part, _ result: Result<SharedStoreReply, SharedStoreFailure>, _ step: inout Step
  ) {
    var question = questions.remove(id)
    let isAnswered = question == nil
    if case .success(let reply) = result {
      switch (part, reply) {
      case (.user(let user), .located(let located)) where located.user == user:
        step.statistics.valuesDropped += UInt64(max(0, located.dropped))
        memory.remember(located, at: step.now)
        question?.located[user] = located
        if !isAnswered { meetUnknown(in: located, &step) }
      case (.enter(let key, let session), .entered(let before, let locations, let device, let since, let isOlder, let dropped)):
        step.statistics.valuesDropped += UInt64(max(0, dropped))
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
        step.statistics.valuesDropped += UInt64(max(0, dropped))
        question?.tombstone = found
      default: break
      }
    } else if case .enter(let key, _) = part {
      writes.hold(.device(key), &step)
    } else if isAnswered, case .user(let user) = part, let call, calls.direction(of: call, for: user) != nil {
      writes.hold(.location(user, call), &step)
    }
    if let question { partDone(question, part, &step) }
  }

  /// The leases were read, or the reading failed.
  mutating func leasesRead(_ step: inout Step) {
    for id in questions.dequeueLeaseWaiters() { if let question = questions.remove(id) { partDone(question, .leases, &step) } }
  }

  /// - Parameter question: removed from `questions`; stored again if it waits for more parts.
  private mutating func partDone(_ question: Question, _ part: Part, _ step: inout Step) {
    var question = question
    let id = question.number
    question.waiting.remove(part)
    guard question.waiting.isEmpty else { return questions.putBack(question) }
    if !question.hasAskedLeases, hasUnknown(question, step.now), lease.readLeases(&step) {
      question.hasAskedLeases = true
      question.waiting.insert(.leases)
      return questions.waitForLeases(question)
    }
    if case .claim(let claim) = question.subject, !question.hasStart, question.verdicts[.start] != false {
      return continueClaim(claim, question, &step)
    }
    answer(question, &step)
    // a question that continues keeps its deadline
    questions.settle(id, &step)
  }

  private mutating func meetUnknown(in located: LocatedUser, _ step: inout Step) {
    for other in strangers(in: located, step.now) { _ = peers.meet(other, at: step.now) }
  }

  /// An incarnation that no renewal has shown is new or long dead: the leases are read again, within the same wait.
  private func hasUnknown(_ question: Question, _ now: Instant) -> Bool {
    lease.isViewFresh(at: now) && question.located.values.contains { !strangers(in: $0, now).isEmpty }
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
}
