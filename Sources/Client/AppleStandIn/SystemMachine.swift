public import TrunklineBytes

/// What iOS does with the calls of one app: delivers pushes, shows calls, performs actions, activates audio, and punishes
/// breaches of its rules (R1 to R31, see `SystemRules`). No clock, no I/O, no threads: the shell calls `handle` with the time,
/// and `timeout` when `nextTimeout` is due.
///
/// | call | report | tap answer | fulfil | fail | end by app | end by user | ring time |
/// |---|---|---|---|---|---|---|---|
/// | – | ringing | – | – | – | – | – | – |
/// | ringing | error 2 | answering | – | – | ended | end action | end action |
/// | answering | error 2 | – | active | ended | ended | end action | – |
/// | dialling | error 2 | – | connecting | ended | ended | end action | – |
/// | connecting, active, held | error 2 | – | – | – | ended | end action | – |
public struct SystemMachine: Sendable {
  public typealias CallID = Identifier

  public struct Call: Sendable, Equatable {
    public enum Phase: String, Sendable { case ringing, answering, dialling, connecting, active, ended }
    public internal(set) var isOutgoing: Bool
    public internal(set) var caller: Caller
    public internal(set) var phase: Phase
    public internal(set) var isHeld = false
    public internal(set) var isMuted = false
    public internal(set) var ended: EndedReason?
    /// R22: false: the screen does not show the call.
    public internal(set) var isShown = true
    /// Position of the call, counted from the first one of the phone.
    public internal(set) var order = 0
    /// Calls with the same number are merged.
    public internal(set) var group: Int?
    var ringsUntil: Instant?
  }

  struct Delivery: Sendable {
    var mustReport: Bool
    var isReported = false
    var lookAt: Instant
  }
  struct Pending: Sendable {
    var id: ActionID
    var request: Request
    var until: Instant
  }

  public let rules: SystemRules
  var random: RandomSource
  public internal(set) var isRunning = false
  public internal(set) var isForeground = false
  public internal(set) var kills = 0
  var waitingPushes: [PushID] = []
  var deliveries: [PushID: Delivery] = [:]
  public internal(set) var calls: [CallID: Call] = [:]
  /// Transactions run one after the other, and so do their actions (R7).
  var queue: [Request] = []
  var pending: Pending?
  /// Actions that have ended: completing one of them again traps in CallKit.
  var closed: Set<ActionID> = []
  var nextAction = 0
  var hasBegun = false
  var beginsAt: Instant?
  public internal(set) var isAudioActive = false
  var activatesAt: Instant?
  var hasAppActivated = false
  public internal(set) var isCellularCall = false
  // R7, R17: the provider's configuration; nil: not yet configured
  var configuredGroups: Int?
  var handleKinds: Set<HandleKind>?
  /// A call from Recents that waits for the start of the process.
  var waitingStart: Caller?
  var callCount = 0
  public internal(set) var isLocked = false
  /// R29.
  public internal(set) var isUnlockedOnce: Bool
  public internal(set) var microphone: Permission
  public internal(set) var route = Route.receiver
  /// R28: when the sample rate of the new route is known.
  var routeSettles: Instant?
  // R27
  var socketsDieAt: Instant?
  var areSocketsDead = false
  var wakes = 0

  public init(_ rules: SystemRules = .strict, random: RandomSource) {
    (self.rules, self.random) = (rules, random)
    (isUnlockedOnce, microphone) = (rules.isUnlockedOnce, rules.microphone)
  }

  public var nextTimeout: Instant? {
    let timeouts =
      [pending?.until, beginsAt, activatesAt, routeSettles, socketsDieAt] + deliveries.values.map(\.lookAt)
      + calls.values.map(\.ringsUntil)
    return timeouts.compactMap(\.self).min()
  }

  public mutating func handle(_ input: Input, at now: Instant, into out: inout [Action]) {
    switch input {
    case .push(let push): pushed(push, now, &out)
    case .launched: launched(now, &out)
    case .exited: exited()
    case .foreground(let isOn): foreground(isOn, now, &out)
    case .pushHandled(let push): handled(push, now, &out)
    case .report(let call, let caller): report(call, caller, now, &out)
    case .reportOffQueue(let call, let caller): reportOffQueue(call, caller, now, &out)
    case .update(let call, let caller): calls[call]?.caller = caller
    case .reportEnded(let call, let reason): reportEnded(call, reason, now, &out)
    case .reportConnecting: break
    case .reportConnected(let call): connected(call, now, &out)
    case .request(let transaction, let requests): request(transaction, requests, now, &out)
    case .complete(let action, let completion): complete(action, completion, now, &out)
    case .configure(let groups, let kinds): (configuredGroups, handleKinds) = (groups, kinds)
    case .extensionPush(let push, let isExtension): extensionPushed(push, isExtension, now, &out)
    case .systemReset(let cause): systemReset(cause, &out)
    case .cellular(let isOn): cellular(isOn, now, &out)
    case .activatedAudioItself: hasAppActivated = true
    case .categorySet: categorySet(now, &out)
    case .speaker(let isOn), .tap(.speaker(let isOn)): change(route: isOn ? .speaker : .receiver, now, &out)
    case .route(let route): change(route: route, now, &out)
    case .tap(let tap): tapped(tap, now, &out)
    case .tapRecent(let caller): tappedRecent(caller, &out)
    case .locked(let isOn): locked(isOn, &out)
    case .microphone(let permission): said(permission, &out)
    case .restarted: restarted()
    }
    watchSockets(now)
  }

  /// Timers run in a fixed order, so that one seed gives one run.
  public mutating func timeout(at now: Instant, into out: inout [Action]) {
    let looks = deliveries.filter { $0.value.lookAt <= now }.keys.sorted { $0.raw < $1.raw }
    for push in looks { look(at: push, now, &out) }
    if let due = beginsAt, due <= now {
      beginsAt = nil
      hasBegun = true
      out.append(.didBegin)
      perform(now, &out)
    }
    if let due = pending, due.until <= now { timedOut(due, now, &out) }
    for id in ordered(where: { $0.ringsUntil.map { $0 <= now } == true }) {
      calls[id]?.ringsUntil = nil
      enqueue([.end(id)], now, &out)
    }
    if let due = activatesAt, due <= now {
      activatesAt = nil
      activate(&out)
    }
    if let due = routeSettles, due <= now { routeSettled(&out) }
    if let due = socketsDieAt, due <= now { socketsDied(&out) }
    watchSockets(now)
  }

  /// Calls in the order of their arrival.
  func ordered(where isWanted: (Call) -> Bool) -> [CallID] {
    calls.filter { isWanted($0.value) }.sorted { $0.value.order < $1.value.order }.map(\.key)
  }
}
