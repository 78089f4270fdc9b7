#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// The messages of one direction: `ClientMessage` (app to gateway) or `ServerMessage` (gateway to app).
public protocol ProtocolMessage: Hashable, Sendable {
  associatedtype MessageType: ProtocolMessageType where MessageType.Message == Self
  /// The type, and what is written as `d`; without a payload no `d` is written.
  var content: (type: MessageType, payload: (any Encodable)?) { get }
}

extension ProtocolMessage {
  public var type: MessageType { content.type }
}

/// The message types of one direction: each case is a `t`, each `row` has the rules that docs/reference/protocol.md
/// and docs/reference/schemas describe.
public protocol ProtocolMessageType: RawRepresentable<String>, CaseIterable, Hashable, Sendable {
  associatedtype Message
  var row: MessageRow<Message> { get }
}

extension ProtocolMessageType {
  /// Carries an `id` and gets exactly one answer.
  public var isRequest: Bool { row.kind == .request }
  /// Carries a `seq` and is kept until acked.
  public var isNumbered: Bool { row.scope == .numbered }
  /// Names a call in the envelope.
  public var needsCall: Bool { row.scope != .session }
}

/// One row of the message table.
public struct MessageRow<Message> {
  public enum Kind: Sendable {
    /// Carries an `id`.
    case request
    /// Carries the `re` of the request it answers.
    case response
    /// Neither is required. An `err` is here, because it has a `re` only if the message it answers had an `id`.
    case event
  }
  public enum Scope: Sendable {
    case session
    /// Names a call, without a number: lost with the socket.
    case call
    /// Names a call and carries a `seq`.
    case numbered
  }
  public let kind: Kind
  public let scope: Scope
  let read: (EnvelopeReader) throws -> Message

  /// A message without `d`.
  init(_ kind: Kind, _ message: Message, _ scope: Scope = .session) {
    (self.kind, self.scope) = (kind, scope)
    read = { _ in message }
  }

  /// A message whose `d` is a `Payload`.
  init<Payload: Decodable>(_ kind: Kind, _ message: @escaping (Payload) -> Message, _ scope: Scope = .session) {
    (self.kind, self.scope) = (kind, scope)
    read = { message(try $0.payload()) }
  }
}

enum EnvelopeKey: String, CodingKey { case t, id, re, seq, ack, call, d }

typealias EnvelopeReader = KeyedDecodingContainer<EnvelopeKey>

extension EnvelopeReader {
  private struct Absent<Payload: Decodable>: Decodable { var d: Payload }

  /// `d`, which may be absent when empty: whether that is legal is up to the fields of the payload.
  func payload<Payload: Decodable>() throws -> Payload {
    if contains(.d), try !decodeNil(forKey: .d) { return try decode(Payload.self, forKey: .d) }
    return try JSONDecoder().decode(Absent<Payload>.self, from: Data(#"{"d":{}}"#.utf8)).d
  }
}
