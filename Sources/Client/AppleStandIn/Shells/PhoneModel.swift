public import Foundation
public import TrunklineBytes

/// A phone as a person holds it: the system's machine, the screen, Recents, and a log. No clock, I/O or thread: a shell passes it
/// inputs and performs its requests, in this process (`StandInPhone`) or over a socket (`trunkline-lab handset`).
public struct PhoneModel: Sendable {
  public private(set) var machine: SystemMachine
  public internal(set) var log: [LogLine] = []
  /// `R1: …`, by the rule's name. A kill is a violation, too.
  public internal(set) var violations: [String] = []
  public internal(set) var recents: [Recent] = []
  /// The phone's date at `Instant.zero`.
  public let epoch: Date
  public let token: [UInt8]
  var facts = ProviderFacts()
  var payloads: [SystemMachine.PushID: String] = [:]
  var extensionIDs: [SystemMachine.PushID: Int] = [:]
  var nextPush = 0
  var dates: [Identifier: (connected: Date?, ended: Date?)] = [:]
  var declined: Set<Identifier> = []
  /// Performed requests by action, for the dates of their completions.
  var performed: [Int: SystemMachine.Request] = [:]
  var reported: [Identifier: CallFacts] = [:]

  public init(_ rules: SystemRules, random: RandomSource, epoch: Date, token: [UInt8]) {
    machine = SystemMachine(rules, random: random)
    (self.epoch, self.token) = (epoch, token)
  }

  public var screen: Screen { Screen(machine) }
  public var nextTimeout: Instant? { machine.nextTimeout }
  public func date(at now: Instant) -> Date { epoch.addingTimeInterval((now - .zero).inSeconds) }

  // MARK: inputs

  /// The network delivers a push; `payload`: the text of a JSON object.
  public mutating func push(_ payload: String, at now: Instant) -> [PhoneRequest] {
    nextPush += 1
    let id = SystemMachine.PushID(nextPush)
    payloads[id] = payload
    return give(.push(id), LogLine(now, .network, "push", [("id", "\(nextPush)")]), at: now)
  }

  /// Input from the user or the system. The app's messages go through `receive`.
  public mutating func handle(_ input: SystemMachine.Input, at now: Instant) -> [PhoneRequest] {
    let before = machine.isForeground
    var requests: [PhoneRequest] = []
    if machine.isRunning {
      switch input {
      case .cellular(let isOn): requests.append(.send(.interrupted(isOn)))
      case .restarted: requests.append(.kill)
      default: break
      }
    }
    if case .tap(.end(let call)) = input, machine.calls[call]?.phase == .ringing { declined.insert(call) }
    requests += give(input, LogLine(input, now), at: now)
    if machine.isRunning, machine.isForeground != before { requests.append(.send(.foreground(machine.isForeground))) }
    return requests
  }

  /// The network changes: open sockets are closed, new ones can be made.
  public mutating func networkChanged(at now: Instant) -> [PhoneRequest] {
    log.append(LogLine(now, .network, "changed"))
    return machine.isRunning ? [.send(.socketsDie(seconds: 0))] : []
  }

  public mutating func timeout(at now: Instant) -> [PhoneRequest] {
    var actions: [SystemMachine.Action] = []
    machine.timeout(at: now, into: &actions)
    return requests(of: actions, at: now)
  }

  mutating func give(_ input: SystemMachine.Input, _ line: LogLine?, at now: Instant) -> [PhoneRequest] {
    if let line { log.append(line) }
    var actions: [SystemMachine.Action] = []
    machine.handle(input, at: now, into: &actions)
    return requests(of: actions, at: now)
  }

  // MARK: the system's actions

  private mutating func requests(of actions: [SystemMachine.Action], at now: Instant) -> [PhoneRequest] {
    let requests = actions.compactMap { action in
      log.append(line(of: action, now))
      return request(action, now)
    }
    return requests + changes(now)
  }

  /// The log line of an action, with its timeout (R6).
  private func line(of action: SystemMachine.Action, _ now: Instant) -> LogLine {
    var line = LogLine(action, now)
    if case .perform(_, let request) = action { line.fields.append(("timeout", LogLine.text(.zero + time(request)))) }
    return line
  }

  private mutating func request(_ action: SystemMachine.Action, _ now: Instant) -> PhoneRequest? {
    switch action {
    case .launch: return .launch
    case .kill(let rule):
      violations.append("\(rule.rawValue): the app is killed for a push that it did not report")
      return .kill
    case .violation(let rule, let text):
      violations.append("\(rule.rawValue): \(text)")
      return nil
    case .deliver(let push, let mustReport):
      let metadata = machine.rules.hasPushMetadata ? mustReport : nil
      return .send(.push(push.raw, payload: payloads.removeValue(forKey: push) ?? "{}", mustReport: metadata))
    case .extensionPushed(let push, let error):
      return extensionIDs.removeValue(forKey: push).map { .send(.extensionPushed($0, error: error?.rawValue)) }
    case .reported(let call, let error): return .send(.reported(call, error: error?.rawValue))
    case .requested(let id, let error): return .send(.requested(id.raw, error: error?.rawValue))
    case .didBegin: return .send(.began)
    case .perform(let id, let request):
      performed[id.raw] = request
      return .send(.perform(id.raw, request, until: date(at: now + time(request))))
    case .timedOut(let id, _):
      performed[id.raw] = nil
      return .send(.timedOut(id.raw))
    case .didActivate: return .send(.activated)
    case .didDeactivate: return .send(.deactivated)
    case .reset: return .send(.reset)
    case .mediaReset: return .send(.mediaReset)
    case .startCall(let caller): return .send(.startCall(caller))
    case .route(let route, let rate): return .send(.route(route, sampleRate: rate))
    case .capture(let isSilent): return .send(.capture(isSilent: isSilent))
    case .socketsDie(let time): return .send(.socketsDie(seconds: time.inSeconds))
    case .unlockedOnce: return .send(.unlockedOnce(true))
    case .microphonePrompt: return nil
    }
  }

  private func time(_ request: SystemMachine.Request) -> Duration {
    switch request {
    case .answer: machine.rules.answerTime
    case .start: machine.rules.startTime
    default: machine.rules.actionTime
    }
  }

  /// Reports each call that changed to observers, and adds each that ended to Recents.
  private mutating func changes(_ now: Instant) -> [PhoneRequest] {
    var requests: [PhoneRequest] = []
    for id in machine.ordered(where: { _ in true }) {
      guard let call = machine.calls[id] else { continue }
      let facts = CallFacts(id, call)
      guard reported[id] != facts else { continue }
      let had = reported.updateValue(facts, forKey: id)
      requests.append(.send(.call(facts)))
      if call.phase == .active, had?.hasConnected != true, dates[id]?.connected == nil {
        dates[id, default: (nil, nil)].connected = date(at: now)
      }
      if call.phase == .ended { over(id, call, now) }
    }
    return requests
  }

  private mutating func over(_ id: Identifier, _ call: SystemMachine.Call, _ now: Instant) {
    let ended = dates[id]?.ended ?? date(at: now)
    if facts.includesCallsInRecents {
      let recent = Recent(id, call, isDeclined: declined.contains(id), dates: (dates[id]?.connected, ended))
      recents.append(recent)
    }
    dates[id] = nil
    _ = declined.remove(id)
  }
}
