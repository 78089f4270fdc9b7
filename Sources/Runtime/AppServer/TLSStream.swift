import CTrunklineOpenSSL
import Glibc
import TrunklinePlatform

/// An `SSL_CTX` of a listener: TLS 1.2 and up, AEAD suites only, ALPN `http/1.1`. Connections keep the one they began with.
final class TLSContext {
  let raw: OpaquePointer

  init(_ files: TLSFiles) throws(TLSError) {
    ERR_clear_error()
    guard let context = SSL_CTX_new(TLS_server_method()) else { throw TLSError("OpenSSL has no TLS server") }
    do throws(TLSError) {
      try files.load(into: context)
      // TLS 1.3 has AEAD suites only; these are those of TLS 1.2 (RFC 9325 §4.2).
      guard SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1 else {
        throw TLSError("OpenSSL has no AEAD suites")
      }
    } catch {
      SSL_CTX_free(context)
      throw error
    }
    _ = cossl_set_min_proto_version(context, TLS1_2_VERSION)
    SSL_CTX_set_options(context, cossl_op_no_renegotiation())
    _ = cossl_set_session_cache_off(context)  // resumption is by ticket, which costs no memory here
    _ = cossl_set_release_buffers(context)
    _ = cossl_set_stream_writes(context)
    cossl_alpn_http11(context)
    raw = context
  }

  deinit { SSL_CTX_free(raw) }
}

extension TLSFiles {
  /// Loads chain and key into a listener's context; the error states which cannot be read, or that they do not belong together.
  fileprivate func load(into context: OpaquePointer) throws(TLSError) {
    defer { ERR_clear_error() }
    let (chain, secret) = (certificate ?? "", key ?? "")
    guard SSL_CTX_use_certificate_chain_file(context, chain) == 1 else {
      throw TLSError("\(chain): no certificate chain in PEM can be read from it")
    }
    guard SSL_CTX_use_PrivateKey_file(context, secret, SSL_FILETYPE_PEM) == 1, SSL_CTX_check_private_key(context) == 1 else {
      throw TLSError("\(secret): no private key in PEM that fits \(chain)")
    }
  }
}

public struct TLSError: Error, Hashable, Sendable, CustomStringConvertible {
  public let description: String
  init(_ text: String) { description = text }
}

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
