import Bytes
import Platform
import WebSocket

/// One WebSocket that we open (RFC 6455), over TCP or TLS: messages out in the order of `send`, messages in. On the streams' thread.
///
/// | state | event | next |
/// |---|---|---|
/// | connecting | the kernel's word, TLS, 101 with the right accept | open |
/// | connecting | anything else | closed, told once |
/// | open | messages; pings, which are answered | – |
/// | open | close, end of stream, error, a broken frame | closed, told once |
/// | any | `close` | closed, not told |
final class StreamLink {
  enum Event {
    case opened
    case text([UInt8])
    case binary([UInt8])
    /// Nothing follows. The peer's own word, or a fault of the line.
    case closed(String, isByPeer: Bool)
  }

  private enum State { case connecting, upgrading, open, closed }
  private let loop: EventLoop
  private let socket: TCPSocket
  private let tls: TLSSession?
  private let key: String
  private let handler: (Event) -> Void
  private var state = State.connecting
  private var watchesWrites = true
  /// For the socket; of these the first `sent` are gone.
  private var unsent: [UInt8] = []
  private var sent = 0
  /// Of the answer to the handshake.
  private var head: [UInt8] = []
  private var reader = ClientFrameReader(messageBytes: Limits.messageBytes)
  private var masks = SystemRandomNumberGenerator()
  /// When the peer last took something, or had nothing to take.
  private(set) var tookLast: Instant

  init(
    _ place: SocketAddress, request: [UInt8], key: String, tls: TLSSession?, loop: EventLoop, handler: @escaping (Event) -> Void
  ) throws(SystemError) {
    socket = try TCPSocket(connect: place)
    (self.loop, self.tls, self.key, self.handler) = (loop, tls, key, handler)
    tookLast = loop.now
    if tls?.write(request) == nil { unsent = request }
    try loop.register(socket.fd, [.readable, .writable]) { [weak self] events in self?.ready(events) }
  }

  /// Octets that the peer has not taken.
  var waiting: Int { unsent.count - sent }

  func send(_ kind: ClientFrameWriter.Kind, _ payload: [UInt8]) {
    guard state == .open else { return }
    var frame: [UInt8] = []
    ClientFrameWriter.append(kind, payload, mask: masks.next(), to: &frame)
    if let tls { _ = tls.write(frame) } else { unsent += frame }
  }

  /// With a close frame where there is a WebSocket. Not told to the handler.
  func close(_ code: UInt16 = 1000) {
    guard state != .closed else { return }
    if state == .open {
      send(.close, [UInt8(code >> 8), UInt8(code & 0xff)])
      tls?.close()
      flush()
    }
    state = .closed
    loop.unregister(socket.fd)
  }

  func flush() {
    guard state == .upgrading || state == .open else { return }
    tls?.takeUnsent(into: &unsent)
    if waiting == 0 { tookLast = loop.now }
    while waiting > 0 {
      var step: Result<Int, SystemError> = .success(0)
      unsent.withUnsafeBytes { raw in
        step = Result { () throws(SystemError) in try socket.write(UnsafeRawBufferPointer(rebasing: raw[sent...])) }
      }
      switch step {
      case .failure(let error): return end("\(error)")
      case .success(0): return watch(writes: true)
      case .success(let count):
        sent += count
        tookLast = loop.now
      }
    }
    unsent.removeAll(keepingCapacity: true)
    sent = 0
    watch(writes: false)
  }

  private func watch(writes: Bool) {
    if !writes || sent > Limits.unsentBytes {
      unsent.removeFirst(sent)
      sent = 0
    }
    guard writes != watchesWrites else { return }
    watchesWrites = writes
    try? loop.modify(socket.fd, writes ? [.readable, .writable] : .readable)
  }

  private func ready(_ events: IOEvents) {
    if state == .connecting {
      if let error = socket.connectionError() { return end("\(error)") }
      guard events.contains(.writable) else { return }
      state = .upgrading
      tls?.start()
    }
    if events.contains(.writable) { flush() }
    if state != .closed, events.contains(.readable) || events.hasFailure { read() }
  }

  private func read() {
    withUnsafeTemporaryAllocation(byteCount: Limits.readBytes, alignment: 16) { buffer in
      for _ in 0..<Limits.readsPerTurn {
        guard state != .closed else { return }
        do throws(SystemError) {
          switch try socket.read(into: buffer) {
          case .wait: return
          case .closed: return end("it closed the connection")
          case .bytes(let count): take(UnsafeRawBufferPointer(rebasing: buffer[..<count]), buffer)
          }
        } catch {
          return end("\(error)")
        }
      }
    }
  }

  private func take(_ bytes: UnsafeRawBufferPointer, _ scratch: UnsafeMutableRawBufferPointer) {
    guard let tls else { return take(plain: bytes) }
    tls.received(bytes, plain: { take(plain: $0) }, into: scratch)
    guard state != .closed else { return }
    switch tls.state {
    case .failed: end("TLS: \(tls.failure ?? "failed")")
    case .closed: end("it closed TLS")
    case .open, .handshaking: flush()
    }
  }

  private func take(plain bytes: UnsafeRawBufferPointer) {
    guard state == .upgrading else { return takeFrames(bytes) }
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
    rest.withUnsafeBytes { takeFrames($0) }
  }

  private static func endOfHead(_ bytes: [UInt8]) -> Int? {
    bytes.indices.first { $0 + 3 < bytes.count && bytes[$0...($0 + 3)].elementsEqual([13, 10, 13, 10]) }.map { $0 + 4 }
  }

  private func takeFrames(_ bytes: UnsafeRawBufferPointer) {
    guard state == .open else { return }
    for event in reader.read(bytes) where state == .open {
      switch event {
      case .text(let message): handler(.text(message))
      case .binary(let message): handler(.binary(message))
      case .ping(let payload): send(.pong, payload)
      case .pong: break
      case .close(let code): end("it closed the stream" + (code.map { " with \($0)" } ?? ""), isByPeer: true, code ?? 1000)
      case .failed(let code): end("a broken frame", code)
      }
    }
  }

  private func end(_ why: String, isByPeer: Bool = false, _ code: UInt16 = 1001) {
    guard state != .closed else { return }
    close(code)
    handler(.closed(why, isByPeer: isByPeer))
  }
}
