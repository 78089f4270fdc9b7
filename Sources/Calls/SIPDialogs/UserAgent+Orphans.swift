import TrunklineBytes
import TrunklineSIP

/// Legs of a dead process: no other process would notify their peers that they have ended. A carrier keeps such a call open, and
/// charges for it, until its own timer ends it.
extension UserAgent {
  /// The data that closes a leg after this process died; nil if there is nothing to close.
  public func orphan(of id: LegID, withholdsCaller: Bool = false) -> OrphanedLeg? {
    guard let leg = legs[id]?.value else { return nil }
    var orphan: OrphanedLeg
    switch leg.phase {
    case .answered, .confirmed: orphan = OrphanedLeg(confirmed: leg)
    case .ending: return nil
    case .ringing:
      guard let reply = leg.inviteTransaction.flatMap({ servers[$0]?.value.reply }) else { return nil }
      let flow = reply.flow.transport.isReliable ? reply.onNewConnection : reply.flow
      orphan = OrphanedLeg(.ringing, leg, flow, reply.message, topVia: reply.topVia)
    case .calling:
      guard let client = leg.inviteTransaction.flatMap({ clients[$0]?.value }), let invite = try? Message(client.request) else {
        return nil
      }
      orphan = OrphanedLeg(.calling, leg, client.flow, invite, topVia: nil)
    }
    if withholdsCaller { orphan.withholdCaller() }
    return orphan
  }

  /// Closed a few at a time: of a thousand messages at once many would be lost.
  mutating func adopt(_ orphans: [(leg: OrphanedLeg, credentials: Credentials?)]) {
    self.orphans += orphans
    timers.schedule(.orphans, at: now)
  }

  mutating func closeOrphans() {
    for orphan in orphans.prefix(Limits.orphansAtOnce) { close(orphan.leg, orphan.credentials) }
    orphans.removeFirst(min(orphans.count, Limits.orphansAtOnce))
    if !orphans.isEmpty { timers.schedule(.orphans, at: now + Interval.orphans) }
  }

  private mutating func close(_ orphan: OrphanedLeg, _ credentials: Credentials?) {
    guard orphan.isWellFormed, let flow = orphan.flow else { return }
    switch orphan.phase {
    case .ringing: refuse(orphan, flow)
    case .calling: cancel(orphan, flow)
    case .confirmed: endDialog(orphan, flow, credentials)
    }
    counters.orphansClosed[orphan.phase, default: 0] += 1
  }

  private mutating func refuse(_ orphan: OrphanedLeg, _ flow: Flow) {
    guard let invite = orphan.invite, let message = try? Message(Array(invite.utf8)), let envelope = try? message.checked(),
      let reply = Reply(message, source: flow, trunk: orphan.trunk)
    else { return }
    let key = serverKey(message, envelope, orphan.trunk)
    guard serverIndex[key] == nil, servers.count < Limits.serverTransactions else { return }
    let transaction = beginServer(key, .invite, reply)
    respond(transaction, ResponseContent(code: 503, tag: orphan.tag))
  }

  private mutating func cancel(_ orphan: OrphanedLeg, _ flow: Flow) {
    guard let invite = orphan.invite, let message = try? Message(Array(invite.utf8)), let envelope = try? message.checked(),
      let branch = envelope.via.branch.map(message.text), clients.count < Limits.clientTransactions
    else { return }
    let id = nextNumber()
    var client = ClientTransaction(
      key: ClientKey(branch: branch, method: .invite), purpose: .abandoned, leg: nil, trunk: orphan.trunk, flow: flow,
      isReliable: flow.transport.isReliable, request: Array(invite.utf8))
    // Its 100 may have reached the dead process. If none came, the INVITE is old enough not to be overtaken (RFC 3261 §9.1).
    client.phase = .proceeding
    clients[id] = Box(client)
    clientIndex[client.key] = id
    cancelAbandoned(client, id)
  }

  /// The dead process may have sent more requests in the dialog than the journal contains: CSeq only has to be higher (RFC 3261
  /// §12.2.1.1).
  private mutating func endDialog(_ orphan: OrphanedLeg, _ flow: Flow, _ credentials: Credentials?) {
    guard var dialog = orphan.dialog, legs.count < Limits.legs, dialogs[dialog.key] == nil else { return }
    dialog.localSequence += Limits.orphanSequenceGap
    var flow = flow
    // Its connection ended with the process: a new one goes to the listening port of the first route, or of the contact.
    let next = dialog.routeSet.first.map(uriText) ?? dialog.remoteTarget
    if flow.transport.isReliable, let target = address(of: next), target.ip == flow.remote.ip {
      flow.remote = target
    }
    let id = LegID.inbound(nextNumber())
    var leg = Leg(
      id: id, trunk: orphan.trunk, phase: .confirmed, flow: flow, dialog: dialog, inviteTransaction: nil, inviteSequence: 0)
    leg.credentials = credentials
    legs[id] = Box(leg)
    dialogs[dialog.key] = id
    sendBye(id, .sip(503, "gateway restarted"))
  }
}
