import TrunklineAppProtocol
import TrunklineBytes

/// The numbered messages that the peer has not acked, oldest first.
struct Outbox {
  private struct Entry {
    var frame: ServerFrame
    var bytes: Int
  }
  private var entries: [Entry] = []
  private var bytes = 0
  /// The highest `seq` assigned, and the highest acked.
  private(set) var lastSeq = 0
  private(set) var ackedSeq = 0

  /// Assigns the next `seq` to the message. Nil if the outbox is full, which ends the session.
  mutating func append(_ message: ServerMessage, re: Identifier?, call: Identifier) -> ServerFrame? {
    let frame = ServerFrame(message, re: re, seq: lastSeq + 1, call: call)
    let size = frame.encoded().count
    guard entries.count < Limits.outboxMessages, bytes + size <= Limits.outboxBytes else { return nil }
    lastSeq += 1
    bytes += size
    entries.append(Entry(frame: frame, bytes: size))
    return frame
  }

  /// An acked message that the control thread must be notified of.
  enum Acked {
    case offer(Identifier)
    case over(Identifier)
  }

  /// Removes the acked messages and returns the offers and terminal messages among them. Nil for a `seq` that was never sent.
  mutating func ack(_ seq: Int) -> [Acked]? {
    guard seq <= lastSeq else { return nil }
    guard seq > ackedSeq else { return [] }
    let count = min(seq - ackedSeq, entries.count)
    var acked: [Acked] = []
    for entry in entries.prefix(count) {
      bytes -= entry.bytes
      guard case .message(let message) = entry.frame.body, let call = entry.frame.call else { continue }
      if case .callOffer = message { acked.append(.offer(call)) }
      if message.type.isTerminal { acked.append(.over(call)) }
    }
    entries.removeFirst(count)
    ackedSeq = seq
    return acked
  }

  /// The messages that a resumed client still lacks, unchanged.
  var unacked: [ServerFrame] { entries.map(\.frame) }

  /// The device rejected this call by HTTP. An offer that it may not have received is replaced by an update of the call, which
  /// the device does not show: the numbering has no gap.
  mutating func withdrawOffer(of call: Identifier) {
    for index in entries.indices where entries[index].frame.call == call {
      guard case .message(.callOffer(let offer)) = entries[index].frame.body else { continue }
      let frame = ServerFrame(.callUpdate(CallUpdate(from: offer.from)), seq: entries[index].frame.seq, call: call)
      bytes -= entries[index].bytes
      entries[index] = Entry(frame: frame, bytes: frame.encoded().count)
      bytes += entries[index].bytes
    }
  }

  func holdsAnswer(to request: Identifier) -> Bool { entries.contains { $0.frame.re == request } }
}
