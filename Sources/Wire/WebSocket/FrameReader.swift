/// Reads the peer's frames (RFC 6455 §5), at any split of the stream, without extensions: as a server a client's, which are masked,
/// as a client a server's, which are not.
///
/// | frame | event |
/// |---|---|
/// | text or binary, and its continuations up to FIN | `fragment` for each but the last, `text` or `binary` with the last |
/// | ping, pong, close | `ping`, `pong`, `close`, also between fragments |
/// | masked, or not, against the peer's role | `failed(1002)` |
/// | RSV, unknown opcode, fragmented or long control frame, lone continuation, length not minimal | `failed(1002)` |
/// | binary at a server: our apps speak JSON | `failed(1003)` |
/// | close with a code that may not be sent | `failed(1002)` |
/// | a message above `messageBytes` | `failed(1009)`, at its header |
///
/// After `failed` or `close` nothing more is read. The message's consumer checks UTF-8: text that is not JSON is 1007. Memory:
/// the incomplete message.
public struct FrameReader: Sendable {
  public enum Role: Sendable { case server, client }
  public enum Event: Equatable, Sendable {
    case text([UInt8])
    /// At a client only.
    case binary([UInt8])
    /// A fragment of a message that continues.
    case fragment
    case ping([UInt8])
    case pong
    /// The peer's code, if it gave one.
    case close(UInt16?)
    case failed(UInt16)
  }
  private enum Opcode: UInt8 { case continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 }
  private struct Frame: Sendable {
    var opcode: Opcode
    var isFinal: Bool
    var remaining: Int
    var mask: UInt32
    /// Octets of the payload before this point, for the mask's phase.
    var offset = 0
  }
  private enum State: Sendable {
    case header
    case payload(Frame)
    case ended
  }

  private let role: Role
  private let messageBytes: Int
  private var state = State.header
  /// The incomplete header: at most 14 octets.
  private var header: [UInt8] = []
  private var message: [UInt8] = []
  /// The incomplete message's kind: text or binary.
  private var kind: Opcode?
  private var control: [UInt8] = []

  public init(_ role: Role, messageBytes: Int) { (self.role, self.messageBytes) = (role, messageBytes) }

  /// A frame or a message has begun and is incomplete.
  public var isMidMessage: Bool {
    if case .payload = state { return true }
    return kind != nil || !header.isEmpty
  }

  /// Reads all octets; `event` returns false to stop (the connection is closing), after which nothing more is read.
  public mutating func read(_ octets: UnsafeRawBufferPointer, _ event: (Event) -> Bool) {
    var rest = octets[...]
    while true {
      switch state {
      case .ended: return
      case .header:
        guard let frame = parseHeader(&rest) else { return }
        switch frame {
        case .success(let frame):
          guard frame.remaining == 0 else {
            state = .payload(frame)
            continue
          }
          guard finish(frame, event) else { return }
        case .failure(let failure): return end(.failed(failure.code), event)
        }
      case .payload(var frame):
        guard !rest.isEmpty else { return }
        parse(&rest, &frame)
        state = frame.remaining == 0 ? .header : .payload(frame)
        if frame.remaining == 0, !finish(frame, event) { return }
      }
    }
  }

  private struct Failure: Error {
    let code: UInt16
    init(_ code: UInt16) { self.code = code }
  }

  /// Nil while the header is incomplete.
  private mutating func parseHeader(_ rest: inout Slice<UnsafeRawBufferPointer>) -> Result<Frame, Failure>? {
    while header.count < headerCount {
      guard let octet = rest.popFirst() else { return nil }
      header.append(octet)
      // The first two octets suffice to refuse, and determine how many follow.
      if header.count == 2, let failure = refusal(header[0], header[1]) { return .failure(failure) }
    }
    defer { header.removeAll(keepingCapacity: true) }
    let isFinal = header[0] & 0x80 != 0
    guard let opcode = Opcode(rawValue: header[0] & 15) else { return .failure(Failure(1002)) }
    let extended = headerCount - 2 - maskBytes
    var length = UInt64(header[1] & 127)
    if extended > 0 {
      length = header[2..<2 + extended].reduce(0) { $0 << 8 | UInt64($1) }
      guard length > (extended == 2 ? 125 : 0xffff), length >> 63 == 0 else { return .failure(Failure(1002)) }
    }
    if opcode.rawValue < 8, length > UInt64(messageBytes - message.count) { return .failure(Failure(1009)) }
    let mask = header.suffix(maskBytes).reduce(0) { $0 << 8 | UInt32($1) }
    if opcode == .text || opcode == .binary { kind = opcode }
    return .success(Frame(opcode: opcode, isFinal: isFinal, remaining: Int(clamping: length), mask: mask))
  }

  /// Octets of the header, as far as known.
  private var headerCount: Int {
    guard header.count >= 2 else { return 2 }
    return switch header[1] & 127 {
    case 126: 4 + maskBytes
    case 127: 10 + maskBytes
    default: 2 + maskBytes
    }
  }

  private var maskBytes: Int { role == .server ? 4 : 0 }

  private func refusal(_ first: UInt8, _ second: UInt8) -> Failure? {
    guard first & 0x70 == 0, (second & 0x80 != 0) == (role == .server), let opcode = Opcode(rawValue: first & 15) else {
      return Failure(1002)
    }
    switch opcode {
    case .binary where role == .server: return Failure(1003)
    case .text, .binary: return kind == nil ? nil : Failure(1002)
    case .continuation: return kind == nil ? Failure(1002) : nil
    case .close, .ping, .pong:
      return first & 0x80 != 0 && Int(second & 127) <= Limits.controlBytes ? nil : Failure(1002)
    }
  }

  private mutating func parse(_ rest: inout Slice<UnsafeRawBufferPointer>, _ frame: inout Frame) {
    let piece = rest.prefix(frame.remaining)
    rest = rest.dropFirst(piece.count)
    let (mask, offset) = (frame.mask, frame.offset)
    func unmask(_ out: inout [UInt8]) {
      guard role == .server else { return out.append(contentsOf: piece) }
      out.reserveCapacity(out.count + piece.count)
      var position = offset
      for octet in piece {
        out.append(octet ^ UInt8(truncatingIfNeeded: mask >> UInt32(24 - 8 * (position & 3))))
        position &+= 1
      }
    }
    if frame.opcode.rawValue < 8 { unmask(&message) } else { unmask(&control) }
    frame.remaining -= piece.count
    frame.offset = (offset &+ piece.count) & 3
  }

  /// Ends a frame; false if nothing more should be read.
  private mutating func finish(_ frame: Frame, _ event: (Event) -> Bool) -> Bool {
    var reported: Event
    switch frame.opcode {
    case .ping:
      reported = .ping(control)
      control = []
    case .pong:
      reported = .pong
      control = []
    case .close:
      reported = Self.close(control)
      end(reported, event)
      return false
    case .text, .continuation, .binary:
      if frame.isFinal {
        reported = kind == .binary ? .binary(message) : .text(message)
        message = []
        kind = nil
      } else {
        reported = .fragment
      }
    }
    guard event(reported) else {
      state = .ended
      return false
    }
    return true
  }

  private mutating func end(_ reported: Event, _ event: (Event) -> Bool) {
    state = .ended
    message = []
    control = []
    _ = event(reported)
  }

  /// RFC 6455 §5.5.1 and §7.4: a code of one octet is invalid, and some codes must not be sent in a frame.
  private static func close(_ payload: [UInt8]) -> Event {
    guard !payload.isEmpty else { return .close(nil) }
    guard payload.count >= 2 else { return .failed(1002) }
    let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
    guard (1000...1003).contains(code) || (1007...1014).contains(code) || (3000...4999).contains(code) else {
      return .failed(1002)
    }
    guard payload.count == 2 || String(validating: payload[2...], as: UTF8.self) != nil else { return .failed(1007) }
    return .close(code)
  }
}
