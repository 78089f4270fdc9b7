import TrunklineBytes
import TrunklineSIP

/// RFC 3261 §17.2.3: branch, sent-by and method, and the trunk, so that no trunk can touch another's. The key has no source
/// port.
struct ServerKey: Hashable {
  var trunk: String
  /// The branch, or its substitute for RFC 2543 peers.
  var branch: String
  var sentBy: String
  /// INVITE for its ACK and CANCEL too.
  var method: String
}

/// Requests with the same values that arrived over different paths are one merged request (RFC 3261 §8.2.2.2). The rule is for
/// one user agent: each number of ours counts as one, so a proxy that forks to two of them calls both.
struct MergeKey: Hashable {
  var callID: String
  var fromTag: String
  var sequence: UInt32
  var called: String
}

/// The INVITE and non-INVITE server machines of RFC 3261 §17.2 with RFC 6026.
///
/// | phase | INVITE again | ACK | final 2xx | final 3xx–6xx | end |
/// |---|---|---|---|---|---|
/// | proceeding | last provisional again | ignored | accepted, L | completed, G and H | – |
/// | accepted | absorbed | to the leg | – | – | L |
/// | completed | final again | confirmed, I | – | – | H (J for others) |
/// | confirmed | absorbed | absorbed | – | – | I |
///
/// Each input of a transaction that does not exist, or has ended, is ignored; so is a response after the final one. A completed
/// transaction of another method than INVITE ends at once on a reliable transport.
struct ServerTransactions {
  private enum Phase { case proceeding, accepted, completed, confirmed }

  private struct Transaction {
    let key: ServerKey
    let method: Method
    let mergeKey: MergeKey?
    let isReliable: Bool
    /// The request asked for rport.
    let isSymmetric: Bool
    /// The INVITE's leg; nil if it was refused before there was one.
    let leg: LegID?
    var phase = Phase.proceeding
    /// The data that responses are made of; nil once the final one is sent.
    var reply: Reply?
    /// Where the last response went.
    var flow: Flow
    var lastResponse: [UInt8]?
    /// The next interval of timer G.
    var interval = Interval.t1

    /// A response is sent. Nil: the final one was sent before.
    mutating func respond(_ code: Int, _ bytes: [UInt8]) -> Sent? {
      guard phase == .proceeding, let reply else { return nil }
      let sent = Sent(flow: reply.flow, trunk: reply.trunk, method: method, isReliable: isReliable)
      let isAccepted = method == .invite && (200..<300).contains(code)
      lastResponse = isAccepted ? nil : bytes
      if code >= 200 { (self.reply, phase) = (nil, isAccepted ? .accepted : .completed) }
      return sent
    }
  }

  private struct Sent {
    let flow: Flow
    let trunk: String
    let method: Method
    let isReliable: Bool
  }

  private var table = BoxTable<UInt64, Transaction>()
  private var index: [ServerKey: UInt64] = [:]
  private var merges: [MergeKey: UInt64] = [:]

  var count: Int { table.count }
  /// Nothing is stored, in the indices neither.
  var isEmpty: Bool { table.isEmpty && index.isEmpty && merges.isEmpty }
  /// Room for a request outside any dialog.
  var hasRoom: Bool { table.count < Limits.serverTransactions }
  /// Room for a request inside a dialog.
  var hasRoomForCalls: Bool { table.count < Limits.serverTransactions + Limits.serverTransactionsOfCalls }

  /// The transaction that a request belongs to (RFC 3261 §17.2.3); an ACK or CANCEL to its INVITE's.
  func transaction(of key: ServerKey) -> UInt64? { index[key] }

  /// A request with these values came over another path.
  func isMerged(_ key: MergeKey) -> Bool { merges[key] != nil }

  /// What a response is made of; nil once the final one is sent.
  func reply(_ id: UInt64) -> Reply? { table[id]?.value.reply }

  /// The leg of an INVITE, and whether it has no final response yet; nil for other requests.
  func invite(_ id: UInt64) -> (leg: LegID?, isProceeding: Bool)? {
    guard let server = table[id]?.value, server.method == .invite else { return nil }
    return (server.leg, server.phase == .proceeding)
  }

  /// Starts the transaction of a request; the caller has checked that there is room.
  mutating func begin(_ id: UInt64, key: ServerKey, method: Method, merge: MergeKey?, reply: Reply, leg: LegID?) {
    let transaction = Transaction(
      key: key, method: method, mergeKey: merge, isReliable: reply.flow.transport.isReliable, isSymmetric: reply.isSymmetric,
      leg: leg, reply: reply, flow: reply.flow)
    table.insert(transaction, for: id)
    index[key] = id
    if let merge { merges[merge] = id }
  }

  /// Sends a response. False: the final one was sent before.
  mutating func respond(_ id: UInt64, _ code: Int, _ bytes: [UInt8], _ step: inout Step) -> Bool {
    guard let sent = table[id]?.value.respond(code, bytes) else { return false }
    step.counters.sent(sent.method, code, trunk: sent.trunk)
    step.send(bytes, sent.flow)
    guard code >= 200 else { return true }
    if sent.method == .invite, code >= 300, !sent.isReliable {
      step.timers.schedule(.server(id, .g), at: step.now + Interval.t1)
    }
    if sent.method != .invite, sent.isReliable {
      end(id, &step)
    } else {
      step.timers.schedule(.server(id, .end), at: step.now + Interval.transaction)
    }
    return true
  }

  /// The request was received again, maybe from another port.
  mutating func receivedAgain(_ id: UInt64, from source: Flow, _ step: inout Step) {
    step.counters.retransmissionsReceived += 1
    guard let server = table[id]?.value, server.phase == .proceeding || server.phase == .completed,
      let bytes = server.lastResponse
    else { return }
    // With rport the response goes to the source, whose port is different now if a NAT has changed its mapping.
    let isNewSource = server.isSymmetric && !server.isReliable && source.transport == .udp
    let flow = isNewSource ? source : server.flow
    table[id]?.value.flow = flow
    step.sendAgain(bytes, flow)
  }

  /// An ACK with the INVITE's branch, of a non-2xx. True if the transaction consumed it.
  mutating func receivedAck(_ id: UInt64, _ step: inout Step) -> Bool {
    guard let server = table[id]?.value, server.method == .invite else { return false }
    switch server.phase {
    case .proceeding, .accepted: return false
    case .confirmed: return true
    case .completed:
      table[id]?.value.phase = .confirmed
      table[id]?.value.lastResponse = nil
      step.timers.cancel(.server(id, .g))
      if server.isReliable { end(id, &step) } else { step.timers.schedule(.server(id, .end), at: step.now + Interval.t4) }
      return true
    }
  }

  mutating func fired(_ id: UInt64, _ timer: ServerTimer, _ step: inout Step) {
    guard let server = table[id]?.value else { return }
    switch timer {
    case .end: end(id, &step)
    case .g:
      guard server.phase == .completed, let bytes = server.lastResponse else { return }
      step.sendAgain(bytes, server.flow)
      let interval = min(server.interval * 2, Interval.t2)
      table[id]?.value.interval = interval
      step.timers.schedule(.server(id, .g), at: step.now + interval)
    }
  }

  /// The connection of these requests was lost: their responses go to the port in Via, on a new one (RFC 3261 §18.2.2).
  mutating func connectionLost(to remote: SocketAddress) {
    let lost = table.compactMap { id, server in
      server.reply.flatMap { $0.flow.transport.isReliable && $0.flow.remote == remote ? (id, $0.fallback) : nil }
    }
    for (id, fallback) in lost { table[id]?.value.reply?.flow.remote = fallback }
  }

  private mutating func end(_ id: UInt64, _ step: inout Step) {
    guard let server = table.remove(id) else { return }
    if index[server.key] == id { index[server.key] = nil }
    if let merge = server.mergeKey, merges[merge] == id { merges[merge] = nil }
    step.timers.cancel(.server(id, .g))
    step.timers.cancel(.server(id, .end))
  }
}
