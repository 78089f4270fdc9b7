import TrunklineAppProtocol
import TrunklineBytes

/// The messages of a session: the numbers of both directions, sent ones until the gateway has acked them, and requests until they
/// are answered (docs/reference/protocol.md, Frames and Session).
///
/// | event | effect |
/// |---|---|
/// | `ask` | an open request, `Limits.openRequests` at most (`isFull`) |
/// | `number` | the next number, kept until it is acked; nil with `Limits.outboxMessages` kept: the session begins afresh |
/// | `acked`, again or lower | messages up to this number are dropped; others stay |
/// | `received` the next number | `next`; the ack for it is due |
/// | `received` an earlier number; a later one | `repeated`; `gap` |
/// | `answered` | the open request, once |
/// | `resumed` | the kept messages from the gateway's number on, to be written as they are; requests that are not among them, to be sent again |
/// | `renumber` | both directions begin with 1; open requests, and messages that live calls need, are to be sent again |
struct NumberedMessages: Sendable {
  struct Message: Sendable {
    var message: ClientMessage
    var id: Identifier?
    var call: Identifier?
    /// 0: not numbered.
    var seq = 0
  }
  enum Received { case next, repeated, gap }

  private var lastSent = 0
  /// The highest number that was received.
  private(set) var lastSeen = 0
  private var outbox: [Message] = []
  private var open: [Message] = []

  /// The gateway has received all messages and answered all requests.
  var isEmpty: Bool { open.isEmpty && outbox.isEmpty }
  var hasCallRequest: Bool { open.contains { $0.call != nil } }
  /// The number to ack; nil: none was received.
  var ack: Int? { lastSeen > 0 ? lastSeen : nil }

  // MARK: sent messages

  /// Too many requests are open.
  var isFull: Bool { open.count >= Limits.openRequests }

  mutating func ask(_ message: Message) { if !isFull { open.append(message) } }

  mutating func number(_ message: Message) -> Message? {
    guard outbox.count < Limits.outboxMessages else { return nil }
    lastSent += 1
    var numbered = message
    numbered.seq = lastSent
    outbox.append(numbered)
    return numbered
  }

  mutating func acked(_ seq: Int) { outbox.removeAll { $0.seq <= seq } }

  // MARK: received messages

  mutating func received(_ seq: Int) -> Received {
    guard seq > lastSeen else { return .repeated }
    guard seq == lastSeen + 1 else { return .gap }
    lastSeen = seq
    return .next
  }

  /// The request with this id; nil: it is not open.
  mutating func answered(_ id: Identifier?) -> Message? {
    guard let id, let index = open.firstIndex(where: { $0.id == id }) else { return nil }
    return open.remove(at: index)
  }

  // MARK: a new connection

  mutating func resumed(from seq: Int) -> (kept: [Message], asked: [Message]) {
    outbox.removeAll { $0.seq < seq }
    let queued = Set(outbox.compactMap(\.id))
    return (outbox, open.filter { !queued.contains($0.id ?? Identifier(high: 0, low: 0)) })
  }

  /// The old numbers are void.
  mutating func renumber(live: Set<Identifier>) -> [Message] {
    let pending = outbox.filter { entry in
      guard entry.id == nil, let call = entry.call, live.contains(call) else { return false }
      switch entry.message {
      case .callRinging, .callUnavailable, .mediaReady, .mediaFail, .mediaActive: return true
      default: return false
      }
    }
    outbox = []
    lastSent = 0
    lastSeen = 0
    return open + pending
  }
}
