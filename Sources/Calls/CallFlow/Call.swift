import AppProtocol
import AppSessions
import Bytes
import MediaSession
import SDP
import SIP
import SIPDialogs

/// One call: a trunk leg, the app legs of the devices that ring, and what joins them. Its rules stand in the extensions, one
/// file a subject.
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
///     all three  nobody came, and a rule says where else  → diverting   call.cancel{diverted}; a failed winner: call.ended
///     diverting  another user                             → parked      call.offer to that user's devices
///     diverting  a number: 18x                            → diverting   180, 183 with its early media
///     diverting  a number: 200; a recording               → connected   connect, 200
///     diverting  a number: 300…699, 45 s                  → ended       final response
///     connected  BYE, call.end, legs lost, 4 h, no ACK    → ended       BYE (not after BYE), call.ended
///
/// Outgoing:
///
///     starting   gate opens and start line on disk        → ready       INVITE
///     starting   5 s, media.fail, call.end                → ended       call.ended, no INVITE
///     ready      100, 18x                                 → progress    call.progress, early media
///     both       200                                      → connected   connect, call.connected
///     both       300…699, call.end, 180 s                 → ended       CANCEL (not after a final response), call.ended
///     connected  as incoming
///
/// `ended` takes no input but the final statistics; then the record is written and only the tombstone is left. What does not
/// fit the state crossed something on its way: a request gets `err{gone}` or `err{badState}`, everything else is ignored.
struct Call {
  let id: CallID
  let direction: CallDirection
  /// Whose call it is; while it rings for several, the first of them.
  private(set) var user: String
  /// Whom it rings for.
  private(set) var targets: [String]
  /// Whom it rang for before it was diverted.
  private(set) var formerUsers: [String] = []
  let session: MediaSessionID
  /// Of an outgoing call; of an incoming one where none is configured.
  let account: String
  /// Of an incoming call, for each user whom it rings for: only devices that are logged in to it ring.
  private(set) var accounts: [String: String] = [:]
  /// The route's, for users without one of their own.
  var routeAccount: String?
  /// As the app sees the parties.
  var from: Handle
  var to: Handle
  /// As the record holds them.
  let callerNumber: String
  let calledNumber: String
  /// Whom the call was for before it was diverted to us, the latest first.
  var divertedFrom: [Handle] = []
  /// Incoming: the caller withholds the number. Outgoing: the user does.
  var isPrivate = false
  /// Identity header fields (RFC 8224): of the trunk's INVITE, or of the app for ours.
  var identities: [SignedIdentity] = []
  /// What the verifier said of them: A, B or C.
  var attestation: String?
  /// The devices are told when the verifier has answered, or after its deadline.
  var isVerifying = false
  /// The INVITE of an incoming call, for as long as its media may yet have to be reserved, and what it said of diversions.
  var invite: InboundInvite?
  var diversions = Diversions()
  var diversionsBefore = 0
  var diversionsMade: [CallRecord.Diversion] = []
  /// Whom it is for is not known yet.
  var asking: RouteAsking?
  /// A diversion that is to begin.
  var wish: DiversionWish?
  /// What is played in place of an answer.
  var recording: (wish: DiversionWish, Diversions.Recording)?
  /// Wake tokens of it are about.
  var wasPushed = false

  private(set) var state: CallState
  private(set) var stateSince: Instant
  var timers = CallTimers()
  /// When each stage was first reached.
  private(set) var times: [CallStage: Instant] = [:]

  /// Never empty; see `Call+Legs.swift`.
  var legs: [TrunkLeg]
  /// Diversions, REFERs and Replaces that this call has followed.
  var transfers = 0
  /// Max-Forwards of the INVITE that made it; a leg made for it sends one less.
  var maxForwards = 70
  /// Our own REFER is on its way.
  var isTransferring = false
  var devices: [DeviceLeg] = []
  /// Devices that can be woken, whether they were or not.
  var pushes: [DevicePush] = []
  /// Why the last push failed, for the record.
  var pushFailure: String?
  /// Exactly one entry for each device that was ever told of the call and for which it is over.
  var terminals: [DeviceKey: Terminal] = [:]
  /// The device that has the call.
  var winner: DeviceKey?
  var offeredDevices = 0
  var nextAppLeg: UInt32 = 1
  var reservation: MediaReservation?

  var isJournalled = false
  var isHeldByApp = false
  var isMuted = false
  var pendingDigits: [CallDTMF] = []
  /// How the devices' refusals add up: the final response follows from it.
  var declines = Declines()
  var end: CallRecord.End?
  /// What devices hear of the end that had no part in it.
  var reasonForOthers: EndReason?

  struct Declines { var declined = 0, busy = 0, blocked = 0, filtered = 0, unusable = 0, incapable = 0 }

  init(
    id: CallID, direction: CallDirection, user: String, session: MediaSessionID, account: String,
    from: Handle,
    to: Handle, callerNumber: String, calledNumber: String, trunkLeg: TrunkLeg, at now: Instant
  ) {
    (self.id, self.direction, self.user, self.session) = (id, direction, user, session)
    targets = user.isEmpty ? [] : [user]
    (self.account, self.from, self.to, legs) = (account, from, to, [trunkLeg])
    (self.callerNumber, self.calledNumber) = (
      String(callerNumber.prefix(Limits.textCharacters)), String(calledNumber.prefix(Limits.textCharacters))
    )
    state = direction == .incoming ? .parked : .starting
    stateSince = now
  }

  /// Nobody has the call yet: the lock is free.
  var isUndecided: Bool { (state == .parked || state == .ringing) && wish == nil }
  var isLive: Bool { state != .ended }

  /// Whether a user's devices may know of it.
  func concerns(_ user: String) -> Bool { targets.contains(user) || formerUsers.contains(user) }
  var concerned: [String] { targets + formerUsers }

  /// What devices of this user are told.
  func account(of user: String) -> String { accounts[user] ?? account }

  func isFor(_ accounts: [String], of user: String) -> Bool { self.accounts[user].map(accounts.contains) ?? true }

  mutating func belongs(to account: String?, of user: String) { accounts[user] = account }

  mutating func ring(for users: [String]) {
    formerUsers += targets.filter { !formerUsers.contains($0) }
    targets = users
    if let first = users.first { user = first }
  }
  /// Of several users one has it.
  mutating func won(by user: String) { self.user = user }

  /// Runs a change in place.
  mutating func apply(_ body: (inout Call, inout Turn) -> Void, _ turn: inout Turn) { body(&self, &turn) }

  mutating func enter(_ next: CallState, _ turn: inout Turn) {
    guard state != next else { return }
    turn.statistics.states[state, default: 0] -= 1
    turn.statistics.states[next, default: 0] += 1
    (state, stateSince) = (next, turn.now)
  }

  /// Notes a stage in timeline and trace; its first time counts for the record.
  mutating func reach(_ stage: CallStage, at instant: Instant? = nil, detail: String? = nil, _ turn: inout Turn) {
    let at = instant ?? turn.now
    if times[stage] == nil { times[stage] = at }
    turn.output.actions.append(.trace(id, stage, at: at, detail: detail))
  }

  /// The same, but only the first time.
  mutating func reachOnce(_ stage: CallStage, at instant: Instant? = nil, detail: String? = nil, _ turn: inout Turn) {
    if times[stage] == nil { reach(stage, at: instant, detail: detail, &turn) }
  }

  func index(of key: DeviceKey) -> Int? { devices.firstIndex { $0.key == key } }
  func index(of leg: AppLegID) -> Int? { devices.firstIndex { $0.id == leg } }
  var winnerIndex: Int? { winner.flatMap { index(of: $0) } }

  /// A deadline passed.
  mutating func expired(_ timer: CallTimer, _ turn: inout Turn) {
    switch timer {
    case .journal:
      turn.statistics.journalLate += 1
      journalled(&turn)
    case .ring: ringTimedOut(&turn)
    case .unreached: unreached(&turn)
    case .route: turn.outcomes.append(.routeTimedOut)
    case .push: pushesDue(&turn)
    case .early180: ringEarly(&turn)
    case .gate: gateTimedOut(&turn)
    case .restart: failMedia("DTLS failed", &turn)
    case .mediaActive: startPlayout(&turn)
    case .appGrace: end(.networkLost, by: .app, &turn)
    case .trunkPing: trunkPingDue(&turn)
    case .longestCall: end(.server, by: .gateway, detail: "longest call", &turn)
    case .softPause: playPendingDigits(&turn)
    case .vanished: endIfNobodyRings(&turn)
    case .finalStatistics, .verification: break  // the machine's own
    }
  }
}
