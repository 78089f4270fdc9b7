import CTrunklineOpenSSL
import TrunklinePlatform

/// TLS over a non-blocking socket, as a server. Reads and writes go straight to the descriptor.
final class TLSStream {
  enum Progress { case done, wantsRead, wantsWrite, closed, failed }

  private let context: TLSContext
  private let ssl: OpaquePointer
  /// The last `write` waits until the socket can be read (a peer's key update), not written.
  private(set) var writeWantsRead = false

  init?(_ context: TLSContext, descriptor: Int32) {
    guard let ssl = SSL_new(context.raw) else { return nil }
    guard SSL_set_fd(ssl, descriptor) == 1 else {
      SSL_free(ssl)
      return nil
    }
    SSL_set_accept_state(ssl)
    (self.context, self.ssl) = (context, ssl)
  }

  deinit { SSL_free(ssl) }

  func handshake() -> Progress {
    ERR_clear_error()
    let result = SSL_do_handshake(ssl)
    return result == 1 ? .done : progress(result)
  }

  /// Returns the octets read, or why there are none. Reads a record at most, so that nothing waits inside OpenSSL, where
  /// epoll does not see it: `buffer` holds 16 KiB.
  func read(into buffer: UnsafeMutableRawBufferPointer) -> (Int, Progress) {
    ERR_clear_error()
    let count = SSL_read(ssl, buffer.baseAddress, Int32(clamping: buffer.count))
    return count > 0 ? (Int(count), .done) : (0, progress(count))
  }

  func write(_ octets: UnsafeRawBufferPointer) -> (Int, Progress) {
    ERR_clear_error()
    let count = SSL_write(ssl, octets.baseAddress, Int32(clamping: octets.count))
    let result = count > 0 ? Progress.done : progress(count)
    writeWantsRead = result == .wantsRead
    return (Int(max(0, count)), result)
  }

  /// Notifies the peer that nothing more will be sent (close_notify).
  func close() {
    ERR_clear_error()
    SSL_shutdown(ssl)
    ERR_clear_error()
  }

  private func progress(_ result: Int32) -> Progress {
    switch SSL_get_error(ssl, result) {
    case SSL_ERROR_WANT_READ: .wantsRead
    case SSL_ERROR_WANT_WRITE: .wantsWrite
    case SSL_ERROR_ZERO_RETURN: .closed
    default: .failed
    }
  }
}
