import Bytes
import Platform
import RESP

/// One connection to a Redis: bytes out in the order of `send`, values in. On the engine's thread.
///
/// | state | event | next |
/// |---|---|---|
/// | connecting | writable | open, or closed with the kernel's reason |
/// | open | values | – |
/// | open | end of stream, error, no RESP, TLS over, too much unsent | closed, told once |
/// | any | `close` | closed, not told |
final class EngineLink {
  enum Event {
    case value(RESPValue)
    /// Why; nothing follows.
    case closed(String)
  }

  private let loop: EventLoop
  private let socket: TCPSocket
  private let reader: RESPReader
  private let tls: TLSSession?
  /// Whose connection it is.
  var handler: ((Event) -> Void)?
  private var isConnecting = true
  private var watchesWrites = true
  private(set) var isOpen = true
  /// With TLS: bytes for the socket. What TLS has not taken yet waits in it.
  private var unsent: [UInt8] = []
  private var sent = 0
  private var plain: [UInt8] = []

  init(
    _ address: SocketAddress, tls: TLSSession?, bounds: RESPReader.Bounds, loop: EventLoop, handler: @escaping (Event) -> Void
  ) throws {
    guard let reader = RESPReader(bounds) else { throw TLSFailure("no memory") }
    socket = try TCPSocket(connect: address)
    (self.loop, self.reader, self.tls, self.handler) = (loop, reader, tls, handler)
    try loop.register(socket.fd, [.readable, .writable]) { [weak self] events in self?.ready(events) }
  }

  /// Queues a command; `flush` sends.
  func send(_ command: RESPCommand) { command.write(to: &plain) }

  /// Not told to the handler.
  func close() {
    guard isOpen else { return }
    isOpen = false
    handler = nil
    tls?.close()
    if !isConnecting, let tls {
      tls.takeUnsent(into: &unsent)
      unsent[sent...].withUnsafeBytes { _ = try? socket.write($0) }
    }
    loop.unregister(socket.fd)
  }

  func flush() {
    guard isOpen, !isConnecting else { return }
    if !plain.isEmpty {
      if let tls {
        guard tls.write(plain) else { return end(tls.failure ?? "TLS takes no more") }
        plain.removeAll(keepingCapacity: plain.capacity <= Limits.readBytes)
      } else if unsent.isEmpty {
        swap(&unsent, &plain)
      } else {
        unsent += plain
        plain.removeAll(keepingCapacity: plain.capacity <= Limits.readBytes)
      }
    }
    tls?.takeUnsent(into: &unsent)
    while sent < unsent.count {
      var step: Result<Int, SystemError> = .success(0)
      unsent.withUnsafeBytes { raw in
        step = Result { () throws(SystemError) in try socket.write(UnsafeRawBufferPointer(rebasing: raw[sent...])) }
      }
      switch step {
      case .failure(let error): return end("\(error)")
      case .success(0):
        guard unsent.count - sent <= Limits.unsentBytes else { return end("it takes no more bytes") }
        return watch(writes: true)
      case .success(let count): sent += count
      }
    }
    unsent.removeAll(keepingCapacity: unsent.capacity <= Limits.readBytes)
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

  private func read() {
    withUnsafeTemporaryAllocation(byteCount: Limits.readBytes, alignment: 16) { buffer in
      for _ in 0..<Limits.readsPerTurn {
        guard isOpen else { return }
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
    guard isOpen else { return }
    switch tls.state {
    case .failed: end("TLS: \(tls.failure ?? "failed")")
    case .closed: end("it closed TLS")
    case .open, .handshaking: flush()
    }
  }

  private func take(plain bytes: UnsafeRawBufferPointer) {
    do throws(RESPFailure) {
      try reader.append(bytes)
      while isOpen, let value = try reader.next() { handler?(.value(value)) }
    } catch {
      end("what it says is not RESP: \(error)")
    }
  }

  private func end(_ why: String) {
    guard isOpen else { return }
    let handler = handler
    close()
    handler?(.closed(why))
  }
}
