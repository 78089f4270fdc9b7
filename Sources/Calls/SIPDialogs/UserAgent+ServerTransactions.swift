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

/// Responses: what a transaction sends is written here.
extension UserAgent {
  /// Starts the transaction of a request; the caller has checked that the table has room.
  mutating func beginServer(_ key: ServerKey, method: Method, merge: MergeKey? = nil, reply: Reply, leg: LegID? = nil)
    -> UInt64
  {
    let id = identifiers.nextNumber()
    servers.begin(id, key: key, method: method, merge: merge, reply: reply, leg: leg)
    return id
  }

  /// Sends a response through its transaction. Nothing happens if the final one is already out.
  /// - Returns: the bytes sent, nil if none were.
  @discardableResult
  mutating func respond(_ id: UInt64, _ content: ResponseContent) -> [UInt8]? {
    guard let reply = servers.reply(id) else { return nil }
    let bytes = response(content, reply)
    return servers.respond(id, content.code, bytes, &step) ? bytes : nil
  }

  /// A response without state: the same answer for the same request.
  mutating func respondStateless(_ reply: Reply, _ content: ResponseContent) {
    var content = content
    if content.tag == nil { content.tag = identifiers.statelessTag(reply.message) }
    step.counters.sent(reply.message.method ?? .other, content.code, trunk: reply.trunk)
    step.send(response(content, reply), reply.flow)
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
}
