import TrunklineBytes
public import TrunklinePhoneLog

/// Runs a trace through `SystemMachine` and reports where trace and rules differ.
///
/// The machine receives the app's events; the check compares the machine's outputs with what the system did. Inputs that the
/// trace does not contain are derived from its outputs: a tap from its action, the moment of an activation from the activation.
/// So the machine runs without its timers for activation and begin, and without the queue that performs: actions that it expects
/// are `owed` until the trace contains them.
///
/// The stand-in's log contains taps and all outputs of the system; there an action without a cause contradicts a rule. In the
/// SDK's trace the user is assumed to be the cause, where a user could be.
public struct TraceCheck: Sendable {
  typealias Rule = SystemMachine.Rule
  typealias Position = TraceVerdict.Position

  /// Time limit of the system for an immediate output.
  static let patience = Duration.seconds(5)
  /// Tolerance of a rule's times.
  static let slack = Duration.seconds(1)

  /// An action that the system must request now, or once the actions before it have ended.
  struct Owed: Sendable {
    var request: SystemMachine.Request
    var rule: Rule
    var due: Instant
    var position: Position
    /// The transaction or tap; actions of one group follow in their order.
    var group: Int
  }
  /// Outputs that the system owes, besides actions.
  enum Output: Hashable, Sendable {
    case reported(Identifier), requested(Int), extensionPushed(Int)
    case didDeactivate, didReset, capture, microphonePrompt, socketsDie, unlockedOnce, startCall, route(String)
  }
  struct Awaited: Sendable {
    var output: Output
    /// The error of the machine's answer.
    var code: Int?
    var rule: Rule
    /// Nil: it may follow at any time, or never.
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

  /// The machine's time; the traces of one file follow each other.
  var now = Instant.zero
  private var base = Instant.zero
  var position = Position(line: 0, time: .zero)

  // state of the running process
  var header: TraceHeader?
  var hasBegun = false
  /// The provider's first use.
  var firstUse: Since?
  var owed: [Owed] = []
  var awaited: [Awaited] = []
  var group = 0
  /// The trace's action numbers, by which actions are completed.
  var actions: [Int: SystemMachine.ActionID] = [:]
  /// Actions that began before the previous one was completed.
  var overlapping: [Int: SystemMachine.Pending] = [:]
  var lastCompletion: Since?
  /// Actions of calls that began before the trace, or that are unknown.
  var foreign: Set<Int> = []
  /// A foreign action was completed: whether audio is active is then unknown.
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
  /// The rule that explains the current change of the route.
  var routeRule = Rule.r28
  var rate = 48_000
  var providers = 0
  var hasDelegate = false
  var lastTap: SystemMachine.Tap?
  /// True while a line of the app is judged: a call that ends meanwhile was ended by the app.
  var isAppsLine = false

  // state of the phone
  var deaths = 0
  /// Ended calls; true: the app reported the end.
  var endedByApp: [Identifier: Bool] = [:]
  var filtered: Set<Identifier> = []
  var ringing: [Identifier: Instant] = [:]
  var connectedAt: [Identifier: Instant] = [:]
  var foregroundAt: Instant?
  /// When the system last held or ended a call to free a slot for a second one.
  var madeRoomAt: Instant?

  /// - Parameter rules: the settings of the phone that made the trace, as far as they are known.
  public init(_ rules: SystemRules = .strict) {
    self.rules = rules
    var own = rules
    // optional behaviour is not owed, and kills are read from the trace
    (own.killsUnreported, own.repeatsEnds, own.unmutesOnConnect, own.muteBursts, own.headsetFault) = (false, false, false, 0, nil)
    own.activatesAfterUnhold = true
    own.activationTime = .seconds(1_000_000_000)
    own.zeroRateTime = nil
    own.wakesUntilSocketsFail = nil
    // refusals by Focus and the block list are read from the trace, too
    (own.doesNotDisturb, own.blocked, own.hasVoIPBackgroundMode) = (false, [], true)
    machine = SystemMachine(own, random: .seeded(1))
  }

  /// Judges a whole file.
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

  /// True for the stand-in's log, which is complete: an event that it lacks did not happen.
  var isExact: Bool { header?.writer == .standIn }
  /// True if the start of the trace was dropped: an unknown call or action may have begun before it.
  var isPartial: Bool { (header?.dropped ?? 0) > 0 }

  /// - Throws: for a trace to which the rules do not apply.
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

  /// Outputs owed when the trace ends are not judged: they may have followed.
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
    // the SDK's trace begins in a running process
    if !isExact { give(.launched) }
  }

  mutating func found(_ rule: Rule, _ side: TraceVerdict.Finding.Side, _ text: String, at position: Position? = nil) {
    verdict.found(.init(rule: rule, side: side, position: position ?? self.position, text: text))
  }
  mutating func confirm(_ rule: Rule) { if verdict.seen[rule] == nil { verdict.seen[rule] = position.line } }
}
