import TrunklineBytes
import TrunklinePlatform
import WebSocket

/// One WebSocket that we open (RFC 6455), over TCP or TLS: messages are sent in the order of `send`, and received. On the
/// streams' thread.
///
/// | state | event | next |
/// |---|---|---|
/// | upgrading | 101 with the right accept | open |
/// | upgrading | anything else | closed, reported once |
/// | open | messages; pings, which are answered | – |
/// | open | close, end of stream, error, a broken frame | closed, reported once |
/// | any | `close` | closed, not reported |
final class StreamLink {
  enum Event {
    case opened
    case text([UInt8])
    case binary([UInt8])
    /// The last event. The peer's reason, or a fault of the connection.
    case closed(String, isByPeer: Bool)
  }

  private enum State { case upgrading, open, closed }
  private let connection: ClientConnection
  private let key: String
  private let handler: (Event) -> Void
  private var state = State.upgrading
  /// The answer to the handshake.
  private var head: [UInt8] = []
  private var reader = FrameReader(.client, messageBytes: Limits.messageBytes)
  private var masks = SystemRandomNumberGenerator()

  init(
    _ address: SocketAddress, request: [UInt8], key: String, tls: TLSSession?, loop: EventLoop, handler: @escaping (Event) -> Void
  ) throws(SystemError) {
    connection = try ClientConnection(
      address, tls: tls,
      bounds: .init(
        readBytes: Limits.readBytes, readsPerStep: Limits.readsPerStep, unsentBytes: Limits.surelyUnreadBytes), loop: loop)
    (self.key, self.handler) = (key, handler)
    connection.handler = { [weak self] in self?.handle($0) }
    connection.send { $0 += request }
  }

  /// Octets that the socket has not accepted.
  var waiting: Int { connection.waiting }
  /// When the socket last accepted bytes for the peer, or none were pending.
  var lastAcceptedAt: Instant { connection.lastAcceptedAt }

  func send(_ kind: FrameWriter.Kind, _ payload: [UInt8]) {
    guard state == .open else { return }
    connection.send { FrameWriter.append(kind, payload, mask: masks.next(), to: &$0) }
  }

  /// Sends a close frame if the WebSocket is open. Not reported to the handler.
  func close(_ code: UInt16 = 1000) {
    guard state != .closed else { return }
    let wasOpen = state == .open
    if wasOpen { send(.close, [UInt8(code >> 8), UInt8(code & 0xff)]) }
    state = .closed
    if wasOpen { connection.flush() }
    connection.close()
  }

  func flush() { connection.flush() }

  private func handle(_ event: ClientConnection.Event) {
    switch event {
    case .received(let bytes): receive(bytes)
    case .closed(let why): end(why)
    }
  }

  private func receive(_ bytes: UnsafeRawBufferPointer) {
    guard state == .upgrading else { return readFrames(bytes) }
    head += bytes
    guard let end = Self.endOfHead(head) else {
      if head.count > Limits.handshakeBytes { self.end("its answer to the handshake is too long") }
      return
    }
    if let why = UpgradeAnswer.fault(String(decoding: head[..<end], as: UTF8.self), key: key) { return self.end(why) }
    state = .open
    let rest = Array(head[end...])
    head = []
    handler(.opened)
    rest.withUnsafeBytes { readFrames($0) }
  }

  private static func endOfHead(_ bytes: [UInt8]) -> Int? {
    bytes.indices.first { $0 + 3 < bytes.count && bytes[$0...($0 + 3)].elementsEqual([13, 10, 13, 10]) }.map { $0 + 4 }
  }

  private func readFrames(_ bytes: UnsafeRawBufferPointer) {
    guard state == .open else { return }
    reader.read(bytes) { event in
      switch event {
      case .text(let message): handler(.text(message))
      case .binary(let message): handler(.binary(message))
      case .ping(let payload): send(.pong, payload)
      case .pong, .fragment: break
      case .close(let code): end("it closed the stream" + (code.map { " with \($0)" } ?? ""), isByPeer: true, code ?? 1000)
      case .failed(let code): end("a broken frame", code)
      }
      return state == .open
    }
  }

  private func end(_ why: String, isByPeer: Bool = false, _ code: UInt16 = 1001) {
    guard state != .closed else { return }
    close(code)
    handler(.closed(why, isByPeer: isByPeer))
  }
}
