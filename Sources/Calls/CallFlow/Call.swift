import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

/// One call: its trunk legs, the app legs of its devices, and their connection. The state is in the parts, each a struct with
/// private state and a table of its own (docs/design/call-machine.md, The parts of a call); the extensions pass the outputs of one
/// part to the others, one file per subject. This file has the state of the whole call, and asks the parts which timer is due.
///
/// Incoming:
///
///     state      event                                    → state       actions
///     parked     first call.ringing                       → ringing     180
///     parked     call.answer (the lock)                   → answering   ok{won}, cancel to the others, gate deadline
///     ringing    call.answer (the lock)                   → answering   the same
///     both       CANCEL, 45 s, all devices out, reject    → ended       final response (not after CANCEL), call.cancel to each
///     answering  gate opens                               → connected   connect, 200, call.connected
///     answering  deadline, media.fail, wrong fingerprint  → ended       480 Q.850;cause=41, call.ended
///     answering  CANCEL, call.end                         → ended       call.ended
///     all three  no device answered, a rule diverts it    → diverting   call.cancel{diverted}; a failed winner: call.ended
///     diverting  another user                             → parked      call.offer to that user's devices
///     diverting  a number: 18x                            → diverting   180, 183 with its early media
///     diverting  a number: 200; a recording               → connected   connect, 200
///     diverting  a number: 300…699, 45 s                  → ended       final response
///     connected  BYE, call.end, legs lost, 4 h, no ACK    → ended       BYE (not after BYE), call.ended
///
/// Outgoing:
///
///     starting   gate opens and journal entry on disk        → ready       INVITE
///     starting   5 s, media.fail, call.end                → ended       call.ended, no INVITE
///     ready      100, 18x                                 → progress    call.progress, early media
///     both       200                                      → connected   connect, call.connected
///     both       300…699, call.end, 180 s                 → ended       CANCEL (not after a final response), call.ended
///     connected  as incoming
///
/// Outgoing, made by a program (`Input.originate`): as incoming until a device has answered, without messages to the trunk; then
///
///     answering  gate opens and journal entry on disk        → ready       INVITE
///     answering  deadline, media.fail, call.end           → ended       call.ended, no INVITE
///     ready      as outgoing
///
/// The same with the number first:
///
///     starting   journal entry on disk                       → ready       INVITE
///     ready      100, 18x                                 → progress    –
///     both       200                                      → parked      ringback to the number, call.offer to each device
///     both       300…699, 180 s, hung up                  → ended       CANCEL (not after a final response)
///     parked     as incoming until a device has answered, without 180
///     answering  gate opens                               → connected   connect, call.connected
///     these      BYE of the number                        → ended       call.cancel or call.ended {callerCancelled}
///     these      no device answers, no media              → ended       BYE
///
/// `ended` accepts no input but the final statistics; then the record is written and only the tombstone is left. An input that
/// does not fit the state crossed another event: a request gets `err{gone}` or `err{badState}`, everything else is ignored.
struct Call {
  let id: CallID
  let direction: CallDirection
  /// The media session of the first trunk leg and of the devices.
  let session: MediaSessionID
  var users: Users
  var parties: Parties
  /// The INVITE and the offer of an incoming call, once it has media.
  private(set) var intake: Intake?
  /// The media session's ports and identity; nil: the call has no media.
  private(set) var reservation: MediaReservation?
  var route = PendingRoute()
  var diversions = CallDiversions()
  private(set) var state: CallState
  private(set) var stateSince: Instant
  var journal = CallJournal()
  var ringClock = RingClock()
  var gate = MediaGate()
  /// When each stage was first reached.
  private(set) var times: [CallStage: Instant] = [:]
  /// Never empty; see `Call+Legs.swift`.
  var legs: TrunkLegs
  var transfers = Transfers()
  var devices = DeviceLegs()
  var pushes = DevicePushes()
  /// Exactly one entry for each device that was notified of the call and for which it is over.
  var terminals = Terminals()
  var audio = AppAudio()
  var digits = DigitQueue()
  var watch = AudioWatch()
  var stream = ProgramStream()
  var recordings = Recordings()
  var conclusion = CallConclusion()
  var ringReport = RingReport()

  init(
    id: CallID, direction: CallDirection, session: MediaSessionID, users: Users, parties: Parties, trunkLeg: TrunkLeg,
    at now: Instant
  ) {
    (self.id, self.direction, self.session) = (id, direction, session)
    (self.users, self.parties, legs) = (users, parties, TrunkLegs(trunkLeg))
    let rings = direction == .incoming || parties.origination?.first == .user
    state = rings ? .parked : .starting
    stateSince = now
  }

  mutating func receive(_ intake: Intake) { self.intake = intake }
  /// The call has media.
  mutating func reserve(_ reservation: MediaReservation) { self.reservation = reservation }
  /// The candidates for apps changed.
  mutating func moveApps(to candidates: [SocketAddress]) { reservation?.appCandidates = candidates }

  /// No device has the call yet: the lock is free.
  var isUndecided: Bool { (state == .parked || state == .ringing) && diversions.planned == nil }
  var isLive: Bool { state != .ended }

  mutating func enter(_ next: CallState, _ step: inout Step) {
    guard state != next else { return }
    step.statistics.states[state, default: 0] -= 1
    step.statistics.states[next, default: 0] += 1
    state = next
    stateSince = step.now
  }

  /// Notes a stage in timeline and trace; its first time counts for the record.
  mutating func mark(_ stage: CallStage, at instant: Instant? = nil, detail: String? = nil, _ step: inout Step) {
    let at = instant ?? step.now
    if times[stage] == nil { times[stage] = at }
    step.output.actions.append(.trace(id, stage, at: at, detail: detail))
    report(stage, at: at, &step)
  }

  /// The same, but only the first time.
  mutating func markOnce(_ stage: CallStage, at instant: Instant? = nil, detail: String? = nil, _ step: inout Step) {
    if times[stage] == nil { mark(stage, at: instant, detail: detail, &step) }
  }

  func index(of key: DeviceKey) -> Int? { devices.index(of: key) }
  func index(of leg: AppLegID) -> Int? { devices.index(of: leg) }
  /// The device that has the call.
  var winner: DeviceKey? { devices.winner }
  var winnerIndex: Int? { devices.winnerIndex }

  /// When the call's next timer is due; nil: none is set.
  var nextDeadline: Instant? { nextTimer?.at }
  private var nextTimer: DueTimer? {
    .earliest(
      journal.next, ringClock.next, route.next, pushes.next, gate.next, watch.next, legs.next, digits.next,
      conclusion.next)
  }

  /// The call has ended: nothing waits but its record.
  mutating func closeClocks() {
    journal.close()
    ringClock.close()
    route.end()
    gate.close()
    watch.stop()
    legs.stop()
    digits.removeAll()
  }

  /// Dequeues one timer that is due, earliest first.
  mutating func popDue(at now: Instant) -> CallTimer? {
    guard let due = nextTimer, due.at <= now else { return nil }
    switch due.timer {
    case .journal, .push, .early180, .softPause: break  // its handler always moves it
    case .ring, .unreached, .vanished, .verification: ringClock.stop(due.timer)
    case .route: route.expired()
    case .gate, .restart, .mediaActive: gate.stop(due.timer)
    case .appGrace: watch.stop()
    case .trunkPing: legs.stop()
    case .longestCall, .finalStatistics: conclusion.stop(due.timer)
    }
    return due.timer
  }

  /// A deadline passed.
  mutating func expired(_ timer: CallTimer, _ step: inout Step) {
    switch timer {
    case .journal:
      step.statistics.journalLate += 1
      journalled(&step)
    case .ring: ringTimedOut(&step)
    case .unreached: unreached(&step)
    case .route: step.outcomes.append(.routeTimedOut)
    case .push: pushesDue(&step)
    case .early180: ringEarly(&step)
    case .gate: gateTimedOut(&step)
    case .restart: failMedia("DTLS failed", &step)
    case .mediaActive: startPlayout(&step)
    case .appGrace: end(.networkLost, by: .app, &step)
    case .trunkPing: trunkPingDue(&step)
    case .longestCall where isTest: end(.remoteHangup, by: .gateway, detail: "test call", &step)
    case .longestCall: end(.server, by: .gateway, detail: "longest call", &step)
    case .softPause: play(digits.softPauseExpired(step), &step)
    case .vanished: endIfNoDeviceRings(&step)
    case .finalStatistics, .verification: break  // handled by the machine
    }
  }
}
