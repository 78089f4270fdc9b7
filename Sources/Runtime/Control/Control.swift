import Bytes
public import CallFlow
public import Logging
import MediaSession
public import Platform
public import SIPDialogs
public import Trunking

/// The control thread's work: the SIP user agent and the call machine, each one's output pumped into the other until nothing is left.
///
/// Set up on one thread before the loop runs; from then on everything here happens on the loop's thread, except `inbox`, which takes inputs
/// from any thread. Nothing here waits for disk, network, media or an app.
public final class Control: @unchecked Sendable {
  /// What other threads hand to control.
  public let inbox: Inbox
  public let metrics: ControlMetrics
  let loop: EventLoop
  let outlets: Outlets
  let logger: Logger
  private var userAgent: UserAgent
  private var machine: CallMachine
  private var signalling = SIPDialogs.Output()
  private var calls = CallFlow.Output()
  /// Inputs that the present turn caused, first in first out, from `next` on.
  private var pending: [CallFlow.Input] = []
  private var next = 0
  private var drained: (() -> Void)?
  private var left: (() -> Void)?
  /// The call that the present input made: its pushes are measured from its INVITE.
  private var newCall: CallID?
  private var timer: EventLoop.TimerID?
  private var clock: EventLoop.TimerID?
  private var clockDue: Instant
  var judge = OverloadJudge()
  /// What the user agent refuses new calls for now.
  var overload: RefusalReason?
  var told: (reason: RefusalReason, until: Instant)?
  var pressure: EventLoop.TimerID?
  var pressureDue: Instant
  /// Calls at a time.
  let most: Int64

  public init(
    loop: EventLoop, userAgent: UserAgent, machine: CallMachine, outlets: Outlets, metrics: ControlMetrics, inbox: Inbox,
    logger: Logger
  ) throws(SystemError) {
    (self.loop, self.userAgent, self.machine, self.outlets) = (loop, userAgent, machine, outlets)
    (self.metrics, self.inbox, self.logger) = (metrics, inbox, logger)
    (clockDue, pressureDue) = (loop.now, loop.now + Limits.pressureCheck)
    most = Int64(machine.mostCalls)
    try loop.register(inbox.mailbox.event.fd, .readable) { [unowned self] _ in takeInbox() }
    timer = loop.addTimer { [unowned self] in runTimers() }
    clock = loop.addTimer { [unowned self] in checkClock() }
    let pressureTimer = loop.addTimer { [unowned self] in checkPressure() }
    pressure = pressureTimer
    loop.addFlush { [unowned self] in endTurn() }
    signal(.rules(machine.trunkRules))
    checkClock()
    loop.setTimer(pressureTimer, at: pressureDue)
  }

  // MARK: inputs, on the loop's thread

  /// What the SIP transport has: a message of a trunk, or the loss of a flow.
  public func handle(_ input: SIPDialogs.Input) {
    judgeOverload()
    signal(input)
    if case .transportFailed(let flow) = input { pending.append(.trunking(.flowLost(flow))) }
    pump()
  }

  /// The name servers' answer to `Outlets.lookUp`.
  public func resolved(_ question: DNSQuestion, _ answer: DNSAnswer) {
    pending.append(.trunking(.resolved(question, answer)))
    pump()
  }

  private func takeInbox() {
    var batch: [Inbound] = []
    inbox.mailbox.drain(into: &batch, limit: Limits.inboxPerTurn)
    for inbound in batch {
      switch inbound {
      case .input(let input):
        if case .routing(let routing) = input { signal(.rules(routing.rules)) }
        log(input)
        pending.append(input)
      case .calls(let answer): answer(machine.summaries)
      case .look(let look): look(machine)
      case .drain(let whenDone): drain(whenDone)
      case .leave(let whenDone):
        left = whenDone
        pending.append(.trunking(.unregister))
      case .hangUpAll: pending += machine.summaries.map { .hangUp($0.call) }
      }
      pump()
    }
  }

  private func drain(_ whenDone: @escaping @Sendable () -> Void) {
    guard drained == nil else { return }
    drained = whenDone
    signal(.draining(true))
    outlets.sendApp(.drain)
    pending.append(.draining)
  }

  private func runTimers() {
    if let due = userAgent.nextDeadline, due <= loop.now { signal(.timer) }
    if let due = machine.nextDeadline, due <= loop.now { pending.append(.timer) }
    pump()
  }

  private func checkClock() {
    metrics.delay.set(max(0, (loop.now - clockDue).nanoseconds / 1_000))
    pending.append(.wallClock(offsetMilliseconds: WallClock.nowMilliseconds() - loop.now.nanoseconds / 1_000_000))
    pump()
    metrics.publish(userAgent.statistics)
    clockDue = loop.now + Limits.clockCheck
    if let clock { loop.setTimer(clock, at: clockDue) }
  }

  // MARK: the pump

  /// One input of the user agent: its messages go out, its events wait for the call machine.
  func signal(_ input: SIPDialogs.Input) {
    userAgent.handle(input, at: loop.now, into: &signalling)
    for flow in signalling.authenticated { outlets.authenticated(flow) }
    for message in signalling.messages { outlets.sendSIP(message) }
    for event in signalling.events {
      if case .challengeRefused(let trunk, let realm) = event { logChallenge(trunk, realm) } else { pending.append(.sip(event)) }
    }
    signalling.removeAll()
  }

  /// Feeds the call machine until neither machine has anything more to say.
  private func pump() {
    while next < pending.count {
      let input = pending[next]
      next += 1
      newCall = nil
      machine.handle(input, at: loop.now, into: &calls)
      var index = 0
      // `reserveMedia` is answered at once, and what the answer causes is performed in its place, before any other input.
      while index < calls.actions.count {
        let action = calls.actions[index]
        index += 1
        perform(action)
      }
      calls.removeAll()
    }
    pending.removeAll(keepingCapacity: true)
    next = 0
  }

  private func perform(_ action: Action) {
    switch action {
    case .sip(let command): signal(.command(command))
    case .app(let command): outlets.sendApp(command)
    case .media(let command): send(command)
    case .reserveMedia(let call, let session, let user, let toward):
      machine.handle(reservation(call, session, user, toward), at: loop.now, into: &calls)
    case .push(let key, let target, let content, let deadline):
      outlets.push(key, target, content, deadline, key.call == newCall ? loop.now : nil)
    case .askRoute(let question, let hook): outlets.askRoute(question, hook)
    case .pushCallOver(let call): outlets.pushCallOver(call)
    case .devices(let changes): outlets.devices(changes)
    case .verify(let call, let question): outlets.verify(call, question)
    case .lookUp(let question): outlets.lookUp(question)
    case .trunkNews(let news):
      log(news)
      metrics.count(news)
      outlets.trunkNews(news)
    case .journal(let line):
      outlets.journal(line) { [inbox] call in inbox.post(.journalled(call)) }
    case .record(let record):
      metrics.count(record)
      log(record)
      outlets.record(record)
    case .trace(let call, let stage, let at, let detail):
      if stage == .start { newCall = call }
      log(call, stage, at, detail)
    case .measured(let measurement): metrics.count(measurement)
    case .refused(let refusal):
      metrics.count(refusal)
      log(refusal)
    }
  }

  /// A session that missed a command is of no use: it is closed, and its call hears that it ended by a fault of ours.
  private func send(_ command: MediaCommand) {
    guard !outlets.sendMedia(command) else { return }
    logger.error("a media thread does not keep up: the call is given up", metadata: ["session": "\(command.session.raw)"])
    if case .close = command { return }
    _ = outlets.sendMedia(.close(command.session))
    pending.append(.media(.closed(command.session, MediaStatistics())))
  }

  private func reservation(_ call: CallID, _ session: MediaSessionID, _ user: String, _ toward: IPAddress?) -> CallFlow.Input {
    if let reason = judge.lasting { return .mediaRefused(call, reason: reason.rawValue, isOverload: true) }
    do {
      return .mediaReserved(call, try outlets.reserveMedia(session, user, toward))
    } catch let overload as MediaOverload {
      // Counted and logged as a refusal, which under overload is many a second: nothing more is said here.
      return .mediaRefused(call, reason: overload.description, isOverload: true)
    } catch {
      logger.warning("no media for a call", metadata: ["call": "\(call)", "why": "\(error)"])
      return .mediaRefused(call, reason: "\(error)")
    }
  }

  private func endTurn() {
    outlets.endTurn()
    let due = [userAgent.nextDeadline, machine.nextDeadline].compactMap(\.self).min()
    if let timer { loop.setTimer(timer, at: due) }
    let statistics = machine.statistics
    metrics.publish(statistics)
    if let done = left, !machine.isUnregistering {
      left = nil
      done()
    }
    if let done = drained, metrics.liveCalls == 0 {
      drained = {}
      done()
    }
  }
}
