import CTrunklineOpenSSL

/// The TLS side of one connection over memory BIOs: ciphertext in, clear text out, and back. One thread.
final class TLSStream {
  private let ssl: OpaquePointer
  private let incoming: OpaquePointer
  private let outgoing: OpaquePointer
  private(set) var isOver = false
  /// Why the handshake failed.
  private(set) var problem: String?
  /// The handshake is done: bytes sent before it would be lost.
  var isOpen: Bool { SSL_is_init_finished(ssl) == 1 && !isOver }

  init?(_ identity: TLSIdentity) {
    guard let ssl = SSL_new(identity.context) else { return nil }
    guard let incoming = BIO_new(BIO_s_mem()), let outgoing = BIO_new(BIO_s_mem()) else {
      SSL_free(ssl)
      return nil
    }
    (self.ssl, self.incoming, self.outgoing) = (ssl, incoming, outgoing)
    SSL_set_bio(ssl, incoming, outgoing)
    SSL_set_accept_state(ssl)
  }

  deinit { SSL_free(ssl) }

  /// Ciphertext from the socket; calls `clear` with the decrypted bytes. False once the peer closed or broke the rules.
  func receive(_ bytes: UnsafeRawBufferPointer, clear: (UnsafeRawBufferPointer) -> Void) -> Bool {
    guard !isOver else { return false }
    ERR_clear_error()
    guard BIO_write(incoming, bytes.baseAddress, Int32(bytes.count)) == Int32(bytes.count) else { return false }
    return withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 8) { buffer in
      while true {
        let count = SSL_read(ssl, buffer.baseAddress, Int32(buffer.count))
        guard count > 0 else {
          if SSL_get_error(ssl, count) != SSL_ERROR_WANT_READ {
            isOver = true
            if SSL_is_init_finished(ssl) == 0 {
              problem = ERR_reason_error_string(ERR_peek_error()).map { String(cString: $0) } ?? "the client left"
            }
          }
          return !isOver
        }
        clear(UnsafeRawBufferPointer(rebasing: buffer[..<Int(count)]))
      }
    }
  }

  /// Clear text to the peer; false if it cannot be encrypted.
  func send(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard !isOver, !bytes.isEmpty else { return !isOver }
    ERR_clear_error()
    return SSL_write(ssl, bytes.baseAddress, Int32(bytes.count)) == Int32(bytes.count)
  }

  /// Moves the ciphertext that waits for the socket to the end of `out`.
  func drain(into out: inout [UInt8]) {
    let waiting = cossl_bio_pending(outgoing)
    guard waiting > 0 else { return }
    let start = out.count
    out.append(contentsOf: repeatElement(0, count: waiting))
    out.withUnsafeMutableBytes { buffer in
      _ = BIO_read(outgoing, buffer.baseAddress.map { $0 + start }, Int32(waiting))
    }
  }
}
