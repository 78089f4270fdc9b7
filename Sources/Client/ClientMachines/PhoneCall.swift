import TrunklineAppProtocol
import TrunklineBytes

/// A call as the phone knows it, even before and after the gateway knows it: what the app shows of it, its own machine from the
/// offer or the dialling on, and its parts. The phone changes a part only by its operations.
///
/// | state | `offered`, `dial` | `handle` | `tap` | `end` | `discard` |
/// |---|---|---|---|---|---|
/// | live, without its machine | its machine begins | – | tapped; not for an outgoing call | over | – |
/// | live | the present machine stays | its actions | once | over | without its machine |
/// | over | – | – | – | – | – |
struct PhoneCall: Sendable {
  let isOutgoing: Bool
  private let options: CallOptions
  var screen: CallScreen
  var link = CallLink()
  var answering = Answering()
  var hold = CallSwitch()
  var mute = MuteSwitch()
  var media = MediaRecovery()

  /// Nil before the gateway's offer.
  private var machine: ClientCall?
  private(set) var isOver = false
  /// Why it ended, unless its own machine knows that.
  private var reason: EndReason?
  private(set) var peer: Handle
  private(set) var capabilities: CallCapabilities?
  private var account: String?
  private var details = CallDetails()
  /// The gateway's time of `call.connected`.
  private(set) var connectedAt: Int64?
  private var isHeldByPeer = false
  private var quality: Quality?
  private var refusal: ErrorCode?
  private var lacksMicrophone = false
  /// The call's push, whose token rejects it without a session.
  private(set) var push: PhoneMachine.Push?
  /// When its push arrived; nil: it had none.
  private(set) var pushedAt: Instant?
  private(set) var isConfigured = false

  /// An incoming call.
  init(from peer: Handle, isReported: Bool = false) {
    (isOutgoing, self.peer, options, screen) = (false, peer, CallOptions(), CallScreen(isReported ? .reporting : .unreported))
  }

  /// An outgoing call, whose start the system is to perform.
  init(to peer: Handle, _ options: CallOptions) {
    (isOutgoing, self.peer, self.options, screen) = (true, peer, options, CallScreen(.reporting))
  }

  // MARK: state

  /// Its own machine's state; nil before the offer.
  var state: ClientCall.State? { machine?.state }
  var hasMachine: Bool { machine != nil }
  /// The reason that its own machine has ended for.
  var machineReason: EndReason? { machine?.reason }
  /// An incoming call that was not answered.
  var ringsHere: Bool { !isOutgoing && (machine == nil || state == .ringing) }
  /// The gateway cannot know the call yet.
  var isYetToStart: Bool { isOutgoing && (machine == nil || state == .starting) }
  /// A call that was dialled before the login.
  var waitsForLogin: Bool { isOutgoing && machine == nil && screen.state == .shown }
  /// False for a wake that no screen shows and whose node has not offered the call: that node may be dead, so it blocks no other
  /// caller.
  var holdsLine: Bool { isOutgoing || machine != nil || screen.isReported }
  /// A new call may be the same caller's, through another node.
  var givesUpLine: Bool { state == .ringing && answering.tappedAt == nil && link.isUnreachable }
  /// The call's audio may be heard: it is connected, or is being connected to the callee, and it is not held.
  var isAudible: Bool {
    switch state {
    case .connected, .ready, .progress: !hold.isOn
    default: false
    }
  }
  var deadlines: [Instant?] { isOver ? [] : [link.deadline, answering.deadline, mute.dueAt] }

  func info(_ id: Identifier, group: Int?) -> CallInfo {
    let early: ClientCall.State = isOutgoing ? .starting : answering.tappedAt == nil ? .ringing : .answering
    var info = CallInfo(id: id, isOutgoing: isOutgoing, peer: peer, state: isOver ? .ended : state ?? early)
    info.details = details
    info.account = account
    info.capabilities = capabilities
    info.connectedAt = connectedAt
    info.isMuted = mute.isOn
    info.isHeld = hold.isOn
    info.isHeldByPeer = isHeldByPeer
    info.codec = machine?.codec
    info.quality = quality
    info.refusal = refusal
    info.reason = isOver ? machine?.reason ?? reason : nil
    info.lacksMicrophone = lacksMicrophone
    info.isReconnecting = !isOver && media.isReconnecting
    info.group = isOver ? nil : group
    return info
  }

  // MARK: its own machine

  /// Drops inputs after the end of the call: its media is closed.
  mutating func handle(_ input: ClientCall.Input) -> [ClientCall.Action] {
    var actions: [ClientCall.Action] = []
    if !isOver { machine?.handle(input, into: &actions) }
    return actions
  }

  /// The machine of an outgoing call begins.
  mutating func dial(_ id: Identifier, audio: MediaActive) -> [ClientCall.Action] {
    guard waitsForLogin, !isOver else { return [] }
    var call = ClientCall(outgoing: id, to: peer, options, audio: audio)
    var actions: [ClientCall.Action] = []
    call.dial(into: &actions)
    machine = call
    return actions
  }

  /// The gateway offers the call, first or again. `describe` comes before.
  mutating func offered(_ id: Identifier, _ offer: Answering.Offer, audio: MediaActive) {
    guard !isOver else { return }
    link.offered()
    if machine == nil { machine = ClientCall(incoming: id, from: peer, audio: audio) }
    answering.offered(offer)
  }

  /// The offer, once the call is on the screen.
  mutating func claimOffer() -> Answering.Offer? { screen.state == .shown && !isOver ? answering.claimOffer() : nil }

  /// This device cannot show the call.
  mutating func discard() { if !isOver { machine = nil } }

  // MARK: the gateway

  /// - Parameter isMeasured: the delivery of the push is measured.
  mutating func pushed(_ push: PhoneMachine.Push, isMeasured: Bool, at now: Instant) {
    (self.push, details, pushedAt) = (push, push.details, isMeasured ? now : nil)
    link.waits(from: now)
  }

  /// True if the caller or the capabilities have changed.
  mutating func describe(
    from peer: Handle, account: String, _ capabilities: CallCapabilities?, _ details: CallDetails
  ) -> Bool {
    defer { (self.peer, self.account, self.capabilities, self.details) = (peer, account, capabilities, details) }
    return self.peer != peer || self.capabilities != capabilities
  }

  mutating func update(_ update: CallUpdate) {
    if let from = update.from { peer = from }
    if let its = update.caps { capabilities = its }
  }

  /// The gateway has normalised the dialled number. True if it is another one.
  mutating func dialled(as to: Handle) -> Bool {
    guard !isOver, (peer.k, peer.h) != (to.k, to.h) else { return false }
    peer = Handle(k: to.k, h: to.h, n: to.n ?? peer.n)
    return true
  }

  mutating func connected(at time: Int64?) { connectedAt = time }
  mutating func peerHolds(_ isOn: Bool) { isHeldByPeer = isOn }
  mutating func measured(_ quality: Quality) { self.quality = quality }
  mutating func refused(_ code: ErrorCode) { refusal = code }

  mutating func loseSession(at now: Instant) {
    guard !isOver else { return }
    link.lost(isConnected: state == .connected, hasFailedMedia: media.waitsForSession, at: now)
  }

  // MARK: the user and the device

  /// The account that the app has chosen for its outgoing call.
  mutating func uses(account: String?) { self.account = account }

  /// False: the call was answered before, or is an outgoing one.
  mutating func tap(_ action: SystemActionID, timeout: Duration?, at now: Instant) -> Bool {
    guard !isOutgoing, answering.tap(timeout: timeout, at: now) else { return false }
    screen.begin(action)
    link.tapped(at: now)
    return true
  }

  /// The microphone is denied.
  mutating func hasNoMicrophone() { lacksMicrophone = true }

  /// True the first time: audio is configured once per call.
  mutating func configureAudio() -> Bool {
    defer { isConfigured = true }
    return !isConfigured
  }

  // MARK: the end

  /// Why the call is about to end.
  mutating func ends(because why: EndReason) { reason = why }
  /// The same, unless the reason is known.
  mutating func ends(atLeastBecause why: EndReason) { reason = reason ?? why }

  /// No message about the call came by its deadline.
  mutating func giveUp() {
    if !isOutgoing { link.giveUp() }
    if link.hasNoSession, state == .connected { reason = .networkLost }
  }

  /// False: it has ended before.
  mutating func end(isSilent: Bool) -> Bool {
    guard !isOver else { return false }
    isOver = true
    answering.ended()
    if machine?.reason == nil, reason == nil { reason = isSilent ? .localEnd : .unknown }
    return true
  }
}
