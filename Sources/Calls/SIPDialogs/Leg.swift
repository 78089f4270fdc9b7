import TrunklineBytes
import TrunklineSIP

/// One INVITE usage: its dialog, the state of its INVITE, and the parts that it joins.
///
/// | phase | `answered` | `acknowledged` | `accepted` | `requestCancel` | `end` |
/// |---|---|---|---|---|---|
/// | ringing (inbound) | answered | – | – | – | ending |
/// | answered: our 2xx has no ACK | – | confirmed | – | – | ending |
/// | calling (outbound) | – | – | confirmed | once: CANCEL waits for a provisional response | ending |
/// | confirmed | – | – | – | – | ending |
/// | ending: our BYE is out | – | – | – | – | – |
struct Leg {
  enum Phase { case ringing, calling, answered, confirmed, ending }

  /// The CANCEL of our INVITE (RFC 3261 §9.1).
  enum Cancel: Equatable {
    case none
    case waiting(ReasonValue?)
    case sent
  }

  let id: LegID
  let trunk: String
  private(set) var phase: Phase
  private(set) var dialog: Dialog
  /// The server or client transaction of the INVITE.
  private(set) var inviteTransaction: UInt64?
  /// CSeq of the INVITE.
  private(set) var inviteSequence: UInt32
  /// The INVITE had no offer.
  let isLateOffer: Bool
  private(set) var path: LegPath
  /// Our 2xx until its ACK.
  var answer = UnacknowledgedAnswer()
  var provisionals: ProvisionalResponses
  var offers = OfferExchange()
  var session: SessionExpiry
  var refers = ReferSubscriptions()
  var authentication: DialogAuthentication

  // Outbound only.
  /// Until it is accepted.
  private(set) var invite: OutboundInvite?
  private(set) var cancel = Cancel.none
  private(set) var servers = ServerSelection()
  private(set) var redirects = 0
  var early = EarlyDialogs()

  /// A leg of the peer's INVITE.
  init(
    ringing id: LegID, trunk: String, flow: Flow, dialog: Dialog, transaction: UInt64, sequence: UInt32, isLateOffer: Bool,
    reliability: TrunkRules.Reliability, session: SessionExpiry
  ) {
    (self.id, self.trunk, phase, path, self.dialog) = (id, trunk, .ringing, LegPath(flow), dialog)
    (inviteTransaction, inviteSequence, self.isLateOffer) = (transaction, sequence, isLateOffer)
    (provisionals, self.session, authentication) = (ProvisionalResponses(reliability), session, DialogAuthentication())
  }

  /// A leg of our INVITE.
  init(calling id: LegID, by invite: OutboundInvite, dialog: Dialog, session: SessionExpiry) {
    (self.id, trunk, phase, path, self.dialog) = (id, invite.trunk.name, .calling, LegPath(invite.trunk.flow), dialog)
    (inviteSequence, isLateOffer, self.invite) = (dialog.localSequence, false, invite)
    (provisionals, self.session, servers) = (ProvisionalResponses(), session, ServerSelection(invite.trunk))
    authentication = DialogAuthentication(invite.trunk.credentials)
  }

  /// The dialog of a dead process.
  init(orphan id: LegID, trunk: String, flow: Flow, dialog: Dialog, credentials: Credentials?) {
    (self.id, self.trunk, phase, path, self.dialog) = (id, trunk, .confirmed, LegPath(flow), dialog)
    (inviteSequence, isLateOffer, provisionals, session) = (0, false, ProvisionalResponses(), SessionExpiry())
    authentication = DialogAuthentication(credentials)
  }

  var flow: Flow { path.flow }

  /// No offer of either side is open (RFC 3261 §14.1).
  var isFreeForOffer: Bool { phase == .confirmed && !answer.isWaiting && offers.isIdle }

  /// A failure of the present server, or its silence before timer B, leads to another try.
  var hasAnotherTarget: Bool { servers.hasNext || invite?.failsOverOnSilence == true }

  // MARK: the INVITE

  /// Our 2xx was sent.
  mutating func answered() { if phase == .ringing { phase = .answered } }
  /// The ACK of our 2xx.
  mutating func acknowledged() { if phase == .answered { phase = .confirmed } }

  /// The first 2xx to our INVITE makes the dialog, and ends the early ones.
  mutating func accepted(_ dialog: Dialog) {
    guard phase == .calling else { return }
    phase = .confirmed
    self.dialog = dialog
    invite = nil
    early.removeAll()
  }

  /// BYE is sent.
  mutating func end() { phase = .ending }

  /// False: a CANCEL was requested before, or is too late.
  mutating func requestCancel(_ reason: ReasonValue?) -> Bool {
    guard phase == .calling, cancel == .none else { return false }
    cancel = .waiting(reason)
    return true
  }
  mutating func cancelSent() { cancel = .sent }

  /// Our INVITE goes out, on its next try.
  mutating func inviteSent(_ transaction: UInt64) { inviteTransaction = transaction }

  /// The INVITE is sent again: in the same dialog, with the next CSeq.
  mutating func repeatInvite() {
    dialog.localSequence += 1
    inviteSequence += 1
  }

  /// A 3xx: the INVITE is sent again to another target.
  mutating func redirect(to target: String, _ flow: Flow) {
    redirects += 1
    dialog.remoteTarget = target
    path.use(flow)
    repeatInvite()
  }

  /// The INVITE goes to the next server. Nil: none is left.
  mutating func useNextServer(answered: Bool, target: (Flow) -> String) -> (flow: Flow, refusedConnection: Bool)? {
    guard let next = servers.next(answered: answered) else { return nil }
    path.use(next.flow)
    authentication.restart()
    dialog.remoteTarget = target(next.flow)
    return next
  }

  /// A large INVITE goes to the server on a connection. False: it goes on the present flow.
  mutating func useConnection(bytes: Int, refusing: DatagramOnlyServers, at now: Instant) -> Bool {
    guard let large = servers.connection(bytes: bytes, from: flow, refusing: refusing, at: now) else { return false }
    path.use(large)
    return true
  }

  // MARK: the dialog

  /// A request of the peer. False: it is out of order (RFC 3261 §12.2.2).
  mutating func received(sequence: UInt32) -> Bool { dialog.received(sequence: sequence) }

  /// The dialog of our next request, in an early dialog if `fork` is its tag.
  mutating func nextRequest(fork: String?) -> Dialog {
    if let fork, let early = early.nextRequest(fork) { return early }
    dialog.localSequence += 1
    return dialog
  }

  /// The peer's Contact of a request or response that refreshes the target (RFC 3261 §12.2). False: it is the same.
  mutating func refresh(target: String) -> Bool {
    guard dialog.remoteTarget != target else { return false }
    dialog.remoteTarget = target
    return true
  }

  /// The flow of a request in the dialog leads back to its sender. True if it changes.
  mutating func follow(_ request: Request) -> Bool {
    if request.isTranslated != (dialog.isTranslated ?? false) { dialog.isTranslated = request.isTranslated }
    let last = flow
    guard path.follow(request.flow) else { return false }
    // An edge is found by its Record-Route.
    if flow.remote.ip != last.remote.ip, !request.isFromEdge { dialog.followsConnection = true }
    return true
  }

  /// Our address has changed.
  mutating func move(to flow: Flow) { path.move(to: flow) }

  mutating func connectionLost(to remote: SocketAddress) {
    // The peer's Contact, if that is the same host. A connection that we opened can be opened again.
    let (isOutbound, target) = (id.isOutbound, address(of: dialog.remoteTarget))
    let hasChanged = path.connectionLost(to: remote) { flow in
      guard !isOutbound, let target, target.ip == flow.remote.ip else { return flow }
      var flow = flow
      flow.remote = target
      return flow
    }
    guard hasChanged else { return }
    answer.move(to: path.flow)
    dialog.followsConnection = nil
  }
}
