import Bytes

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// What stands in a frame: a message, or what is wrong with it. Neither of the wrong ones ends the connection.
public enum FrameBody<Message: Hashable & Sendable, MessageType: Hashable & Sendable>: Hashable, Sendable {
  case message(Message)
  /// A known type whose envelope or `d` is not as it must be: `err{badRequest}` if it is a request. The text names the field
  /// and rule.
  case malformed(MessageType, String)
  /// A type of no version known here: `err{unsupported}`.
  case unknown(String)
}

/// A client-to-server frame (docs/protocol.md, Frames), read by the gateway and written by the client.
public struct ClientFrame: Hashable, Sendable {
  public typealias Body = FrameBody<ClientMessage, ClientMessageType>
  public var body: Body
  public var id: Identifier?
  public var seq: Int?
  public var ack: Int?
  public var call: Identifier?

  public init(_ message: ClientMessage, id: Identifier? = nil, seq: Int? = nil, ack: Int? = nil, call: Identifier? = nil) {
    (body, self.id, self.seq, self.ack, self.call) = (.message(message), id, seq, ack, call)
  }

  /// Reads one text frame. An error thrown ends the connection; everything milder is in `body`.
  public init(decoding bytes: [UInt8]) throws(FrameError) { self = try decodeFrame(bytes) }

  /// The frame as JSON in UTF-8, keys sorted.
  public func encoded() -> [UInt8] { encodeFrame(self) }
}

/// A server-to-client frame, written by the gateway and read by the client.
public struct ServerFrame: Hashable, Sendable {
  public typealias Body = FrameBody<ServerMessage, ServerMessageType>
  public var body: Body
  public var re: Identifier?
  public var seq: Int?
  public var ack: Int?
  public var call: Identifier?

  public init(_ message: ServerMessage, re: Identifier? = nil, seq: Int? = nil, ack: Int? = nil, call: Identifier? = nil) {
    (body, self.re, self.seq, self.ack, self.call) = (.message(message), re, seq, ack, call)
  }

  /// Reads one text frame. An error thrown ends the connection; everything milder is in `body`.
  public init(decoding bytes: [UInt8]) throws(FrameError) { self = try decodeFrame(bytes) }

  /// The frame as JSON in UTF-8, keys sorted.
  public func encoded() -> [UInt8] { encodeFrame(self) }
}

private func decodeFrame<Frame: Decodable>(_ bytes: [UInt8]) throws(FrameError) -> Frame {
  try checkFrame(bytes)
  do {
    return try JSONDecoder().decode(Frame.self, from: Data(bytes))
  } catch let error as FrameError {
    throw error
  } catch {
    throw .notAnObject
  }
}

private func encodeFrame(_ frame: some Encodable) -> [UInt8] {
  let encoder = JSONEncoder()
  encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
  // Only a number that is not finite can fail, and those fields are our own measurements: an empty object is then the honest
  // frame.
  return (try? encoder.encode(frame)).map(Array.init) ?? Array("{}".utf8)
}

extension EnvelopeReader {
  /// The envelope's text `t`; its absence ends the connection.
  func messageType() throws -> String {
    guard let t = try? decode(String.self, forKey: .t), !t.isEmpty else { throw FrameError.noType }
    return t
  }

  func identifier(_ key: EnvelopeKey) throws -> Identifier? { try decodeIfPresent(Identifier.self, forKey: key) }
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

extension ClientFrame: Codable {
  public init(from decoder: any Decoder) throws {
    guard let envelope = try? decoder.container(keyedBy: EnvelopeKey.self) else { throw FrameError.notAnObject }
    let name = try envelope.messageType()
    // Read one by one: a bad `call` must not cost the `id` that the answer needs.
    id = try? envelope.identifier(.id)
    seq = try? envelope.optionalNumber(.seq, in: Limits.sequence)
    ack = try? envelope.optionalNumber(.ack, in: 0...Limits.sequence.upperBound)
    call = try? envelope.identifier(.call)
    guard let type = ClientMessageType(rawValue: name) else {
      body = .unknown(String(name.prefix(Limits.textCharacters)))
      return
    }
    do {
      _ = try (envelope.identifier(.id), envelope.identifier(.call))
      _ = try envelope.optionalNumber(.seq, in: Limits.sequence)
      _ = try envelope.optionalNumber(.ack, in: 0...Limits.sequence.upperBound)
      if type.needsCall, call == nil { throw envelope.problem(.call, "missing") }
      if type.isNumbered, seq == nil { throw envelope.problem(.seq, "missing") }
      if type.isRequest, id == nil { throw envelope.problem(.id, "missing") }
      body = .message(try ClientMessage(type, from: envelope))
    } catch {
      body = .malformed(type, ruleText(error))
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var envelope = encoder.container(keyedBy: EnvelopeKey.self)
    try envelope.encodeIfPresent(id, forKey: .id)
    try envelope.encodeIfPresent(seq, forKey: .seq)
    try envelope.encodeIfPresent(ack, forKey: .ack)
    try envelope.encodeIfPresent(call, forKey: .call)
    switch body {
    case .message(let message):
      try envelope.encode(message.type.rawValue, forKey: .t)
      try message.encodePayload(to: &envelope)
    case .malformed(let type, _): try envelope.encode(type.rawValue, forKey: .t)
    case .unknown(let name): try envelope.encode(name, forKey: .t)
    }
  }
}

extension ServerFrame: Codable {
  public init(from decoder: any Decoder) throws {
    guard let envelope = try? decoder.container(keyedBy: EnvelopeKey.self) else { throw FrameError.notAnObject }
    let name = try envelope.messageType()
    re = try? envelope.identifier(.re)
    seq = try? envelope.optionalNumber(.seq, in: Limits.sequence)
    ack = try? envelope.optionalNumber(.ack, in: 0...Limits.sequence.upperBound)
    call = try? envelope.identifier(.call)
    guard let type = ServerMessageType(rawValue: name) else {
      body = .unknown(String(name.prefix(Limits.textCharacters)))
      return
    }
    do {
      body = .message(try ServerMessage(type, from: envelope))
    } catch {
      body = .malformed(type, ruleText(error))
    }
  }

  public func encode(to encoder: any Encoder) throws {
    var envelope = encoder.container(keyedBy: EnvelopeKey.self)
    try envelope.encodeIfPresent(re, forKey: .re)
    try envelope.encodeIfPresent(seq, forKey: .seq)
    try envelope.encodeIfPresent(ack, forKey: .ack)
    try envelope.encodeIfPresent(call, forKey: .call)
    switch body {
    case .message(let message):
      try envelope.encode(message.type.rawValue, forKey: .t)
      try message.encodePayload(to: &envelope)
    case .malformed(let type, _): try envelope.encode(type.rawValue, forKey: .t)
    case .unknown(let name): try envelope.encode(name, forKey: .t)
    }
  }
}
