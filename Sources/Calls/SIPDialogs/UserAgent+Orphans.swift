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
      guard let reply = leg.inviteTransaction.flatMap(servers.reply) else { return nil }
      let flow = reply.flow.transport.isReliable ? reply.onNewConnection : reply.flow
      orphan = OrphanedLeg(.ringing, of: leg, flow: flow, request: reply.message, topVia: reply.topVia)
    case .calling:
      guard let client = leg.inviteTransaction.flatMap({ clients[$0] }), let invite = try? Message(client.request) else {
        return nil
      }
      orphan = OrphanedLeg(.calling, of: leg, flow: client.flow, request: invite, topVia: nil)
    }
    if withholdsCaller { orphan.withholdCaller() }
    return orphan
  }

  mutating func closeOrphans() {
    for orphan in orphans.nextBatch(&step) { close(orphan.leg, orphan.credentials) }
  }

  private mutating func close(_ orphan: OrphanedLeg, _ credentials: Credentials?) {
    guard orphan.isWellFormed, let flow = orphan.flow else { return }
    switch orphan.phase {
    case .ringing: refuse(orphan, flow)
    case .calling: cancel(orphan, flow)
    case .confirmed: endDialog(orphan, flow, credentials)
    }
    step.counters.orphansClosed[orphan.phase, default: 0] += 1
  }

  private mutating func refuse(_ orphan: OrphanedLeg, _ flow: Flow) {
    guard let invite = orphan.invite, let message = try? Message(Array(invite.utf8)), let envelope = try? message.checked(),
      let reply = Reply(message, source: flow, trunk: orphan.trunk)
    else { return }
    let key = serverKey(message, envelope, on: orphan.trunk)
    guard servers.transaction(of: key) == nil, servers.hasRoom else { return }
    let transaction = beginServer(key, method: .invite, reply: reply)
    respond(transaction, ResponseContent(code: 503, tag: orphan.tag))
  }

  private mutating func cancel(_ orphan: OrphanedLeg, _ flow: Flow) {
    guard let invite = orphan.invite, let message = try? Message(Array(invite.utf8)), let envelope = try? message.checked(),
      let branch = envelope.via.branch.map(message.text), clients.hasRoom
    else { return }
    let id = identifiers.nextNumber()
    let client = ClientTransaction(
      .abandoned, ClientKey(branch: branch, method: .invite), leg: nil, trunk: orphan.trunk, over: flow,
      request: Array(invite.utf8))
    // If it has no response yet, it is old enough not to be overtaken by its CANCEL (RFC 3261 §9.1).
    clients.adopt(id, client, &step)
    cancelAbandoned(id)
  }

  /// The dead process may have sent more requests in the dialog than the journal contains: CSeq only has to be higher (RFC 3261
  /// §12.2.1.1).
  private mutating func endDialog(_ orphan: OrphanedLeg, _ flow: Flow, _ credentials: Credentials?) {
    guard var dialog = orphan.dialog, legs.hasRoom, legs.id(of: dialog.key) == nil else { return }
    dialog.localSequence += Limits.orphanSequenceGap
    var flow = flow
    // Its connection ended with the process: a new one goes to the listening port of the first route, or of the contact.
    let next = dialog.routeSet.first.map(uriText) ?? dialog.remoteTarget
    if flow.transport.isReliable, let target = address(of: next), target.ip == flow.remote.ip {
      flow.remote = target
    }
    let id = LegID.inbound(identifiers.nextNumber())
    legs.open(Leg(orphan: id, trunk: orphan.trunk, flow: flow, dialog: dialog, credentials: credentials))
    sendBye(id, .sip(503, "gateway restarted"))
  }
}
