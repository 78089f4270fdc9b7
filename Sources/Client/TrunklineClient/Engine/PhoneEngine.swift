import Dispatch
import Foundation
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineTURN

/// Drives the phone's machine, which is used nowhere else. Every event enters on the engine's queue and is handled completely,
/// with its effects, before the next.
actor PhoneEngine {
  nonisolated let executor = EngineExecutor()
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  let parts: PhoneParts
  let updates: PhoneUpdates
  nonisolated let trace: PhoneTrace
  var machine: PhoneMachine
  let media: MediaThread?
  let audio: AudioRunner
  nonisolated let logger: PhoneLogger
  private var logLines = LogLines()
  /// The socket of each session; 0 is the phone's own.
  var sockets: [Int: SocketRace] = [:]
  /// Number of the newest socket; events of older ones are ignored.
  var socketNumber = 0
  /// Number of the newest request to the audio device.
  var audioNumber = 0
  /// Receives each new version of the directory, on its own queue.
  var directoryHandler: (@Sendable ([DirectoryPart]) -> Void)?
  var readers: [Int: @Sendable (Result<Success, Failure>?) -> Void] = [:]
  var readNumber = 0
  private var secondsOfCall: [Identifier: Int] = [:]
  private var waiting: [(input: PhoneMachine.Input, isFromOtherQueue: Bool)] = []
  private var isRunning = false
  private var timer: DispatchSourceTimer?
  private var timerDue: Instant?
  private var deadlines = DeadlineGuard()
  var routeChoice = AudioRouteChoice()
  /// Its own queue, so that a system that does not answer delays no call.
  private let routeQueue = DispatchQueue(label: "org.trunkline.routes", qos: .userInitiated)
  /// State for preflight tests.
  private(set) var microphone = MicrophonePermission.granted
  private(set) var isForeground: Bool
  var state = PhoneState.idle
  var stateError: PhoneError?
  var relayServers: [TURNServer] = []
  var preflight: RunningPreflight?
  var preflightNumber = 0

  init(_ parts: PhoneParts, updates: PhoneUpdates) {
    (self.parts, self.updates) = (parts, updates)
    isForeground = parts.configuration.isForeground
    logger = PhoneLogger(Phone.systemLog)
    trace = PhoneTrace(system: "\(type(of: parts.system))", groups: parts.configuration.maximumCalls)
    machine = PhoneMachine(parts.configuration, random: .client)
    let handle = AudioHandle()
    audio = AudioRunner(parts.audio, handle, time: parts.audioTime)
    let report = ReportBox()
    media = MediaThread(handle, sockets: parts.sockets) { report.hand($0) }
    report.set { [weak self] report in self?.enqueue { $0.handle(report) } }
  }

  /// A closure that is set after the thread that calls it was made.
  private final class ReportBox: @unchecked Sendable {
    // Unchecked: set once, before the thread is started.
    private var body: @Sendable (MediaThread.Report) -> Void = { _ in }
    func set(_ body: @escaping @Sendable (MediaThread.Report) -> Void) { self.body = body }
    func hand(_ report: MediaThread.Report) { body(report) }
  }

  /// Any thread; bodies run in order.
  nonisolated func enqueue(_ body: @escaping @Sendable (isolated PhoneEngine) -> Void) {
    executor.queue.async { self.assumeIsolated { body($0) } }
  }

  /// When this returns, the system's objects exist: a push that started the process finds them.
  nonisolated func start() {
    media?.start()
    parts.system.attach(to: executor.queue) { [weak self] event in
      guard let self else { return }
      // events of a call system off the queue are handled later, and no process traps
      if self.executor.isCurrent {
        self.assumeIsolated { $0.handle(event) }
      } else {
        self.enqueue { $0.handle(event, isFromOtherQueue: true) }
      }
    }
    enqueue { engine in
      if engine.media == nil { engine.updates.change { $0.error = .some(.noResources) } }
      engine.give(.start)
      engine.parts.routes?.start { [weak engine] list in engine?.enqueue { $0.listed(list) } }
      engine.parts.paths?.start { [weak engine] in engine?.enqueue { $0.give(.pathChanged) } }
    }
  }

  nonisolated func stop() {
    enqueue { engine in
      engine.parts.paths?.stop()
      engine.parts.routes?.stop()
      engine.timer?.cancel()
      engine.media?.give(.stop)
      engine.audio.run(.release) { _ in }
      for (_, race) in engine.sockets { race.close(1000) }
    }
  }

  // MARK: inputs

  /// - Parameter isFromOtherQueue: the call system reported it on another queue.
  func give(_ input: PhoneMachine.Input, isFromOtherQueue: Bool = false) {
    waiting.append((input, isFromOtherQueue))
    guard !isRunning else { return }
    isRunning = true
    while !waiting.isEmpty {
      let now = MonotonicTime.now()
      var actions: [PhoneMachine.Action] = []
      let next = waiting.removeFirst()
      trace.note(next.input, now, isFromOtherQueue: next.isFromOtherQueue)
      note(next.input)
      machine.handle(next.input, at: now, into: &actions)
      if case .timer = next.input { deadlines.ran(at: now) }
      for action in actions {
        trace.note(action, now)
        note(action)
        perform(action)
      }
      if case .pushed = next.input { trace.pushHandled(MonotonicTime.now()) }
      if case .foreground(true) = next.input { lookIntoSecrets() }
    }
    isRunning = false
    setTimer()
  }

  private func handle(_ event: CallSystemEvent, isFromOtherQueue: Bool = false) {
    func give(_ input: PhoneMachine.Input) { self.give(input, isFromOtherQueue: isFromOtherQueue) }
    switch event {
    case .pushed(let payload, let mustReport):
      var push = PushPayload(json: payload)
      push?.openCaller(by: parts.secrets)
      give(.pushed(push?.push, mustReport: mustReport))
    case .pushToken(var token):
      if parts.sealsCallers, token != nil {
        token?.sealKey = SealedCaller.key(in: parts.secrets, .client).flatMap { SealedCaller.publicText(of: $0) }
      }
      give(.pushToken(token))
    case .reported(let call, let refusal): give(.reported(call, refusal))
    case .perform(let action, let request, let timeout): give(.perform(action, request, timeout: timeout))
    case .timedOut(let action, let request): give(.timedOut(action, request))
    case .requestRefused(let request): give(.requestRefused(request))
    case .audioActivated: give(.audioActivated)
    case .audioDeactivated: give(.audioDeactivated)
    case .audioChanged(let isReset): give(.audioChanged(isReset: isReset))
    case .reset: give(.reset)
    case .foreground(let isOn): give(.foreground(isOn))
    case .microphone(let permission): give(.microphone(permission))
    case .translates(let call, let translate): give(.act(call, .translate(translate)))
    case .unsupported: updates.change { $0.error = .some(.unsupported) }
    case .noted(let note): trace.note(note, MonotonicTime.now(), isFromOtherQueue: isFromOtherQueue)
    }
  }

  /// A request that only reads; nil: the phone is not online.
  func read(_ message: ClientMessage, _ done: @escaping @Sendable (Result<Success, Failure>?) -> Void) {
    readNumber += 1
    readers[readNumber] = done
    give(.read(readNumber, message))
  }

  // MARK: the log

  private func note(_ input: PhoneMachine.Input) {
    if case .microphone(let permission) = input { microphone = permission }
    if case .foreground(let isOn) = input { isForeground = isOn }
    guard logger.accepts(.error) else { return }
    write(logLines.lines(of: input, isDetailed: logger.accepts(.debug)))
  }

  private func note(_ action: PhoneMachine.Action) {
    guard logger.accepts(.error) else { return }
    var gateway: String?
    switch action {
    case .socket: gateway = machine.gateway ?? parts.gateway
    case .further(let number, _): gateway = machine.gateway(of: number) ?? parts.gateway
    default: break
    }
    write(logLines.lines(of: action, gateway: gateway, isDetailed: logger.accepts(.debug)))
  }

  private func write(_ lines: [LogLines.Line]) {
    for line in lines { logger.note(line.level, line.code, call: line.call, line.fields) }
  }

  // MARK: audio routes

  /// Nil: this phone has no `AudioRoutes`.
  var routes: AudioRouteList? { parts.routes == nil ? nil : routeChoice.list }

  private func listed(_ list: AudioRouteList) {
    let before = routeChoice.list.current
    var actions: [AudioRouteChoice.Action] = []
    routeChoice.listed(list, into: &actions)
    if before?.id != list.current?.id { logger.note(.info, .audioRoute, [.init("to", list.current?.kind.rawValue ?? "none")]) }
    run(actions)
  }

  func choose(_ route: AudioRoute?) {
    var actions: [AudioRouteChoice.Action] = []
    if routeChoice.choose(route, into: &actions) { run(actions) }
  }

  /// An audio session that was activated again has lost the chosen route.
  func audioStarted() {
    var actions: [AudioRouteChoice.Action] = []
    routeChoice.started(into: &actions)
    run(actions)
  }

  private func run(_ actions: [AudioRouteChoice.Action]) {
    for action in actions {
      switch action {
      case .use(let route): if let routes = parts.routes { routeQueue.async { routes.use(route) } }
      case .fellBack(let route):
        logger.note(.warning, .audioRoute, [.init("isFallback", "true"), .init("from", route.kind.rawValue)])
        updates.report(.routeFellBack(from: route, to: routeChoice.list.current))
      case .returned(let route):
        logger.note(.info, .audioRoute, [.init("isFallback", "false"), .init("to", route.kind.rawValue)])
        updates.report(.routeReturned(route))
      }
    }
    updates.change { $0.routes = routeChoice }
  }

  // MARK: the trace's file

  func keepTrace(at path: String) {
    trace.keep(at: path)
    lookIntoSecrets()
  }

  /// R29: a closed keychain accepts no writes. Only while a trace is recorded: it writes.
  private func lookIntoSecrets() {
    guard trace.isKept else { return }
    trace.keychain(isOpen: parts.secrets.write(SecretKey.probe, [1]), MonotonicTime.now())
  }

  private func handle(_ report: MediaThread.Report) {
    switch report {
    case .media(let call, let event):
      if case .connected(_, let pair, let trip, let profile) = event {
        updates.report(.media(call, pair: pair, roundTripMilliseconds: trip, profile: profile))
      }
      give(.media(call, event))
    case .statistics(let call, let statistics) where measured(call, statistics, isLast: false): break
    case .closed(let call, let statistics) where measured(call, statistics, isLast: true): break
    case .statistics(let call, let statistics):
      updates.change { $0.statistics[call] = statistics }
      reportQuality(statistics, of: call)
    case .closed(let call, let statistics):
      updates.change { $0.statistics[call] = statistics }
      updates.report(.closed(call))
      secondsOfCall[call] = nil
    }
  }

  /// Every fifth second the gateway receives the quality of the audio played here.
  private func reportQuality(_ statistics: ClientMedia.Statistics, of call: Identifier) {
    let second = secondsOfCall[call, default: 0] + 1
    secondsOfCall[call] = second
    guard second % 5 == 0 else { return }
    let expected = statistics.receivedPackets + statistics.lostPackets
    give(
      .statistics(
        call,
        StreamStats(
          rttMs: statistics.roundTripMilliseconds, jitterMs: statistics.jitterMilliseconds,
          loss: expected > 0 ? Double(statistics.lostPackets) / Double(expected) : nil,
          bytes: Int64(clamping: statistics.receivedBytes),
          plc: Double(statistics.concealedMilliseconds), codec: machine.info(of: call)?.codec)))
  }

  private func setTimer() {
    guard let due = machine.nextDeadline.map(deadlines.due) else { return }
    if let timerDue, timerDue <= due, timerDue > MonotonicTime.now() { return }
    timer?.cancel()
    let made = DispatchSource.makeTimerSource(queue: executor.queue)
    let wait = max(0, (due - MonotonicTime.now()).nanoseconds)
    made.schedule(deadline: .now() + .nanoseconds(Int(clamping: wait)), leeway: .milliseconds(1))
    made.setEventHandler { [weak self] in
      self?.assumeIsolated { engine in
        engine.timerDue = nil
        engine.give(.timer)
      }
    }
    timer = made
    timerDue = due
    made.resume()
  }
}
