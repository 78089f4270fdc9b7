public import TrunklineBytes

/// One connection that we open, over TCP or TLS: sends octets in the order of `send` and receives octets. On its loop's thread.
///
/// | state | event | next |
/// |---|---|---|
/// | connecting | writable | open; TLS begins |
/// | connecting, open | the kernel's or TLS's error, end of stream, too much unsent | closed, reported once |
/// | connecting, open | no acknowledgement for `Bounds.patience` | closed, reported once: `Connection timed out` |
/// | any | `close` | closed, not reported |
///
/// Octets sent before it is open are queued.
public final class ClientConnection {
  public enum Event {
    /// Valid until the handler returns.
    case received(UnsafeRawBufferPointer)
    /// The reason; no event follows.
    case closed(String)
  }
  public struct Bounds: Sendable {
    /// Octets of one read.
    public var readBytes: Int
    /// Reads in one step of the loop.
    public var readsPerStep: Int
    /// Limit of octets that the socket has not accepted; beyond it the connection is closed.
    public var unsentBytes: Int
    public var patience: TCPSocket.Patience
    public init(readBytes: Int, readsPerStep: Int, unsentBytes: Int, patience: TCPSocket.Patience = .usual) {
      (self.readBytes, self.readsPerStep, self.unsentBytes) = (readBytes, readsPerStep, unsentBytes)
      self.patience = patience
    }
  }

  public var handler: ((Event) -> Void)?
  public private(set) var isOpen = true
  /// When the socket last accepted bytes for the peer, or none were pending.
  public private(set) var lastAcceptedAt: Instant
  private let loop: EventLoop
  private let socket: TCPSocket
  private let tls: TLSSession?
  private let bounds: Bounds
  private var isConnecting = true
  private var watchesWrites = true
  /// Octets that `flush` has not processed.
  private var plain: [UInt8] = []
  /// Octets for the socket; the first `sent` of them are sent. Bytes that TLS has not encrypted yet wait in the session.
  private var unsent: [UInt8] = []
  private var sent = 0

  /// Throws an error that the kernel returns at once.
  public init(_ address: SocketAddress, tls: TLSSession?, bounds: Bounds, loop: EventLoop) throws(SystemError) {
    socket = try TCPSocket(connect: address)
    socket.limit(bounds.patience)
    (self.loop, self.tls, self.bounds, lastAcceptedAt) = (loop, tls, bounds, loop.now)
    try loop.register(socket.fd, [.readable, .writable]) { [weak self] events in self?.ready(events) }
  }

  /// Octets that the socket has not accepted.
  public var waiting: Int { plain.count + unsent.count - sent }

  /// Queues what `write` appends; `flush` sends it.
  public func send(_ write: (inout [UInt8]) -> Void) { write(&plain) }

  /// Not reported to the handler. Flushed bytes may still be sent, others are dropped.
  public func close() {
    guard isOpen else { return }
    isOpen = false
    handler = nil
    tls?.close()
    if !isConnecting, let tls {
      tls.drainUnsent(into: &unsent)
      unsent[sent...].withUnsafeBytes { _ = try? socket.write($0) }
    }
    loop.unregister(socket.fd)
  }

  public func flush() {
    guard isOpen, !isConnecting else { return }
    if !plain.isEmpty {
      if let tls {
        guard tls.write(plain) else { return end(tls.failure ?? "TLS accepts no more bytes") }
        plain.removeAll(keepingCapacity: plain.capacity <= bounds.readBytes)
      } else if unsent.isEmpty {
        swap(&unsent, &plain)
      } else {
        unsent += plain
        plain.removeAll(keepingCapacity: plain.capacity <= bounds.readBytes)
      }
    }
    tls?.drainUnsent(into: &unsent)
    if sent == unsent.count { lastAcceptedAt = loop.now }
    while sent < unsent.count {
      var step: Result<Int, SystemError> = .success(0)
      unsent.withUnsafeBytes { raw in
        step = Result { () throws(SystemError) in try socket.write(UnsafeRawBufferPointer(rebasing: raw[sent...])) }
      }
      switch step {
      case .failure(let error): return end("\(error)")
      case .success(0):
        guard unsent.count - sent <= bounds.unsentBytes else { return end("the peer accepts no more bytes") }
        if sent > bounds.readBytes {
          unsent.removeFirst(sent)
          sent = 0
        }
        return watch(writes: true)
      case .success(let count):
        sent += count
        lastAcceptedAt = loop.now
      }
    }
    unsent.removeAll(keepingCapacity: unsent.capacity <= bounds.readBytes)
    sent = 0
    watch(writes: false)
  }

  private func watch(writes: Bool) {
    guard writes != watchesWrites else { return }
    watchesWrites = writes
    try? loop.modify(socket.fd, writes ? [.readable, .writable] : .readable)
  }

  private func ready(_ events: IOEvents) {
    if isConnecting {
      if let error = socket.connectionError() { return end("\(error)") }
      guard events.contains(.writable) else { return }
      isConnecting = false
      tls?.start()
    }
    if events.contains(.writable) { flush() }
    if isOpen, events.contains(.readable) || events.hasFailure { read() }
  }

  /// Reads received bytes without waiting for the loop to report them: to be called before a peer is judged by its silence. One
  /// system call if there are none.
  public func readArrived() {
    if isOpen, !isConnecting { read() }
  }

  private func read() {
    withUnsafeTemporaryAllocation(byteCount: bounds.readBytes, alignment: 16) { buffer in
      for _ in 0..<bounds.readsPerStep {
        guard isOpen else { return }
        do throws(SystemError) {
          switch try socket.read(into: buffer) {
          case .wait: return
          case .closed: return end("it closed the connection")
          case .bytes(let count): receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]), buffer)
          }
        } catch {
          return end("\(error)")
        }
      }
    }
  }

  private func receive(_ bytes: UnsafeRawBufferPointer, _ scratch: UnsafeMutableRawBufferPointer) {
    guard let tls else {
      handler?(.received(bytes))
      return
    }
    tls.received(bytes, plain: { handler?(.received($0)) }, into: scratch)
    guard isOpen else { return }
    switch tls.state {
    case .failed: end("TLS: \(tls.failure ?? "failed")")
    case .closed: end("it closed TLS")
    case .open, .handshaking: flush()
    }
  }

  private func end(_ why: String) {
    guard isOpen else { return }
    let handler = handler
    close()
    handler?(.closed(why))
  }
}
