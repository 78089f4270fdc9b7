import TrunklineBytes
import TrunklineSIP

struct ClientKey: Hashable {
  var branch: String
  var method: Method
}

/// The INVITE and non-INVITE client machines of RFC 3261 §17.1 with RFC 6026.
///
/// | phase | 1xx | 2xx | 3xx–6xx | retransmission | end |
/// |---|---|---|---|---|---|
/// | calling | proceeding | accepted, M (others: completed, K) | completed, D (K) | A, doubled (E: up to T2) | B (F): 408 |
/// | proceeding | to the leg | as above | as above | E: again each T2 | F: 408 |
/// | accepted | ignored | ACK again, or a fork ended | ignored | – | M |
/// | completed | ignored | ignored | INVITE: ACK again | – | D (K) |
///
/// A datagram that this machine or the network refused (EPERM, ENETUNREACH, ICMP) is a lost packet: the timers continue, though
/// §18.4 would have the transaction fail. A full connection-tracking table, a flapping route or a restarting peer lasts a second,
/// and if a BYE is not sent again the carrier keeps the call. A transaction that receives only errors for `Interval.silence`
/// fails then; a BYE has all of timer F. A request on a connection that was lost before any answer is sent once more, on a new
/// one.
struct ClientTransaction {
  enum Phase { case calling, proceeding, accepted, completed }
  /// The purpose of the request, which decides the meaning of its end.
  enum Purpose: Equatable {
    case invite, cancel, bye, ping, forkEnd, prack, reinvite, update, info, refer, notify
    /// An INVITE that was given up for another server: cancelled at its first provisional response, ended if it is answered.
    case abandoned
    case standalone(RequestID)
  }

  let key: ClientKey
  var purpose: Purpose
  var leg: LegID?
  /// Responses from another trunk are not ours.
  let trunk: String
  var flow: Flow
  let isReliable: Bool
  let request: [UInt8]
  var phase = Phase.calling
  /// A datagram of it was refused; the transaction continues.
  var wasRefused = false
  var peerFailure: UserAgent.PeerFailure?
  /// Sent a second time, on another connection.
  var isResent = false
  var interval = Interval.t1
  /// The ACK of a non-2xx final response.
  var acknowledgement: [UInt8]?
  /// The ACK of each 2xx by its To tag.
  var acknowledgements: [String: (bytes: [UInt8], flow: Flow)] = [:]

  /// The request's content besides what its dialog supplies; nil for INVITE, CANCEL and the end of a fork.
  var content: RequestContent?
  /// Sent again with credentials for these realms: another challenge from them ends it.
  var answeredRealms: Set<DigestClient.Realm> = []
  /// The dialog of a re-INVITE, for the ACK of a 2xx that arrives after the leg has ended.
  var dialog: Dialog?

  var isInvite: Bool { purpose == .invite || purpose == .reinvite || purpose == .abandoned }
}
