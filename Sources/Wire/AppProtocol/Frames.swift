import TrunklineBytes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// A client-to-server frame, read by the gateway and written by the client.
public typealias ClientFrame = AppFrame<ClientMessage>
/// A server-to-client frame, written by the gateway and read by the client.
public typealias ServerFrame = AppFrame<ServerMessage>

/// One text frame of the WebSocket (docs/reference/protocol.md, Frames): the envelope and its message.
public struct AppFrame<Message: ProtocolMessage>: Hashable, Sendable {
  /// A message, or what is wrong with it. A wrong one does not end the connection.
  public enum Body: Hashable, Sendable {
    case message(Message)
    /// A known type whose envelope or `d` breaks a rule: `err{badRequest}` if it is a request. The text names field and rule.
    case malformed(Message.MessageType, String)
    /// A type that is not in the table: `err{unsupported}`.
    case unknown(String)
  }

  public var body: Body
  public var id: Identifier?
  public var re: Identifier?
  public var seq: Int?
  public var ack: Int?
  public var call: Identifier?

  public init(
    _ message: Message, id: Identifier? = nil, re: Identifier? = nil, seq: Int? = nil, ack: Int? = nil, call: Identifier? = nil
  ) {
    (body, self.id, self.re, self.seq, self.ack, self.call) = (.message(message), id, re, seq, ack, call)
  }

  /// Reads one text frame. An error thrown ends the connection; any lesser fault is in `body`.
  public init(decoding bytes: [UInt8]) throws(FrameError) {
    try checkFrame(bytes)
    do {
      self = try JSONDecoder().decode(Self.self, from: Data(bytes))
    } catch {
      throw error as? FrameError ?? .notAnObject
    }
  }

  /// The frame as JSON in UTF-8, keys sorted.
  public func encoded() -> [UInt8] { jsonBytes(self) }
}

/// JSON with sorted keys. Only a number that is not finite can fail, and those fields are our own measurements: `{}` is sent
/// then.
func jsonBytes(_ value: some Encodable) -> [UInt8] {
  let encoder = JSONEncoder()
  encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
  return (try? encoder.encode(value)).map(Array.init) ?? Array("{}".utf8)
}

extension AppFrame: Codable {
  public init(from decoder: any Decoder) throws {
    guard let envelope = try? decoder.container(keyedBy: EnvelopeKey.self) else { throw FrameError.notAnObject }
    guard let name = try? envelope.decode(String.self, forKey: .t), !name.isEmpty else { throw FrameError.noType }
    // Read one by one: a bad `call` must not lose the `id` that the answer needs.
    id = try? envelope.identifier(.id)
    re = try? envelope.identifier(.re)
    seq = try? envelope.optionalNumber(.seq, in: Limits.sequence)
    ack = try? envelope.optionalNumber(.ack, in: 0...Limits.sequence.upperBound)
    call = try? envelope.identifier(.call)
    guard let type = Message.MessageType(rawValue: name) else {
      body = .unknown(String(name.prefix(Limits.textCharacters)))
      return
    }
    do {
      _ = try (envelope.identifier(.id), envelope.identifier(.re), envelope.identifier(.call))
      _ = try envelope.optionalNumber(.seq, in: Limits.sequence)
      _ = try envelope.optionalNumber(.ack, in: 0...Limits.sequence.upperBound)
      let row = type.row
      if row.scope != .session, call == nil { throw envelope.problem(.call, "missing") }
      if row.scope == .numbered, seq == nil { throw envelope.problem(.seq, "missing") }
      if row.kind == .request, id == nil { throw envelope.problem(.id, "missing") }
      if row.kind == .response, re == nil { throw envelope.problem(.re, "missing") }
      body = .message(try row.read(envelope))
    } catch {
      body = .malformed(type, ruleText(error))
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var envelope = encoder.container(keyedBy: EnvelopeKey.self)
    try envelope.encodeIfPresent(id, forKey: .id)
    try envelope.encodeIfPresent(re, forKey: .re)
    try envelope.encodeIfPresent(seq, forKey: .seq)
    try envelope.encodeIfPresent(ack, forKey: .ack)
    try envelope.encodeIfPresent(call, forKey: .call)
    switch body {
    case .message(let message):
      let (type, payload) = message.content
      try envelope.encode(type.rawValue, forKey: .t)
      if let payload { try envelope.encode(payload, forKey: .d) }
    case .malformed(let type, _): try envelope.encode(type.rawValue, forKey: .t)
    case .unknown(let name): try envelope.encode(name, forKey: .t)
    }
  }
}

extension EnvelopeReader {
  fileprivate func identifier(_ key: EnvelopeKey) throws -> Identifier? { try decodeIfPresent(Identifier.self, forKey: key) }
}

/// The rule that a decoding error names, short enough for an `err`.
private func ruleText(_ error: any Error) -> String {
  func path(_ context: DecodingError.Context, _ last: (any CodingKey)? = nil) -> String {
    (context.codingPath + (last.map { [$0] } ?? [])).map(\.stringValue).joined(separator: ".")
  }
  guard let error = error as? DecodingError else { return "unreadable" }
  switch error {
  case .keyNotFound(let key, let context): return "\(path(context, key)): missing"
  case .valueNotFound(_, let context): return "\(path(context)): missing"
  case .typeMismatch(_, let context): return "\(path(context)): wrong type"
  case .dataCorrupted(let context): return String("\(path(context)): \(context.debugDescription)".prefix(120))
  @unknown default: return "unreadable"
  }
}
