import TrunklineBytes
import TrunklineSIP

/// What the responses to one request are made of (RFC 3261 §8.2.6), and where they go (§18.2.2, RFC 3581).
struct Reply {
  let message: Message
  let trunk: String
  /// The first Via field with `received` and `rport` filled in.
  let topVia: String
  var flow: Flow
  /// Where they go once the connection the request came on is lost: the source address with the port of Via (RFC 3261 §18.2.2).
  let fallback: SocketAddress
  /// The request asked for rport (RFC 3581).
  let isSymmetric: Bool

  /// Nil if there is no Via at all. With one we cannot read, the answer goes where the request came from.
  init?(_ message: Message, source: Flow, trunk: String) {
    guard let field = message.field(.via) else { return nil }
    (self.message, self.trunk) = (message, trunk)
    guard let via = try? message.topVia else {
      topVia = message.text(field.value)
      flow = source
      fallback = source.remote
      isSymmetric = false
      return
    }
    var text = ""
    if let name = via.rportName, via.rport == nil {
      text = message.text(ByteRange(joining: field.value.lower, name.upper)) + "=\(source.remote.port)"
      text += message.text(ByteRange(joining: name.upper, via.whole.upper))
    } else {
      text = message.text(ByteRange(joining: field.value.lower, via.whole.upper))
    }
    let ip = source.remote.ip.unmapped
    let sentBy = message.text(via.host)
    if via.received == nil,
      via.wantsRport || IPAddress(sentBy.hasPrefix("[") ? String(sentBy.dropFirst().dropLast()) : sentBy) != ip
    {
      text += ";received=\(ip)"
    }
    topVia = text + message.text(ByteRange(joining: via.whole.upper, field.value.upper))
    flow = Reply.destination(via, source)
    fallback = SocketAddress(source.remote.ip, via.port ?? 5060)
    isSymmetric = via.wantsRport
  }

  /// A connection is answered on itself. A datagram is answered to its source address; to the source port with rport, else to the
  /// port in Via. `maddr` is passed over on purpose: answers go only where requests came from.
  private static func destination(_ via: Via, _ source: Flow) -> Flow {
    guard source.transport == .udp, !via.wantsRport else { return source }
    var flow = source
    flow.remote.port = via.port ?? 5060
    return flow
  }

  /// Where they go in a process that has none of the connections.
  var onNewConnection: Flow {
    var flow = flow
    flow.remote = fallback
    return flow
  }

  /// Begins a response; the To tag is added if the request had none.
  func writer(_ code: Int, reason: String?, toTag: String?) -> MessageWriter {
    var writer = MessageWriter(status: code, reason: reason)
    var isFirst = true
    for field in message.fields where field.name == .via {
      if isFirst { writer.field(.via, topVia) } else { writer.copy(field, of: message) }
      isFirst = false
    }
    if let from = message.field(.from) { writer.copy(from, of: message) }
    if let to = message.field(.to) {
      if let toTag, code > 100, (try? message.to)??.tag == nil {
        writer.field(.to, message.text(to.value) + ";tag=" + toTag)
      } else {
        writer.copy(to, of: message)
      }
    }
    if let callID = message.field(.callID) { writer.copy(callID, of: message) }
    if let cseq = message.field(.cseq) { writer.copy(cseq, of: message) }
    return writer
  }
}
