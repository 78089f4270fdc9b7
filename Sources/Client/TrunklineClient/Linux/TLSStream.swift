#if os(Linux) && !APPLE_SURFACE
  import TrunklineBytes
  import CTrunklineOpenSSL

  /// The certificates that TLS trusts.
  struct TLSTrust: Sendable {
    /// A file of certificates (PEM) instead of the system's.
    var authorities: String?
    /// Accepts any certificate: for tests.
    var isInsecure = false
  }

  /// A TLS client (1.2 and up) over a stream, by memory BIOs: the socket's bytes are passed in and out, the handshake requires a
  /// certificate for the host (RFC 9525). One thread.
  final class TLSStream {
    struct Failure: Error, CustomStringConvertible { let description: String }

    private let context: OpaquePointer
    private let ssl: OpaquePointer
    private let input: OpaquePointer
    private let output: OpaquePointer
    private(set) var isOpen = false

    /// - Parameter host: a name or an address.
    init(host: String, trust: TLSTrust) throws(Failure) {
      ERR_clear_error()
      guard let context = SSL_CTX_new(TLS_client_method()) else { throw Failure(description: "no TLS context") }
      _ = cossl_set_min_proto_version(context, TLS1_2_VERSION)
      var isTrusting = true
      if let file = trust.authorities {
        isTrusting = SSL_CTX_load_verify_locations(context, file, nil) == 1
      } else {
        SSL_CTX_set_default_verify_paths(context)
      }
      SSL_CTX_set_verify(context, trust.isInsecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nil)
      guard isTrusting, let ssl = SSL_new(context) else {
        SSL_CTX_free(context)
        throw Failure(description: isTrusting ? "no TLS session" : "no certificates in \(trust.authorities ?? "")")
      }
      guard let input = BIO_new(BIO_s_mem()), let output = BIO_new(BIO_s_mem()) else {
        SSL_free(ssl)
        SSL_CTX_free(context)
        throw Failure(description: "no memory")
      }
      SSL_set_bio(ssl, input, output)
      (self.context, self.ssl, self.input, self.output) = (context, ssl, input, output)
      _ = cossl_bio_set_mem_eof_return(input, -1)
      _ = cossl_bio_set_mem_eof_return(output, -1)
      SSL_set_connect_state(ssl)
      let isAddress = IPAddress(host) != nil
      // RFC 6066 §3: names only
      if !isAddress { _ = cossl_set_server_name(ssl, host) }
      guard !trust.isInsecure else { return }
      SSL_set_hostflags(ssl, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
      let isNamed =
        isAddress ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1 : SSL_set1_host(ssl, host) == 1
      if !isNamed { throw Failure(description: "no host to verify") }
    }

    deinit {
      SSL_free(ssl)  // frees both BIOs
      SSL_CTX_free(context)
    }

    /// A step of the handshake; its bytes are then in `drainUnsent`.
    func handshake() throws(Failure) {
      guard !isOpen else { return }
      ERR_clear_error()
      let result = SSL_do_handshake(ssl)
      if result == 1 { return isOpen = true }
      try check(result)
    }

    /// Passes in bytes from the socket.
    func feed(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
      guard bytes.isEmpty || BIO_write(input, bytes.baseAddress, Int32(clamping: bytes.count)) == Int32(clamping: bytes.count)
      else {
        throw Failure(description: "no memory")
      }
    }

    /// Decrypted bytes; nil: no more; `isOver`: the peer has closed.
    func read() throws(Failure) -> (bytes: [UInt8], isOver: Bool)? {
      var bytes = [UInt8](repeating: 0, count: 16_384)
      ERR_clear_error()
      let count = SSL_read(ssl, &bytes, Int32(bytes.count))
      if count > 0 { return (Array(bytes.prefix(Int(count))), false) }
      if SSL_get_error(ssl, count) == SSL_ERROR_ZERO_RETURN { return ([], true) }
      try check(count)
      return nil
    }

    func write(_ bytes: [UInt8]) throws(Failure) {
      guard !bytes.isEmpty else { return }
      ERR_clear_error()
      let count = SSL_write(ssl, bytes, Int32(clamping: bytes.count))
      if count <= 0 { try check(count) }
    }

    /// Sends a close alert; its bytes are in `drainUnsent`.
    func close() { if isOpen { SSL_shutdown(ssl) } }

    /// Appends the bytes to send to the socket.
    func drainUnsent(into waiting: inout [UInt8]) {
      let count = min(cossl_bio_pending(output), Int(Int32.max))
      guard count > 0 else { return }
      let start = waiting.count
      waiting.append(contentsOf: repeatElement(0, count: count))
      let read = waiting.withUnsafeMutableBytes { BIO_read(output, $0.baseAddress.map { $0 + start }, Int32(clamping: count)) }
      waiting.removeLast(count - Int(max(0, read)))
    }

    private func check(_ result: Int32) throws(Failure) {
      switch SSL_get_error(ssl, result) {
      case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: return
      default:
        let verified = SSL_get_verify_result(ssl)
        var text = [CChar](repeating: 0, count: 256)
        let code = ERR_get_error()
        if code != 0 { ERR_error_string_n(code, &text, text.count) }
        ERR_clear_error()
        let reason = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        let certificate = verified == Int(X509_V_OK) ? nil : String(cString: X509_verify_cert_error_string(verified))
        throw Failure(description: "TLS: \(certificate ?? (reason.isEmpty ? "ended" : reason))")
      }
    }
  }
#endif
