import Bytes
public import PhoneLog

/// Runs a trace through `SystemMachine` and tells where trace and rules differ.
///
/// What the app says is handed to the machine; what the machine then wants is compared with what the system did. What the trace cannot
/// show is taken from what it does: a tap from its action, the moment of an activation from the activation. So the machine runs without
/// its timers for activation and begin, and without the queue that performs: actions that it wants are `owed` until the trace has them.
///
/// The stand-in's log has taps and all that the system did; there an unrequested action contradicts a rule. In the SDK's trace
/// it is the user's, where a user could have wanted it.
public struct TraceCheck: Sendable {
  typealias Rule = SystemMachine.Rule
  typealias Position = TraceVerdict.Position

  /// How long the system may take for what follows at once.
  static let patience = Duration.seconds(5)
  /// How far a time of a rule may be missed.
  static let slack = Duration.seconds(1)

  /// An action that the system must ask for now, or once the actions before it are over.
  struct Owed: Sendable {
    var request: SystemMachine.Request
    var rule: Rule
    var due: Instant
    var position: Position
    /// Of one transaction or one tap: these come in their order.
    var group: Int
  }
  /// What else the system must do.
  enum Output: Hashable, Sendable {
    case reported(Identifier), requested(Int), extensionPushed(Int)
    case didDeactivate, didReset, capture, microphonePrompt, socketsDie, unlockedOnce, startCall, route(String)
  }
  struct Awaited: Sendable {
    var output: Output
    /// The error that the machine answers with.
    var code: Int?
    var rule: Rule
    /// Nil: it may come at any time, or never.
    var due: Instant?
    var position: Position
    var text: String
  }
  struct Since: Sendable {
    var time: Instant
    var position: Position
  }

  let rules: SystemRules
  var machine: SystemMachine
  public internal(set) var verdict = TraceVerdict()

  /// The machine's time: traces of one file follow each other.
  var now = Instant.zero
  private var base = Instant.zero
  var position = Position(line: 0, time: .zero)

  // of the process that runs
  var header: TraceHeader?
  var hasBegun = false
  /// The provider's first use.
  var firstUse: Since?
  var owed: [Owed] = []
  var awaited: [Awaited] = []
  var group = 0
  /// The trace's numbers of actions, by which they are completed.
  var actions: [Int: SystemMachine.ActionID] = [:]
  /// Actions that came before the one before them was completed.
  var overlapping: [Int: SystemMachine.Pending] = [:]
  var lastCompletion: Since?
  /// Actions of calls that came before the trace, or never.
  var foreign: Set<Int> = []
  /// Of such a call; whether audio is active is not known then.
  var isAudioUnknown = false
  var activation: Since?
  /// Audio may stay inactive after an unhold (R9).
  var isActivationOptional = false
  /// A push that was not reported, until the process is killed (R1).
  var unpunished: Since?
  /// Pushes whose only report was refused as existing (R4).
  var reportsOfNow: (accepted: Int, refused: Int) = (0, 0)
  var unconfirmedReport: Since?
  var hasReported = false
  var zeroRate: Since?
  /// Who changes the route now.
  var routeRule = Rule.r28
  var rate = 48_000
  var providers = 0
  var hasDelegate = false
  var lastTap: SystemMachine.Tap?
  /// While a line of the app is judged: who ended a call.
  var isAppsLine = false

  // of the phone
  var deaths = 0
  /// Calls that are over, and whether the app said so.
  var endedByApp: [Identifier: Bool] = [:]
  var filtered: Set<Identifier> = []
  var ringing: [Identifier: Instant] = [:]
  var connectedAt: [Identifier: Instant] = [:]
  var foregroundAt: Instant?
  /// When the system last held or ended a call, for a second one.
  var madeRoomAt: Instant?

  /// - Parameter rules: of the phone that made the trace, as far as they are settings.
  public init(_ rules: SystemRules = .strict) {
    self.rules = rules
    var own = rules
    // what may happen is no duty, and a kill is the trace's to show
    (own.killsUnreported, own.repeatsEnds, own.unmutesOnConnect, own.muteBursts, own.headsetFault) = (false, false, false, 0, nil)
    own.activatesAfterUnhold = true
    own.activationTime = .seconds(1_000_000_000)
    own.zeroRateTime = nil
    own.wakesUntilSocketsFail = nil
    // Focus and the block list are the trace's to show, too
    (own.doesNotDisturb, own.blocked, own.hasVoIPBackgroundMode) = (false, [], true)
    machine = SystemMachine(own, random: .seeded(1))
  }

  /// The whole of a file.
  public static func judge(_ bytes: [UInt8], rules: SystemRules = .strict) -> TraceVerdict {
    var (reader, check) = (TraceReader(bytes), TraceCheck(rules))
    do {
      while let next = try reader.next() { try check.check(next) }
    } catch {
      check.verdict.problem = error
    }
    check.finish()
    return check.verdict
  }

  /// The stand-in's log: what it lacks did not happen.
  var isExact: Bool { header?.writer == .standIn }
  /// What was before the trace is not known: a call or an action that appears was there.
  var isPartial: Bool { (header?.dropped ?? 0) > 0 }

  /// - Throws: for a trace that the rules are not about.
  public mutating func check(_ next: TraceReader.Numbered) throws(TraceReader.Problem) {
    if let header = next.header {
      try begin(header, next)
    } else {
      verdict.lines += 1
    }
    let time = base + (next.line.time - .zero)
    advance(to: time)
    position = Position(line: next.number, time: next.line.time)
    if next.line["queue"] == "other" { receivedElsewhere(next.line) }
    switch next.line.who {
    case .app: app(next.line)
    case .system: system(next.line)
    case .user: user(next.line)
    case .network: network(next.line)
    }
  }

  /// What was owed when the trace ended is not judged: it may have come.
  public mutating func finish() {
    verdict.duration = now - .zero
    processEnded(isEnd: true)
  }

  private mutating func begin(_ header: TraceHeader, _ next: TraceReader.Numbered) throws(TraceReader.Problem) {
    if let system = header.system, system != "CallKitSystem" {
      throw TraceReader.Problem(
        line: next.number,
        text: "the call system of this trace is \(system), and these rules are CallKit's: record it with CallKitSystem")
    }
    if self.header != nil { processEnded() }
    verdict.headers.append(header)
    self.header = header
    base = now
    machine.exited()
    isAudioUnknown = isPartial
    if isPartial { hasBegun = true }
    // the SDK's trace begins in a process that runs
    if !isExact { give(.launched) }
  }

  mutating func found(_ rule: Rule, _ side: TraceVerdict.Finding.Side, _ text: String, at position: Position? = nil) {
    verdict.found(.init(rule: rule, side: side, position: position ?? self.position, text: text))
  }
  mutating func confirm(_ rule: Rule) { if verdict.seen[rule] == nil { verdict.seen[rule] = position.line } }
}
