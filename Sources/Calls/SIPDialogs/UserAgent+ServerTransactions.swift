import TrunklineBytes
import TrunklineSIP

/// The content of a response besides the headers copied from its request.
struct ResponseContent {
  var code: Int
  var reason: String?
  /// The To tag if the request had none.
  var tag: String?
  var sdp: String?
  var fields: [(HeaderName, String)] = []
  /// Contact, Record-Route, Allow and Supported: of provisional responses and 2xx that make or keep a dialog.
  var isDialogForming = false
}

extension UserAgent {
  /// Starts the transaction of a request; the caller has checked that the table has room.
  mutating func beginServer(_ key: ServerKey, _ method: Method, merge: MergeKey? = nil, _ reply: Reply, leg: LegID? = nil)
    -> UInt64
  {
    let id = nextNumber()
    servers[id] = Box(
      ServerTransaction(
        key: key, method: method, mergeKey: merge, isReliable: reply.flow.transport.isReliable, isSymmetric: reply.isSymmetric,
        leg: leg, reply: reply, flow: reply.flow))
    serverIndex[key] = id
    if let merge { merges[merge] = id }
    return id
  }

  /// Sends a response through its transaction. Nothing happens if the final one is already out.
  /// - Returns: the bytes sent, nil if none were.
  @discardableResult
  mutating func respond(_ id: UInt64, _ content: ResponseContent) -> [UInt8]? {
    guard let server = servers[id]?.value, server.phase == .proceeding, let reply = server.reply else { return nil }
    let bytes = response(content, reply)
    counters.sent(server.method, content.code, trunk: reply.trunk)
    send(bytes, reply.flow)
    if content.code < 200 {
      servers[id]?.value.lastResponse = bytes
      return bytes
    }
    let isAccepted = server.method == .invite && content.code < 300
    servers[id]?.value.reply = nil
    servers[id]?.value.lastResponse = isAccepted ? nil : bytes
    servers[id]?.value.phase = isAccepted ? .accepted : .completed
    if server.method == .invite, !isAccepted, !server.isReliable { timers.schedule(.server(id, .g), at: now + Interval.t1) }
    if server.method != .invite, server.isReliable {
      endServer(id)
    } else {
      timers.schedule(.server(id, .end), at: now + Interval.transaction)
    }
    return bytes
  }

  /// A response without state: the same answer for the same request.
  mutating func respondStateless(_ reply: Reply, _ content: ResponseContent) {
    var content = content
    if content.tag == nil { content.tag = statelessTag(reply.message) }
    counters.sent(reply.message.method ?? .other, content.code, trunk: reply.trunk)
    send(response(content, reply), reply.flow)
  }

  func response(_ content: ResponseContent, _ reply: Reply) -> [UInt8] {
    var writer = reply.writer(content.code, reason: content.reason, toTag: content.tag)
    if content.isDialogForming {
      writer.copy(.recordRoute, of: reply.message)
      writer.field(.contact, contact(reply.flow, reply.trunk))
      writer.field(.allow, rules(reply.trunk).methods)
      let options = rules(reply.trunk).options
      if !options.isEmpty { writer.field(.supported, options.joined(separator: ", ")) }
    }
    for (name, value) in content.fields { writer.field(name, value) }
    writer.field(.server, configuration.product)
    return writer.finish(body: content.sdp)
  }

  /// A request of a transaction was received again, maybe from another port.
  mutating func serverReceivedAgain(_ id: UInt64, _ source: Flow) {
    counters.retransmissionsReceived += 1
    guard let server = servers[id]?.value, server.phase == .proceeding || server.phase == .completed,
      let bytes = server.lastResponse
    else { return }
    // With rport the response goes to the source, whose port is different now if a NAT has changed its mapping.
    let isNewSource = server.isSymmetric && !server.isReliable && source.transport == .udp
    let flow = isNewSource ? source : server.flow
    servers[id]?.value.flow = flow
    counters.retransmissionsSent += 1
    send(bytes, flow)
  }

  /// An ACK inside the INVITE transaction, of a non-2xx. True if the transaction consumed it.
  mutating func serverReceivedAck(_ id: UInt64) -> Bool {
    guard let server = servers[id]?.value, server.method == .invite else { return false }
    switch server.phase {
    case .proceeding, .accepted: return false
    case .confirmed: return true
    case .completed:
      servers[id]?.value.phase = .confirmed
      servers[id]?.value.lastResponse = nil
      timers.cancel(.server(id, .g))
      if server.isReliable { endServer(id) } else { timers.schedule(.server(id, .end), at: now + Interval.t4) }
      return true
    }
  }

  mutating func serverTimer(_ id: UInt64, _ timer: ServerTimer) {
    guard let server = servers[id]?.value else { return }
    switch timer {
    case .end: endServer(id)
    case .g:
      guard server.phase == .completed, let bytes = server.lastResponse else { return }
      counters.retransmissionsSent += 1
      send(bytes, server.flow)
      let interval = min(server.interval * 2, Interval.t2)
      servers[id]?.value.interval = interval
      timers.schedule(.server(id, .g), at: now + interval)
    }
  }

  private mutating func endServer(_ id: UInt64) {
    guard let server = servers.removeValue(forKey: id)?.value else { return }
    if serverIndex[server.key] == id { serverIndex[server.key] = nil }
    if let merge = server.mergeKey, merges[merge] == id { merges[merge] = nil }
    timers.cancel(.server(id, .g))
    timers.cancel(.server(id, .end))
  }
}
