import TrunklineBytes
import TrunklineSIP

/// Tries the servers of one trunk one after the other (RFC 3263 §4.3): at once after a 503 or a transport failure, after
/// `Interval.silence` without a response. Each try is a client transaction of its own with the same Call-ID, CSeq and From tag,
/// so that a server that gets two of them treats the second as merged (RFC 3261 §8.2.2.2) and rings once.
extension UserAgent {
  /// The present server has failed; true if another one is tried now.
  mutating func tryNext(_ id: LegID, code: Int, answered: Bool = false, retryAfter: Int? = nil) -> Bool {
    guard var leg = legs[id]?.value, leg.phase == .calling, leg.cancel == .none, let invite = leg.invite,
      let next = leg.useNextServer(answered: answered, target: { requestURI(invite, on: $0) })
    else { return false }
    let failed = legs[id]?.value.flow ?? next.flow
    if next.refusedConnection { datagramOnly.refused(failed.remote, at: step.now) }
    legs[id]?.value = leg
    step.emit(.targetFailed(id, failed, code: code, retryAfter: retryAfter))
    sendInvite(id)
    return legs[id] != nil
  }

  /// The server has sent no response. The transaction stays without its leg, for late responses.
  mutating func targetSilent(_ id: LegID) {
    guard let leg = legs[id]?.value, leg.phase == .calling, leg.cancel == .none, let transaction = leg.inviteTransaction,
      let client = clients[transaction], client.phase == .calling
    else { return }
    clients.abandon(transaction, &step)
    if tryNext(id, code: 408) { return }
    noteUnanswered(client, leg, .timeout)
    fail(id, code: 408, cause: nil, byTransport: true)
  }

  /// CANCEL for an INVITE that was given up.
  mutating func cancelAbandoned(_ id: UInt64) {
    guard let client = clients[id] else { return }
    clients.limit(abandoned: id, &step)
    _ = beginClient(
      .cancel, method: .cancel, branch: client.key.branch, leg: nil, trunk: client.trunk, over: client.flow,
      bytes: cancellation(of: client, nil))
  }
}
