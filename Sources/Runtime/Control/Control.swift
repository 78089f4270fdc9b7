public import CallFlow
import CallModel
public import Cluster
import GatewayCore
public import Logging
import Trunking
import TrunklineBytes
import TrunklineMediaSession
public import TrunklinePlatform
public import TrunklineSIPDialogs

/// The control thread's work: passes the inputs of other threads, the SIP transport and timers to the `GatewayCore`, and performs
/// the resulting actions.
///
/// Set up on one thread before the loop runs; from then on everything here happens on the loop's thread, except `inbox`, which
/// accepts inputs from any thread; others hold it as `LoopBound`. Nothing here waits for disk, network, media or an app.
public final class Control {
  /// Inputs of other threads.
  public let inbox: Inbox
  public let metrics: ControlMetrics
  let loop: EventLoop
  let outputs: ControlOutputs
  let logger: Logger
  let masksNumbers: Bool
  var core: GatewayCore
  private var output = GatewayCore.Output()
  /// Inputs that arrived while another one's effects were performed, first in first out.
  private var waiting: [GatewayCore.Input] = []
  private var isRunning = false
  private var batch: [Inbound] = []
  var questions: [AskedQuestion] = []
  var questionRate = TokenBucket(perSecond: Limits.questionsPerSecond)
  var questionTimer: EventLoop.TimerID?
  var addressWalk = AddressWalk()
  private var isDraining = false
  private var isDrained = false
  private var isLeaving = false
  /// The call that the present step made: its pushes are measured from its INVITE.
  private var newCall: CallID?
  private var timer: EventLoop.TimerID?
  private var clock: EventLoop.TimerID?
  private var clockDue: Instant
  var detector = OverloadDetector()
  /// Why the user agent refuses new calls now.
  var overload: RefusalReason?
  var reported: (reason: RefusalReason, until: Instant)?
  var pressure: EventLoop.TimerID?
  var pressureDue: Instant
  /// The nodes as of the last second.
  var seenNodes: [SeenNode] = []
  /// The log has stated that the shared store has lost grants.
  var hasStaleGrants = false
  /// Nodes that were sent a probe, in the order of their deadlines.
  var probes: [(at: Instant, node: Incarnation)] = []
  var probeTimer: EventLoop.TimerID?
  /// The most calls at a time.
  let most: Int64

  public init(
    loop: EventLoop, userAgent: UserAgent, machine: CallMachine, cluster: ClusterMachine? = nil, outputs: ControlOutputs,
    metrics: ControlMetrics, inbox: Inbox,
    logger: Logger, masksNumbers: Bool = true
  ) throws(SystemError) {
    precondition((cluster == nil) == (outputs.cluster == nil), "a cluster machine needs its output")
    (self.loop, self.outputs) = (loop, outputs)
    core = GatewayCore(userAgent: userAgent, machine: machine, cluster: cluster)
    (self.metrics, self.inbox, self.logger, self.masksNumbers) = (metrics, inbox, logger, masksNumbers)
    (clockDue, pressureDue) = (loop.now, loop.now + Limits.pressureCheck)
    most = Int64(machine.mostCalls)
    metrics.callsLimit.set(most)
    try loop.register(inbox.mailbox.event.fd, .readable) { [unowned self] _ in drainInbox() }
    try loop.register(inbox.questions.event.fd, .readable) { [unowned self] _ in drainQuestions() }
    timer = loop.addTimer("calls") { [unowned self] in run(.timer) }
    clock = loop.addTimer("clock") { [unowned self] in checkClock() }
    let pressureTimer = loop.addTimer("pressure") { [unowned self] in checkPressure() }
    pressure = pressureTimer
    loop.addFlush { [unowned self] in endStep() }
    checkClock()
    loop.setTimer(pressureTimer, at: pressureDue)
  }

  // MARK: inputs, on the loop's thread

  /// Input of the SIP transport: a message of a trunk, or the loss of a flow.
  public func handle(_ input: UserAgent.Input) {
    checkOverload()
    run(.sip(input))
  }

  /// Legs that a process left open toward trunks when it died: closes each. Called once, when the transport can send.
  public func close(_ orphans: [OrphanedLeg]) { if !orphans.isEmpty { run(.orphaned(orphans)) } }

  /// The name servers' answer to `NameOutput.ask`.
  public func resolved(_ question: DNSQuestion, _ answer: DNSAnswer) { run(.call(.trunking(.resolved(question, answer)))) }

  private func drainInbox() {
    inbox.mailbox.drain(into: &batch, limit: Limits.inboxPerStep)
    for inbound in batch {
      switch inbound {
      case .input(let input):
        log(input)
        run(.call(input))
      case .cluster(let input): run(.cluster(input))
      case .drain: drain()
      case .leave:
        isLeaving = true
        run(.call(.trunking(.unregister)))
      case .hangUpAll: for call in core.machine.liveCalls { run(.call(.hangUp(call))) }
      }
    }
    batch.removeAll(keepingCapacity: true)
  }

  private func drain() {
    guard !isDraining else { return }
    isDraining = true
    outputs.apps.post(.drain)
    run(.call(.draining))
  }

  /// The trunks with a call; on the loop's thread.
  public var trunksWithCalls: Set<String> { core.machine.trunksWithCalls }

  private func checkClock() {
    metrics.delay.set(max(0, (loop.now - clockDue).nanoseconds / 1_000))
    // read both clocks at once: `loop.now` may be as old as a long step
    run(.call(.wallClock(offsetMilliseconds: WallClock.nowMilliseconds() - MonotonicClock.now().nanoseconds / 1_000_000)))
    metrics.publish(core.userAgent.statistics)
    reportLoad()
    let trunks = core.machine.trunkStatuses(at: loop.now)
    metrics.trunks.publish(trunks)
    outputs.state.trunkStatuses(trunks)
    clockDue = loop.now + Limits.clockCheck
    if let clock { loop.setTimer(clock, at: clockDue) }
  }

  // MARK: a step of the core

  /// Gives the core one input and performs its actions.
  func run(_ input: GatewayCore.Input) {
    guard !isRunning else { return waiting.append(input) }
    isRunning = true
    handle(input)
    var next = 0
    while next < waiting.count {
      handle(waiting[next])
      next += 1
    }
    if next > 0 { waiting.removeAll(keepingCapacity: true) }
    isRunning = false
  }

  private func handle(_ input: GatewayCore.Input) {
    newCall = nil
    core.handle(input, at: loop.now, into: &output) { reservation($0) }
    for effect in output.effects { perform(effect) }
    output.removeAll()
  }

  private func perform(_ effect: GatewayCore.Effect) {
    switch effect {
    case .sendSIP(let message): outputs.sip.send(message)
    case .authenticated(let flow): outputs.sip.authenticated(flow)
    case .silent(let flow, let since): outputs.sip.wasSilent(flow, since: since)
    case .challengeRefused(let trunk, let realm): logChallenge(of: trunk, realm: realm)
    case .cluster(let action): perform(action)
    case .action(let action): perform(action)
    }
  }

  private func perform(_ action: CallMachine.Action) {
    switch action {
    case .sip, .reserveMedia: break  // the core's
    case .app(let command): outputs.apps.post(command)
    case .media(let command): send(command)
    case .push(let key, let target, let content, let deadline):
      outputs.push.push(key, target, content, deadline: deadline, since: key.call == newCall ? loop.now : nil)
    // with `cluster:` the core answers these itself
    case .locate, .claim, .admit, .released, .unclaimed, .askTombstone, .wake, .shareGrants, .restoreGrants, .grantsCompared:
      break
    case .staleGrants: logStaleGrants()
    case .disowned(let call): outputs.store.disown(call)
    case .askRoute(let question, let hook): outputs.webhooks.ask(question, hook)
    case .askUser(let question, let hook): outputs.webhooks.ask(question, hook)
    case .pushCallOver(let call): outputs.push.callOver(call)
    case .answered(let id, let answer): outputs.answers.answered(id, .operation(answer))
    case .devices(let changes): outputs.store.change(changes)
    case .grants(let changes): outputs.store.change(changes)
    case .event(let event): outputs.store.append(event)
    case .recording(let command): outputs.audio.perform(command)
    case .stream(let command): outputs.audio.perform(command)
    case .verify(let call, let question): outputs.webhooks.verify(call, question)
    case .lookUp(let question): outputs.names.ask(question)
    case .keepAlive(let flow): outputs.sip.send(.init(bytes: [13, 10, 13, 10], flow: flow))
    case .trunkNews(let news):
      log(news)
      metrics.trunks.count(news)
      outputs.state.trunkNews(news)
    case .journal(let line):
      outputs.store.start(line) { [inbox] call in inbox.post(.journalled(call)) }
    case .record(let record):
      metrics.trunks.count(record)
      log(record)
      outputs.store.end(record)
    case .trace(let call, let stage, let at, let detail):
      if stage == .start { newCall = call }
      log(call, stage, at: at, detail: detail)
    case .requestUnanswered(let call, let request): log(request, of: call)
    case .measured(let measurement): metrics.count(measurement)
    case .refused(let refusal):
      metrics.count(refusal)
      log(refusal)
    }
  }

  /// A session that missed a command cannot be used: it is closed, and its call ends as by a fault of ours.
  private func send(_ command: MediaCommand) {
    guard !outputs.media.send(command) else { return }
    logger.error("a media thread is overloaded: the call is ended", metadata: ["session": "\(command.session.raw)"])
    if case .close = command { return }
    _ = outputs.media.send(.close(command.session))
    run(.call(.media(.closed(command.session, MediaStatistics()))))
  }

  private func move(_ request: MediaRequest) -> CallMachine.Input {
    do {
      let local = try outputs.media.move(request)
      if let local {
        logger.debug("a call continues from another address", metadata: ["call": "\(request.call)", "media": "\(local)"])
      }
      return .mediaMoved(request.call, request.session, local)
    } catch {
      logger.warning("a call has no media: its address was removed", metadata: ["call": "\(request.call)", "why": "\(error)"])
      return .mediaMoved(request.call, request.session, nil)
    }
  }

  private func reservation(_ request: MediaRequest) -> CallMachine.Input {
    if request.moves { return move(request) }
    if let reason = detector.lasting { return .mediaRefused(request.call, reason: reason.rawValue, isOverload: true) }
    do {
      return .mediaReserved(request.call, try outputs.media.reserve(request))
    } catch let overload as MediaOverload {
      // Counted and logged as a refusal, which under overload happens many times a second: no log line here.
      return .mediaRefused(request.call, reason: overload.description, isOverload: true)
    } catch {
      logger.warning("a call has no media", metadata: ["call": "\(request.call)", "why": "\(error)"])
      return .mediaRefused(request.call, reason: "\(error)")
    }
  }

  /// By reference: a property of a class would be copied whole for each field that is read, in every step.
  private func publish(_ core: inout GatewayCore) {
    if let timer { loop.setTimer(timer, at: core.nextDeadline) }
    metrics.publish(core.machine.statistics)
  }

  private func endStep() {
    outputs.media.wake()
    outputs.store.wake()
    outputs.cluster?.wake()
    publish(&core)
    if isLeaving, !core.machine.isUnregistering {
      isLeaving = false
      outputs.state.left()
    }
    if isDraining, !isDrained, metrics.liveCalls == 0 {
      isDrained = true
      outputs.state.drained()
    }
  }
}
