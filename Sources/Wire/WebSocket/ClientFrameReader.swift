/// Reads a server's frames as a client (RFC 6455 §5), at any split of the stream: not masked, without extensions.
///
/// | frame | event |
/// |---|---|
/// | text or binary, complete with its continuations | `text`, `binary` |
/// | ping, pong, close | `ping`, `pong`, `close`, also between fragments |
/// | masked, RSV, unknown opcode, fragmented or long control frame, lone continuation, length not minimal | `failed(1002)` |
/// | a message above `messageBytes` | `failed(1009)`, at its header |
///
/// After `failed` or `close` nothing more is read. Memory: the incomplete frame, and the incomplete message.
public struct ClientFrameReader: Sendable {
  public enum Event: Equatable, Sendable {
    case text([UInt8])
    case binary([UInt8])
    case ping([UInt8])
    case pong
    case close(UInt16?)
    case failed(UInt16)
  }

  private let messageBytes: Int
  private var waiting: [UInt8] = []
  private var message: [UInt8] = []
  /// The incomplete message's opcode: 1 or 2.
  private var opcode: UInt8?
  private var isOver = false

  public init(messageBytes: Int) { self.messageBytes = messageBytes }

  /// The events of these octets, in order.
  public mutating func read(_ octets: some Sequence<UInt8>) -> [Event] {
    guard !isOver else { return [] }
    waiting += octets
    var out: [Event] = []
    var start = 0
    while !isOver, let (frame, length) = frame(at: start) {
      start += length
      switch frame {
      case .success(let event): if let event { out.append(event) }
      case .failure(let failure): out.append(.failed(failure.code))
      }
      if case .close = out.last { isOver = true }
      if case .failed = out.last { isOver = true }
    }
    waiting.removeFirst(min(start, waiting.count))
    if isOver { (waiting, message) = ([], []) }
    return out
  }

  private struct Failure: Error {
    let code: UInt16
    init(_ code: UInt16) { self.code = code }
  }

  /// The frame at this index, with its length; nil while it is incomplete. An event only where a message or control frame ends.
  private mutating func frame(at start: Int) -> (Result<Event?, Failure>, Int)? {
    let count = waiting.count - start
    guard count >= 2 else { return nil }
    let (first, second) = (waiting[start], waiting[start + 1])
    let (kind, isFinal) = (first & 15, first & 0x80 != 0)
    let isControl = kind >= 8
    guard first & 0x70 == 0, second & 0x80 == 0, [0, 1, 2, 8, 9, 10].contains(kind) else { return (.failure(Failure(1002)), 2) }
    if isControl, !isFinal || second > Limits.controlBytes { return (.failure(Failure(1002)), 2) }
    if !isControl, (kind == 0) == (opcode == nil) { return (.failure(Failure(1002)), 2) }
    let extended = second == 126 ? 2 : second == 127 ? 8 : 0
    guard count >= 2 + extended else { return nil }
    var length = UInt64(second)
    if extended > 0 {
      length = waiting[start + 2..<start + 2 + extended].reduce(0) { $0 << 8 | UInt64($1) }
      guard length > (extended == 2 ? 125 : 0xffff), length >> 63 == 0 else { return (.failure(Failure(1002)), 2) }
    }
    if !isControl, length > UInt64(max(0, messageBytes - message.count)) { return (.failure(Failure(1009)), 2) }
    let total = 2 + extended + Int(clamping: length)
    guard count >= total else { return nil }
    let payload = Array(waiting[start + 2 + extended..<start + total])
    switch kind {
    case 8: return (.success(.close(payload.count >= 2 ? UInt16(payload[0]) << 8 | UInt16(payload[1]) : nil)), total)
    case 9: return (.success(.ping(payload)), total)
    case 10: return (.success(.pong), total)
    default: break
    }
    if kind != 0 { opcode = kind }
    message += payload
    guard isFinal else { return (.success(nil), total) }
    defer { (message, opcode) = ([], nil) }
    return (.success(opcode == 1 ? .text(message) : .binary(message)), total)
  }
}
