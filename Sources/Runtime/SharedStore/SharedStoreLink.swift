import RESP
import TrunklineBytes
import TrunklinePlatform

/// One connection to a Redis: commands out in the order of `send`, values in. On the shared store's thread.
final class SharedStoreLink {
  enum Event {
    case value(RESPValue)
    /// The reason; no event follows.
    case closed(String)
  }

  /// The owner's handler.
  var handler: ((Event) -> Void)?
  private let connection: ClientConnection
  private let reader: RESPReader

  init(
    _ address: SocketAddress, tls: TLSSession?, bounds: RESPReader.Bounds, loop: EventLoop, handler: @escaping (Event) -> Void
  ) throws {
    guard let reader = RESPReader(bounds) else { throw TLSFailure("no memory") }
    (self.reader, self.handler) = (reader, handler)
    connection = try ClientConnection(
      address, tls: tls,
      bounds: .init(readBytes: Limits.readBytes, readsPerStep: Limits.readsPerStep, unsentBytes: Limits.unsentBytes), loop: loop)
    connection.handler = { [weak self] in self?.handle($0) }
  }

  var isOpen: Bool { connection.isOpen }

  /// Queues a command; `flush` sends.
  func send(_ command: RESPCommand) { connection.send { command.write(to: &$0) } }

  func flush() { connection.flush() }
  func readArrived() { connection.readArrived() }

  /// Closes without an event.
  func close() {
    handler = nil
    connection.close()
  }

  private func handle(_ event: ClientConnection.Event) {
    switch event {
    case .received(let bytes): receive(bytes)
    case .closed(let why): end(why)
    }
  }

  private func receive(_ bytes: UnsafeRawBufferPointer) {
    do throws(RESPFailure) {
      try reader.append(bytes)
      while isOpen, let value = try reader.next() { handler?(.value(value)) }
    } catch {
      end("its reply is not RESP: \(error)")
    }
  }

  private func end(_ why: String) {
    let handler = handler
    close()
    handler?(.closed(why))
  }
}
