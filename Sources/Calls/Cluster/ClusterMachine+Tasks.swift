import TrunklineBytes

// Tasks that one node at a time does for all. A leader counts its time from the sending of its request, so its time ends before
// the shared store's does. A reaper needs a lease besides. A trunk's leader continues on purpose while the shared store is away:
// no registration does more harm than two.

extension ClusterMachine {
  /// In an order that is the same in each run.
  var sortedTasks: [SingleTask] {
    tasks.count == 1 ? Array(tasks.keys) : tasks.keys.sorted { $0.description < $1.description }
  }

  mutating func trunks(_ single: [String], _ limited: [String], _ step: inout Step) {
    limitedTrunks = Set(limited.prefix(Limits.singleTasks))
    let wanted = Set(single.prefix(Limits.singleTasks).map(SingleTask.trunk)).union([.reaper])
    for task in sortedTasks where !wanted.contains(task) {
      resign(task, &step)
      tasks[task] = nil
      timers.cancel(.task(task))
    }
    for task in wanted.sorted(by: { $0.description < $1.description }) where tasks[task] == nil {
      tasks[task] = TaskState()
      if state == .up { timers.schedule(.task(task), at: step.now + jitter(Limits.followerSoon)) }
    }
  }

  mutating func taskDue(_ task: SingleTask, _ step: inout Step) {
    guard let leader = tasks[task] else { return }
    guard state == .up, !lease.isDraining, !isStopping else { return }  // `updateState` continues
    if let until = leader.until, until <= step.now { stopLeading(task, &step) }
    depose(leader.holder, task, &step)
    if !leader.isAsking, send(.lead(task, incarnation), .lead(task), &step) { tasks[task]?.isAsking = true }
    plan(task, step.now + (tasks[task]?.until == nil ? Limits.followerSoon : settings.leadership / 10))
  }

  mutating func asked(
    _ task: SingleTask, _ result: Result<SharedStoreReply, SharedStoreFailure>, sent: Instant, _ step: inout Step
  ) {
    guard tasks[task] != nil else { return }
    tasks[task]?.isAsking = false
    guard case .success(.granted(let isGranted, let holder)) = result else { return }
    tasks[task]?.holder = holder
    // A node that stops or drains meanwhile has resigned after this request.
    if isGranted, !lease.isDraining, !isStopping {
      let until = sent + settings.leadership
      guard until > step.now else { return }
      let isNew = tasks[task]?.until == nil
      tasks[task]?.until = until
      if isNew { step.actions.append(.lead(task, true)) }
      if isNew, task == .reaper { lookAtSuspects(&step) }
      plan(task, sent + settings.leadership / 3)
    } else {
      stopLeading(task, &step)
      let isFit = holder.flatMap { peers[$0] }.map { !$0.isDraining } ?? false
      plan(task, step.now + (isFit ? Limits.followerAgain : Limits.followerSoon) + jitter(Limits.followerSoon))
    }
  }

  /// Schedules the task's next request, or the end of its leadership if that is earlier.
  private mutating func plan(_ task: SingleTask, _ due: Instant) {
    timers.schedule(.task(task), at: tasks[task]?.until.map { min($0, due) } ?? due)
  }

  /// Ends the leadership of a node whose lease this node saw end, though its leadership time is not over.
  private mutating func depose(_ holder: Incarnation?, _ task: SingleTask, _ step: inout Step) {
    guard let holder, let suspect = suspects[holder], !suspect.isHeld else { return }
    send(.resign(task, holder), .none, &step)
    tasks[task]?.holder = nil
  }

  mutating func stopLeading(_ task: SingleTask, _ step: inout Step) {
    guard tasks[task]?.until != nil else { return }
    tasks[task]?.until = nil
    step.actions.append(.lead(task, false))
  }

  mutating func resignAll(_ step: inout Step) {
    for task in sortedTasks { resign(task, &step) }
  }

  private mutating func resign(_ task: SingleTask, _ step: inout Step) {
    guard let leader = tasks[task], leader.until != nil || leader.isAsking else { return }
    stopLeading(task, &step)
    send(.resign(task, incarnation), .none, &step)
  }
}
