import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSDP
import TrunklineSIP
import TrunklineSIPDialogs

/// One call: its trunk legs, the app legs of its devices, and their connection. The rules are in the extensions, one file per
/// subject.
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
  var intake: Intake?
  /// A webhook has not yet named the call's users.
  var routeQuery: RouteQuery?
  var diversions = DiversionState()
  private(set) var state: CallState
  private(set) var stateSince: Instant
  var timers = CallTimers()
  /// When each stage was first reached.
  private(set) var times: [CallStage: Instant] = [:]
  /// Never empty; see `Call+Legs.swift`.
  var legs: [TrunkLeg]
  var transfers = Transfers()
  var devices: [DeviceLeg] = []
  /// Devices that can be woken, whether they were or not.
  var pushes: [DevicePush] = []
  /// Exactly one entry for each device that was notified of the call and for which it is over.
  var terminals: [DeviceKey: Terminal] = [:]
  /// The device that has the call.
  var winner: DeviceKey?
  var appMedia = AppMedia()
  var bookkeeping = Bookkeeping()

  init(
    id: CallID, direction: CallDirection, session: MediaSessionID, users: Users, parties: Parties, trunkLeg: TrunkLeg,
    at now: Instant
  ) {
    (self.id, self.direction, self.session) = (id, direction, session)
    (self.users, self.parties, legs) = (users, parties, [trunkLeg])
    let rings = direction == .incoming || parties.origination?.first == .user
    state = rings ? .parked : .starting
    stateSince = now
  }

  /// No device has the call yet: the lock is free.
  var isUndecided: Bool { (state == .parked || state == .ringing) && diversions.planned == nil }
  var isLive: Bool { state != .ended }

  /// Runs a change in place.
  mutating func apply(_ body: (inout Call, inout Step) -> Void, _ step: inout Step) { body(&self, &step) }

  mutating func enter(_ next: CallState, _ step: inout Step) {
    guard state != next else { return }
    step.statistics.states[state, default: 0] -= 1
    step.statistics.states[next, default: 0] += 1
    (state, stateSince) = (next, step.now)
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

  func index(of key: DeviceKey) -> Int? { devices.firstIndex { $0.key == key } }
  func index(of leg: AppLegID) -> Int? { devices.firstIndex { $0.id == leg } }
  var winnerIndex: Int? { winner.flatMap { index(of: $0) } }

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
    case .softPause: playPendingDigits(&step)
    case .vanished: endIfNoDeviceRings(&step)
    case .finalStatistics, .verification: break  // handled by the machine
    }
  }
}
