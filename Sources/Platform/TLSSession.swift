import CTrunklineOpenSSL
import TrunklineBytes

/// TLS of one connection over memory BIOs: the socket's bytes go through `received` and `drainUnsent`, messages through
/// `received` and `write`. Messages written before the handshake is done wait for it.
///
/// | state | event | next |
/// |---|---|---|
/// | handshaking | done, certificate is for the host | open |
/// | handshaking | alert, wrong name, no trust | failed |
/// | open | close_notify | closed |
/// | open | broken record | failed |
public final class TLSSession {
  public enum State { case handshaking, open, closed, failed }

  public private(set) var state = State.handshaking
  /// Why it failed, for the log.
  public private(set) var failure: String?
  private let context: TLSContext
  private let ssl: OpaquePointer
  private let input: OpaquePointer
  private let output: OpaquePointer
  private let peer: TLSPeer?
  private var early: [UInt8] = []

  /// Nil: no memory. `host`: the name that a client requests (RFC 6066 §3); `verifying`: the peer that the certificate must
  /// be for.
  public init?(_ context: TLSContext, isServer: Bool, host: String? = nil, verifying: TLSPeer? = nil) {
    guard let ssl = SSL_new(context.raw) else { return nil }
    guard let input = BIO_new(BIO_s_mem()), let output = BIO_new(BIO_s_mem()) else {
      SSL_free(ssl)
      return nil
    }
    _ = cossl_bio_set_mem_eof_return(input, -1)
    _ = cossl_bio_set_mem_eof_return(output, -1)
    SSL_set_bio(ssl, input, output)
    (self.context, self.ssl, self.input, self.output, peer) = (context, ssl, input, output, verifying)
    if isServer {
      SSL_set_accept_state(ssl)
    } else {
      SSL_set_connect_state(ssl)
      // RFC 6066 §3: names only, no addresses
      if let host, IPAddress(host) == nil { _ = host.withCString { cossl_set_server_name(ssl, $0) } }
    }
  }

  deinit { SSL_free(ssl) }  // frees both BIOs

  /// Starts the handshake with a client's first flight.
  public func start() { step() }

  /// Handles bytes from the socket; `plain` gets the decrypted ones.
  public func received(
    _ bytes: UnsafeRawBufferPointer, plain: (UnsafeRawBufferPointer) -> Void, into buffer: UnsafeMutableRawBufferPointer
  ) {
    guard state == .handshaking || state == .open, let count = Int32(exactly: bytes.count),
      BIO_write(input, bytes.baseAddress, count) == count
    else { return }
    step()
    while state == .open {
      let count = SSL_read(ssl, buffer.baseAddress, Int32(clamping: buffer.count))
      guard count > 0 else { return handleError(count) }
      plain(UnsafeRawBufferPointer(rebasing: buffer[..<min(Int(count), buffer.count)]))
    }
  }

  /// A message to send; false when too much waits for the handshake.
  public func write(_ bytes: [UInt8]) -> Bool {
    guard state == .open else {
      guard state == .handshaking, early.count + bytes.count <= Limits.tlsEarlyBytes else { return false }
      early += bytes
      return true
    }
    return put(bytes)
  }

  /// Encrypted bytes for the socket.
  public func drainUnsent(into waiting: inout [UInt8]) {
    let count = cossl_bio_pending(output)
    guard count > 0, count <= Int(Int32.max) else { return }
    let start = waiting.count
    waiting += [UInt8](repeating: 0, count: count)
    let read = waiting.withUnsafeMutableBytes { BIO_read(output, $0.baseAddress.map { $0 + start }, Int32(clamping: count)) }
    if read < Int32(clamping: count) { waiting.removeLast(count - Int(max(0, read))) }
  }

  /// Sends close_notify; the bytes are in `drainUnsent`.
  public func close() { if state == .open { SSL_shutdown(ssl) } }

  private func put(_ bytes: [UInt8]) -> Bool {
    guard !bytes.isEmpty else { return true }
    ERR_clear_error()
    let count = SSL_write(ssl, bytes, Int32(clamping: bytes.count))
    if count <= 0 { handleError(count) }
    return count == Int32(clamping: bytes.count)
  }

  private func step() {
    guard state == .handshaking else { return }
    ERR_clear_error()
    let result = SSL_do_handshake(ssl)
    guard result == 1 else { return handleError(result) }
    if let peer {
      guard let certificate = SSL_get1_peer_certificate(ssl) else { return fail("no certificate") }
      defer { X509_free(certificate) }
      if let refusal = peer.refusal(certificate) { return fail(refusal) }
    }
    state = .open
    let waiting = early
    early = []
    _ = put(waiting)
  }

  private func handleError(_ result: Int32) {
    switch SSL_get_error(ssl, result) {
    case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: break
    case SSL_ERROR_ZERO_RETURN: state = .closed
    default:
      let verify = SSL_get_verify_result(ssl)
      let why = verify == Int(X509_V_OK) ? nil : String(cString: X509_verify_cert_error_string(verify))
      fail(why ?? TLSFailure("TLS").description)
    }
  }

  private func fail(_ why: String) {
    state = .failed
    failure = why
    early = []
    ERR_clear_error()
  }
}
