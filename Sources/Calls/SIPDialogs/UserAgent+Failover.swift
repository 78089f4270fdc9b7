import TrunklineBytes
import TrunklineSIP

/// Tries the servers of one trunk one after the other (RFC 3263 §4.3): at once after a 503 or a transport failure, after
/// `Interval.silence` without a response. Each try is a client transaction of its own with the same Call-ID, CSeq and From tag,
/// so that a server that gets two of them treats the second as merged (RFC 3261 §8.2.2.2) and rings once.
extension UserAgent {
  /// Whether silence is worth acting on before timer B.
  func hasAnotherTarget(_ leg: Leg) -> Bool {
    !leg.further.isEmpty || leg.isLarge || leg.invite?.failsOverOnSilence == true
  }

  /// The present server has failed; true if another one is tried now.
  mutating func tryNext(_ id: LegID, code: Int, answered: Bool = false, retryAfter: Int? = nil) -> Bool {
    guard var leg = legs[id]?.value, leg.phase == .calling, leg.cancel == .none, let target = leg.target, let invite = leg.invite
    else { return false }
    let failed = leg.flow
    if leg.isLarge, !answered {
      if datagramOnly.count >= Limits.datagramOnlyServers { datagramOnly = datagramOnly.filter { $0.value > now } }
      if datagramOnly.count < Limits.datagramOnlyServers { datagramOnly[failed.remote] = now + Limits.datagramOnlyTime }
      leg.isSmallOnly = true
      leg.flow = target.flow
    } else if let next = leg.further.popFirst() {
      (leg.target, leg.flow, leg.isSmallOnly) = (next, next.flow, false)
    } else {
      return false
    }
    leg.isLarge = false
    leg.digest = nil
    leg.dialog.remoteTarget = requestURI(invite, on: leg.flow)
    legs[id]?.value = leg
    emit(.targetFailed(id, failed, code: code, retryAfter: retryAfter))
    sendInvite(id)
    return legs[id] != nil
  }

  /// The server has sent no response. The transaction stays without its leg, for late responses.
  mutating func targetSilent(_ id: LegID) {
    guard let leg = legs[id]?.value, leg.phase == .calling, leg.cancel == .none, let transaction = leg.inviteTransaction,
      clients[transaction]?.value.phase == .calling
    else { return }
    clients[transaction]?.value.purpose = .abandoned
    clients[transaction]?.value.leg = nil
    timers.cancel(.client(transaction, .retransmission))
    if tryNext(id, code: 408) { return }
    if let client = clients[transaction]?.value {
      var client = client
      client.purpose = .invite
      noteUnanswered(client, leg, .timeout)
    }
    fail(id, code: 408, cause: nil, byTransport: true)
  }

  /// The first response to an INVITE that was given up.
  mutating func cancelAbandoned(_ client: ClientTransaction) {
    guard let id = clientIndex[client.key] else { return }
    if client.phase == .calling { return cancelAbandoned(client, id) }
    // further provisional responses must not keep it for ever
    timers.schedule(.client(id, .end), at: now + Interval.transaction)
  }

  mutating func cancelAbandoned(_ client: ClientTransaction, _ id: UInt64) {
    timers.schedule(.client(id, .end), at: now + Interval.transaction)
    _ = beginClient(
      .cancel, .cancel, branch: client.key.branch, leg: nil, trunk: client.trunk, client.flow, cancellation(of: client, nil))
  }
}
