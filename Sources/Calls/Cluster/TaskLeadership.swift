import TrunklineBytes

/// Tasks that one node at a time does for all. A leader counts its time from the sending of its request, so its time ends before
/// the shared store's does. A reaper needs a lease besides. A trunk's leader continues on purpose while the shared store is away:
/// no registration does more harm than two.
///
/// | input | gives |
/// |---|---|
/// | `set` | a task that is no longer wanted is resigned; a new one is due soon while this node may lead |
/// | `leaseBegan`, `leaseEnded` | all are due soon; the reaper stops, and only tasks that are led stay due |
/// | `due` | `lead` is requested, unless that is pending; the leadership ends with its time; a holder without a lease is deposed |
/// | `answered` granted | `Action.lead(…, true)` if it is new; true for a new reaper. Too late, or a node that may no longer lead: – |
/// | `answered` refused | `Action.lead(…, false)` if it was led; due again later, soon if the holder is not fit |
/// | `failed` | – ; the next request is due as planned |
/// | `holdersMayBeGone` | a task whose holder is not fit is due soon |
/// | `reconnected` | – ; no reply to an earlier request follows |
/// | `resignAll` | each task that is led, or requested, is resigned |
///
/// A task that is not wanted is ignored in each input.
struct TaskLeadership: Sendable {
  private struct Leading: Sendable {
    /// The end of our leadership; nil: another node leads, or none.
    var until: Instant?
    var holder: Incarnation?
    var isAsking = false
  }

  private let incarnation: Incarnation
  private let length: Duration
  private var tasks: [SingleTask: Leading] = [.reaper: Leading()]

  /// - Parameter length: of a leadership, from the sending of its request.
  init(_ incarnation: Incarnation, length: Duration) { (self.incarnation, self.length) = (incarnation, length) }

  /// The tasks that this node leads.
  var leads: Set<SingleTask> { Set(tasks.filter { $0.value.until != nil }.keys) }
  func leads(_ task: SingleTask) -> Bool { tasks[task]?.until != nil }
  /// Whether the leadership is valid at this time.
  func leads(_ task: SingleTask, at now: Instant) -> Bool { tasks[task]?.until.map { $0 > now } ?? false }
  func holder(of task: SingleTask) -> Incarnation? { tasks[task]?.holder }

  /// In an order that is the same in each run.
  private var sorted: [SingleTask] {
    tasks.count == 1 ? Array(tasks.keys) : tasks.keys.sorted { $0.description < $1.description }
  }

  mutating func set(_ trunks: [String], isUp: Bool, _ step: inout Step) {
    let wanted = Set(trunks.prefix(Limits.singleTasks).map(SingleTask.trunk)).union([.reaper])
    for task in sorted where !wanted.contains(task) {
      resign(task, &step)
      tasks[task] = nil
      step.timers.cancel(.task(task))
    }
    for task in wanted.sorted(by: { $0.description < $1.description }) where tasks[task] == nil {
      tasks[task] = Leading()
      if isUp { step.timers.schedule(.task(task), at: step.now + step.jitter(Limits.followerSoon)) }
    }
  }

  mutating func leaseBegan(_ step: inout Step) {
    for task in sorted { step.timers.schedule(.task(task), at: step.now + step.jitter(Limits.followerSoon)) }
  }

  /// Other nodes may depose a reaper without a lease at once.
  mutating func leaseEnded(_ step: inout Step) {
    stopLeading(.reaper, &step)
    for (task, leading) in tasks where leading.until == nil { step.timers.cancel(.task(task)) }
  }

  mutating func reconnected() { for task in tasks.keys { tasks[task]?.isAsking = false } }

  /// - Parameter isHolderGone: this node saw the end of the holder's lease, though its leadership is not over.
  mutating func due(_ task: SingleTask, isHolderGone: Bool, _ step: inout Step) {
    guard let leading = tasks[task] else { return }
    if let until = leading.until, until <= step.now { stopLeading(task, &step) }
    if isHolderGone, let holder = leading.holder {
      step.send(.resign(task, holder), .none)
      tasks[task]?.holder = nil
    }
    if !leading.isAsking, step.send(.lead(task, incarnation), .lead(task)) { tasks[task]?.isAsking = true }
    plan(task, step.now + (leads(task) ? length / 10 : Limits.followerSoon), &step)
  }

  mutating func failed(_ task: SingleTask) { tasks[task]?.isAsking = false }

  /// - Parameters:
  ///   - sent: when the request was sent.
  ///   - mayLead: false for a node that drains or stops: it has resigned after this request.
  ///   - isHolderFit: the holder has a lease, and does not drain.
  /// - Returns: this node begins to lead the reaper.
  mutating func answered(
    _ task: SingleTask, isGranted: Bool, holder: Incarnation?, sent: Instant, mayLead: Bool, isHolderFit: Bool,
    _ step: inout Step
  ) -> Bool {
    guard tasks[task] != nil else { return false }
    tasks[task]?.isAsking = false
    tasks[task]?.holder = holder
    guard isGranted, mayLead else {
      stopLeading(task, &step)
      let pause = isHolderFit ? Limits.followerAgain : Limits.followerSoon
      plan(task, step.now + pause + step.jitter(Limits.followerSoon), &step)
      return false
    }
    let until = sent + length
    guard until > step.now else { return false }
    let isNew = !leads(task)
    tasks[task]?.until = until
    if isNew { step.actions.append(.lead(task, true)) }
    plan(task, sent + length / 3, &step)
    return isNew && task == .reaper
  }

  mutating func holdersMayBeGone(isFit: (Incarnation) -> Bool, _ step: inout Step) {
    for task in sorted where !leads(task) {
      guard let holder = tasks[task]?.holder, holder != incarnation, !isFit(holder) else { continue }
      let soon = task == .reaper ? Limits.followerSoon / 5 : Limits.followerSoon
      step.timers.schedule(.task(task), notLaterThan: step.now + step.jitter(soon))
    }
  }

  /// Schedules the task's next request, or the end of its leadership if that is earlier.
  private mutating func plan(_ task: SingleTask, _ due: Instant, _ step: inout Step) {
    step.timers.schedule(.task(task), at: tasks[task]?.until.map { min($0, due) } ?? due)
  }

  private mutating func stopLeading(_ task: SingleTask, _ step: inout Step) {
    guard leads(task) else { return }
    tasks[task]?.until = nil
    step.actions.append(.lead(task, false))
  }

  mutating func resignAll(_ step: inout Step) {
    for task in sorted { resign(task, &step) }
  }

  private mutating func resign(_ task: SingleTask, _ step: inout Step) {
    guard let leading = tasks[task], leading.until != nil || leading.isAsking else { return }
    stopLeading(task, &step)
    step.send(.resign(task, incarnation), .none)
  }
}
