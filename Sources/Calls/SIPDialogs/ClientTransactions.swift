import TrunklineBytes
import TrunklineSIP

struct ClientKey: Hashable {
  var branch: String
  var method: Method
}

/// A request of ours: what its user needs to handle its end, and the state of its machine, which only `ClientTransactions` changes.
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
  fileprivate(set) var purpose: Purpose
  fileprivate(set) var leg: LegID?
  /// Responses from another trunk are not ours.
  let trunk: String
  fileprivate(set) var flow: Flow
  let request: [UInt8]
  /// The request's content besides what its dialog supplies; nil for INVITE, CANCEL and the end of a fork.
  var content: RequestContent?
  /// Sent again with credentials for these realms: another challenge from them ends it.
  var answeredRealms: Set<DigestClient.Realm> = []
  /// The dialog of a re-INVITE, for the ACK of a 2xx that arrives after the leg has ended.
  var dialog: Dialog?

  fileprivate(set) var phase = Phase.calling
  fileprivate(set) var peerFailure: UserAgent.PeerFailure?
  /// The ACK of each 2xx by its To tag.
  fileprivate(set) var acknowledgements: [String: (bytes: [UInt8], flow: Flow)] = [:]
  /// The ACK of a non-2xx final response.
  fileprivate var acknowledgement: [UInt8]?
  fileprivate let isReliable: Bool
  /// A datagram of it was refused; the transaction continues.
  fileprivate var wasRefused = false
  /// Sent a second time, on another connection.
  fileprivate var isResent = false
  fileprivate var interval = Interval.t1

  init(_ purpose: Purpose, _ key: ClientKey, leg: LegID?, trunk: String, over flow: Flow, request: [UInt8]) {
    (self.purpose, self.key, self.leg, self.trunk, self.flow, self.request) = (purpose, key, leg, trunk, flow, request)
    isReliable = flow.transport.isReliable
  }

  var isInvite: Bool { purpose == .invite || purpose == .reinvite || purpose == .abandoned }
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
///
/// Each input of a transaction that does not exist, or has ended, is ignored.
struct ClientTransactions {
  /// What a response means to the user of the transaction.
  enum Reception: Equatable {
    /// Nothing: it was repeated, or is handled here.
    case absorbed
    case provisional
    /// The first 2xx of an INVITE; the user sends its ACK (`acknowledge(accepted:)`).
    case accepted
    /// A 2xx of an INVITE with a tag that has no ACK yet: another fork, or the first one again while its ACK waits.
    case acceptedOtherwise
    /// A final non-2xx of an INVITE; the user sends its ACK (`acknowledge(refused:)`).
    case refused
    /// The final response of another request.
    case final
  }

  /// The end of a transaction without a final response.
  struct Failure {
    let client: ClientTransaction
    let code: Int
    let byTransport: Bool
  }

  private var table = BoxTable<UInt64, ClientTransaction>()
  private var index: [ClientKey: UInt64] = [:]

  var count: Int { table.count }
  /// Nothing is stored, in the index neither.
  var isEmpty: Bool { table.isEmpty && index.isEmpty }
  var hasRoom: Bool { table.count < Limits.clientTransactions }

  subscript(id: UInt64) -> ClientTransaction? { table[id]?.value }

  /// The transaction of a response (RFC 3261 §17.1.3).
  func transaction(of key: ClientKey) -> UInt64? { index[key] }

  /// The requests of these legs that have no response at all, the oldest first.
  func unanswered(of legs: [LegID: Flow]) -> [LegID: [UInt64]] {
    let open = table.compactMap { id, client in
      client.phase == .calling ? client.leg.flatMap { legs[$0] == nil ? nil : (leg: $0, id: id) } : nil
    }
    return Dictionary(grouping: open, by: \.leg).mapValues { $0.map(\.id).sorted() }
  }

  /// The requests on a flow that a transport failure concerns, the oldest first. A transaction that has had an answer waits for
  /// the rest: it may come on a new connection.
  func open(on flow: Flow) -> [UInt64] {
    table.compactMap { id, client in
      let isOpen = client.phase == .calling || (client.phase == .proceeding && !client.isInvite)
      return isOpen && client.flow.transport == flow.transport && client.flow.remote == flow.remote ? id : nil
    }.sorted()
  }

  /// Sends a request and starts its machine; the caller has checked that there is room.
  mutating func begin(_ id: UInt64, _ client: ClientTransaction, _ step: inout Step) {
    table.insert(client, for: id)
    index[client.key] = id
    step.counters.requestsSent[client.key.method, default: 0] += 1
    step.send(client.request, client.flow)
    if client.flow.transport == .udp { step.timers.schedule(.client(id, .retransmission), at: step.now + Interval.t1) }
    step.timers.schedule(.client(id, .end), at: step.now + Interval.transaction)
  }

  /// An INVITE that a dead process sent. Its 100 may have reached that process.
  mutating func adopt(_ id: UInt64, _ client: ClientTransaction, _ step: inout Step) {
    var client = client
    client.phase = .proceeding
    table.insert(client, for: id)
    index[client.key] = id
    step.timers.schedule(.client(id, .end), at: step.now + Interval.transaction)
  }

  mutating func fired(_ id: UInt64, _ timer: ClientTimer, _ step: inout Step) -> Failure? {
    guard let client = table[id]?.value else { return nil }
    switch timer {
    case .retransmission:
      guard client.phase == .calling || (client.phase == .proceeding && !client.isInvite) else { return nil }
      step.sendAgain(client.request, client.flow)
      // A doubles without bound (RFC 3261 §17.1.1.2), E up to T2 and is T2 once there was a provisional (§17.1.2.2).
      var interval = client.interval * 2
      if !client.isInvite { interval = client.phase == .proceeding ? Interval.t2 : min(interval, Interval.t2) }
      table[id]?.value.interval = interval
      step.timers.schedule(.client(id, .retransmission), at: step.now + interval)
      return nil
    case .end:
      end(id, &step)
      guard client.phase == .calling || client.phase == .proceeding else { return nil }
      // The connection accepted the request and no answer came: no further request may end like that.
      if client.isReliable, client.phase == .calling {
        step.output.silent.append((client.flow, since: step.now - Interval.transaction))
      }
      return Failure(client: client, code: 408, byTransport: false)
    case .unreachable:
      guard client.phase == .calling else { return nil }
      end(id, &step)
      return Failure(client: client, code: 503, byTransport: true)
    }
  }

  /// A packet of the request, or its connection, was lost.
  /// - Parameters:
  ///   - failsOver: another server or trunk is tried instead, so a refused datagram ends this try at once.
  ///   - next: where the request goes once more, on a new connection.
  /// - Returns: nil: the transaction continues.
  mutating func transportFailed(
    _ id: UInt64, _ peer: UserAgent.PeerFailure?, wasOpen: Bool, failsOver: Bool, next: Flow?, _ step: inout Step
  ) -> Failure? {
    guard let client = table[id]?.value else { return nil }
    table[id]?.value.peerFailure = peer
    if client.flow.transport != .udp {
      if wasOpen, client.phase == .calling, !client.isResent {
        table[id]?.value.isResent = true
        let flow = next ?? client.flow
        table[id]?.value.flow = flow
        step.sendAgain(client.request, flow)
        return nil
      }
    } else if client.phase == .proceeding || client.purpose == .bye || client.wasRefused {
      return nil
    } else if !failsOver {
      table[id]?.value.wasRefused = true
      step.timers.schedule(.client(id, .unreachable), at: step.now + Interval.silence)
      return nil
    }
    guard let client = table[id]?.value else { return nil }
    end(id, &step)
    return Failure(client: client, code: 503, byTransport: true)
  }

  /// A response that belongs to the transaction.
  mutating func received(_ id: UInt64, _ code: Int, toTag: String, _ step: inout Step) -> Reception {
    guard let client = table[id]?.value else { return .absorbed }
    let isOpen = client.phase == .calling || client.phase == .proceeding
    guard client.isInvite else {
      guard isOpen else { return .absorbed }
      if code < 200 {
        table[id]?.value.phase = .proceeding
        return .absorbed
      }
      complete(id, .completed, &step)
      return .final
    }
    switch (client.phase, code) {
    case (_, 100..<200) where isOpen:
      table[id]?.value.phase = .proceeding
      step.timers.cancel(.client(id, .retransmission))
      guard client.purpose != .reinvite else {
        step.timers.schedule(.client(id, .end), at: step.now + Interval.reinvite)
        return .absorbed
      }
      step.timers.cancel(.client(id, .end))
      return .provisional
    case (_, 200..<300) where isOpen:
      complete(id, .accepted, &step)
      return .accepted
    case (.accepted, 200..<300):
      guard let known = client.acknowledgements[toTag] else { return .acceptedOtherwise }
      step.sendAgain(known.bytes, known.flow)
    case (_, 300...) where isOpen: return .refused
    case (.completed, 300...): if let bytes = client.acknowledgement { step.sendAgain(bytes, client.flow) }
    default: break
    }
    return .absorbed
  }

  /// Sends the ACK of a 2xx, and again for each retransmission of the 2xx.
  mutating func acknowledge(accepted id: UInt64, tag: String, _ bytes: [UInt8], _ flow: Flow, _ step: inout Step) {
    step.counters.requestsSent[.ack, default: 0] += 1
    step.send(bytes, flow)
    table[id]?.value.acknowledgements[tag] = (bytes, flow)
  }

  /// Sends the ACK of a non-2xx, and again for each retransmission of that response.
  mutating func acknowledge(refused id: UInt64, _ bytes: [UInt8], _ step: inout Step) {
    guard let client = table[id]?.value, client.isInvite, client.phase == .calling || client.phase == .proceeding else { return }
    table[id]?.value.acknowledgement = bytes
    step.counters.requestsSent[.ack, default: 0] += 1
    step.send(bytes, client.flow)
    complete(id, .completed, &step)
  }

  /// An INVITE is given up for another server, or with its address: it has no leg from now on, and stays for late responses.
  /// - Parameter flow: our new address.
  mutating func abandon(_ id: UInt64, movedTo flow: Flow? = nil, _ step: inout Step) {
    guard table[id] != nil else { return }
    table[id]?.value.purpose = .abandoned
    table[id]?.value.leg = nil
    if let flow { table[id]?.value.flow = flow }
    step.timers.cancel(.client(id, .retransmission))
  }

  /// Further provisional responses must not keep an abandoned INVITE for ever.
  mutating func limit(abandoned id: UInt64, _ step: inout Step) {
    guard table[id]?.value.purpose == .abandoned else { return }
    step.timers.schedule(.client(id, .end), at: step.now + Interval.transaction)
  }

  /// Our address changed: retransmissions go out from the new one.
  mutating func move(_ id: UInt64, to flow: Flow) { table[id]?.value.flow = flow }

  mutating func end(_ id: UInt64, _ step: inout Step) {
    guard let client = table.remove(id) else { return }
    if index[client.key] == id { index[client.key] = nil }
    step.timers.cancel(.client(id, .retransmission))
    step.timers.cancel(.client(id, .end))
    step.timers.cancel(.client(id, .unreachable))
  }

  /// The final response arrived: no more retransmissions, and the state stays to absorb those of the peer.
  private mutating func complete(_ id: UInt64, _ phase: ClientTransaction.Phase, _ step: inout Step) {
    guard let client = table[id]?.value else { return }
    table[id]?.value.phase = phase
    step.timers.cancel(.client(id, .retransmission))
    if phase == .accepted {
      step.timers.schedule(.client(id, .end), at: step.now + Interval.transaction)
    } else if client.isReliable {
      end(id, &step)
    } else {
      step.timers.schedule(.client(id, .end), at: step.now + (client.isInvite ? Interval.d : Interval.t4))
    }
  }
}
