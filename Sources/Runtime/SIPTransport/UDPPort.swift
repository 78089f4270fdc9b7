import Glibc
import TrunklineBytes
import TrunklinePlatform
import TrunklineSIPDialogs

/// One UDP listener: receives datagrams of allowed sources, and gathers those sent in a step.
final class UDPPort {
  let socket: UDPSocket
  /// The first of the steps in a row that all read their whole share; nil: nothing was left in the kernel's buffer.
  private(set) var behindSince: Instant?
  /// The socket is not watched: it is read when its pause is over.
  var isPaused = false
  private var pauseTime = Limits.pauseTime.upperBound
  private var batch: DatagramBatch
  private let buffer: UnsafeMutableRawBufferPointer  // owned, as large as the largest datagram

  init(_ address: SocketAddress, setting: String?) throws(SystemError) {
    socket = try UDPSocket(
      bind: address, receiveBufferBytes: Limits.socketBufferBytes, sendBufferBytes: Limits.socketBufferBytes, setting: setting,
      waitsForAddress: true)
    // At all addresses the kernel would choose an answer's source by the route: a peer that sent to another address drops it.
    batch = DatagramBatch(choosesSource: address.ip.isUnspecified && socket.wantsLocalAddresses())
    ErrorQueue.enable(socket.fd, address.ip.family)
    buffer = .allocate(byteCount: Limits.datagramBytes, alignment: 16)
  }

  deinit { buffer.deallocate() }

  /// Reads the datagrams that wait at `now`, up to a step's share. `allowed` decides by the source alone; `receive` gets the
  /// bytes of allowed ones and, for a socket at all addresses, the address that they were sent to.
  /// - Returns: how many were not allowed.
  func receive(
    at now: Instant, allowed: (SocketAddress) -> String?, receive: ([UInt8], SocketAddress, IPAddress?, String) -> Void,
    unreachable: (SocketAddress, Int32) -> Void
  ) -> Int {
    let before = behindSince
    var refused = 0
    for _ in 0..<Limits.datagramsPerStep {
      do throws(SystemError) {
        guard let (count, from, local) = try socket.receiveWithLocal(into: buffer) else {
          behindSince = nil
          return refused
        }
        guard let trunk = allowed(from) else {
          refused += 1
          continue
        }
        receive(Array(buffer[..<min(count, buffer.count)]), from, local, trunk)
      } catch {
        // the error of an earlier datagram, reported once here; the error queue identifies the datagram
        ErrorQueue.drain(socket.fd, unreachable: unreachable)
      }
    }
    // The next step is certain to read the socket again only if there is more.
    var entry = pollfd(fd: socket.fd, events: Int16(POLLIN), revents: 0)
    behindSince = poll(&entry, 1, 0) > 0 ? before ?? now : nil
    return refused
  }

  /// How long to leave the socket unread after a step that has refused so many; nil: read on. The pause gathers half a step's
  /// share to a whole one, which fits into the kernel's buffer.
  func pause(after refused: Int) -> Duration? {
    if refused > 0, behindSince != nil { pauseTime = max(pauseTime / 2, Limits.pauseTime.lowerBound) }
    guard refused > 0, behindSince == nil else { return nil }
    if refused < Limits.datagramsPerStep / 2 { pauseTime = min(pauseTime * 2, Limits.pauseTime.upperBound) }
    return pauseTime
  }

  func drainErrors(unreachable: (SocketAddress, Int32) -> Void) { ErrorQueue.drain(socket.fd, unreachable: unreachable) }

  /// Adds to the step's batch; sends at once when it is full.
  func send(
    _ bytes: [UInt8], _ flow: Flow, unreachable: (SocketAddress, Int32) -> Void, failed: (Flow, Int32) -> Void
  ) {
    if batch.isFull { flush(unreachable: unreachable, failed: failed) }
    batch.append(bytes, flow)
  }

  func flush(unreachable: (SocketAddress, Int32) -> Void, failed: (Flow, Int32) -> Void) {
    guard !batch.isEmpty else { return }
    batch.send(socket.fd, absorb: { ErrorQueue.drain(socket.fd, unreachable: unreachable) }, failed: failed)
  }
}
