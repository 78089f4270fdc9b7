import CTrunklineOpenSSL
import TrunklineSRTP

/// One DTLS-SRTP handshake (RFC 5764) without I/O: it consumes and produces datagrams, and yields the keys at the end. For one
/// thread at a time.
///
/// | state | event | next |
/// |---|---|---|
/// | handshaking | handshake done, fingerprint known and equal | established |
/// | handshaking | handshake done, fingerprint not known yet | unverified |
/// | unverified | `setRemoteFingerprint`, equal | established |
/// | any before established | certificate differs, no profile, OpenSSL error | failed |
/// | established, unverified | close_notify from the peer, or `close` | closed |
/// | failed, closed | anything | – |
///
/// OpenSSL keeps time and randomness itself, so that this is the one machine of Media that does not run on virtual time: read
/// `timeout` after each call and call `handleTimeout` when it has passed. About 74 KB until deinit.
public struct DTLSAssociation: ~Copyable {
  public enum Role: Sendable { case client, server }
  public enum State: Sendable, Equatable {
    case handshaking, unverified, established, closed
    case failed(DTLSFailure)
  }

  public let role: Role
  public private(set) var state = State.handshaking
  /// Set exactly while `state` is `established` (and kept when the peer closes afterwards).
  public private(set) var keyMaterial: SRTPKeyMaterial?
  /// SHA-256 of the peer's certificate, once the handshake is done; for the log.
  public private(set) var peerFingerprint: DTLSFingerprint?

  /// Not private, because tests set a timer of their own: OpenSSL uses only the machine's clock.
  let ssl: OpaquePointer
  private let input: OpaquePointer
  private let output: OpaquePointer
  private let datagramBytes: Int
  private var expected: DTLSFingerprint?

  /// Creates an association. Without `remoteFingerprint` the handshake stops at `unverified`. `datagramBytes` bounds the
  /// datagrams that we send; at least 256.
  public init(
    _ role: Role, identity: DTLSIdentity, remoteFingerprint: DTLSFingerprint? = nil, datagramBytes: Int = 1200
  ) throws(DTLSFailure) {
    ERR_clear_error()
    guard let ssl = SSL_new(identity.context) else { throw .drainQueue() }
    guard let input = BIO_new(BIO_s_mem()), let output = BIO_new(BIO_s_mem()) else {
      SSL_free(ssl)
      throw .unavailable
    }
    _ = cossl_bio_set_mem_eof_return(input, -1)
    _ = cossl_bio_set_mem_eof_return(output, -1)
    SSL_set_bio(ssl, input, output)
    let size = max(256, min(datagramBytes, Limits.datagramBytes))
    _ = cossl_set_mtu(ssl, size)
    DTLS_set_timer_cb(ssl) { _, last in DTLSAssociation.microseconds(after: last) }
    if role == .client { SSL_set_connect_state(ssl) } else { SSL_set_accept_state(ssl) }
    (self.role, self.ssl, self.input, self.output, self.datagramBytes) = (role, ssl, input, output, size)
    expected = remoteFingerprint
  }

  deinit { SSL_free(ssl) }  // frees both BIOs

  /// As client, writes the first flight to the output; as server, does nothing.
  public mutating func start() { if role == .client { step() } }

  /// Handles one datagram. `state` shows the effect. Call `drain` next, also after a failure: the output then holds the alert.
  public mutating func receive(_ datagram: UnsafeRawBufferPointer) {
    guard isAlive, datagram.count > 0, let count = Int32(exactly: datagram.count) else { return }
    _ = cossl_bio_reset(input)  // octets of an earlier datagram that OpenSSL did not read are dropped
    guard BIO_write(input, datagram.baseAddress, count) == count else { return }
    step()
  }

  /// Sets the expected certificate; checks at once if the handshake is done. A second call with another value fails the
  /// association.
  public mutating func setRemoteFingerprint(_ fingerprint: DTLSFingerprint) {
    guard isAlive else { return }
    if state == .established, fingerprint != expected {
      keyMaterial = nil
      return refuse(.fingerprintMismatch)
    }
    expected = fingerprint
    if state == .unverified { verify() }
  }

  /// The time-out of a flight, from the time-out `last` of the transmission before it; 0 for the first transmission.
  static func microseconds(after last: UInt32) -> UInt32 {
    last == 0 ? Limits.firstTimeoutMicroseconds : min(last &* 2, Limits.longestTimeoutMicroseconds)
  }

  /// Time until `handleTimeout` is due; nil while nothing is to be retransmitted.
  public var timeout: Duration? {
    guard state == .handshaking else { return nil }
    var left = timeval()
    guard cossl_dtls_get_timeout(ssl, &left) == 1 else { return nil }
    return .microseconds(Int64(left.tv_sec) * 1_000_000 + Int64(left.tv_usec))
  }

  /// Retransmits the last flight if its time-out has passed; harmless before. Call `drain` next.
  public mutating func handleTimeout() {
    guard state == .handshaking else { return }
    ERR_clear_error()
    if cossl_dtls_handle_timeout(ssl) < 0 { state = .failed(.drainQueue()) }
  }

  /// Sends close_notify to the peer; call `drain` next.
  public mutating func close() {
    guard isAlive else { return }
    ERR_clear_error()
    if state != .handshaking { SSL_shutdown(ssl) }
    ERR_clear_error()
    state = .closed
  }

  /// Passes every pending datagram to `send`, each at most `datagramBytes` long; the bytes are valid during that call only.
  ///
  /// A memory BIO is a stream, so the datagram boundaries are restored from the record headers (13 bytes, length in the last
  /// two).
  public mutating func drain(_ send: (UnsafeRawBufferPointer) -> Void) {
    var memory: UnsafeMutablePointer<CChar>?
    let count = cossl_bio_memory(output, &memory)
    guard count > 0, let memory else { return }
    let all = UnsafeRawBufferPointer(start: memory, count: count)
    var (start, end) = (0, 0)
    while end + 13 <= count {
      let length = 13 + Int(all[end + 11]) << 8 + Int(all[end + 12])
      if end > start, end + length - start > datagramBytes {
        send(UnsafeRawBufferPointer(rebasing: all[start..<end]))
        start = end
      }
      end = min(end + length, count)
    }
    if end > start { send(UnsafeRawBufferPointer(rebasing: all[start..<end])) }
    _ = cossl_bio_reset(output)
  }
}

extension DTLSAssociation {
  private var isAlive: Bool {
    switch state {
    case .failed, .closed: false
    default: true
    }
  }

  /// Runs OpenSSL over the input.
  private mutating func step() {
    ERR_clear_error()
    if state == .handshaking {
      let result = SSL_do_handshake(ssl)
      if result != 1 { return stopped(result) }
      verify()
      guard isAlive else { return }
      ERR_clear_error()
    }
    // Retransmitted flights, alerts, and unexpected data, which is dropped.
    var byte: UInt8 = 0
    for _ in 0..<Limits.recordsPerDatagram {
      let result = SSL_read(ssl, &byte, 1)
      if result <= 0 { return stopped(result) }
    }
  }

  private mutating func stopped(_ result: Int32) {
    switch SSL_get_error(ssl, result) {
    case SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE: ERR_clear_error()
    case SSL_ERROR_ZERO_RETURN: state = .closed
    default:
      let failure = DTLSFailure.drainQueue()
      // After the handshake the keys stay valid: a stray record must not end a call.
      if state == .handshaking { state = .failed(failure) } else { state = .closed }
    }
  }

  /// After the handshake: profile, certificate, keys. Nothing is exported before the fingerprint matched.
  private mutating func verify() {
    guard let selected = SSL_get_selected_srtp_profile(ssl),
      let profile = SRTPProfile(rawValue: UInt16(truncatingIfNeeded: selected.pointee.id))
    else { return refuse(.noSRTPProfile) }
    guard let certificate = SSL_get1_peer_certificate(ssl) else { return refuse(.fingerprintMismatch) }
    defer { X509_free(certificate) }
    peerFingerprint = DTLSFingerprint(of: certificate, .sha256)
    guard let expected else {
      state = .unverified
      return
    }
    guard DTLSFingerprint(of: certificate, expected.algorithm) == expected else { return refuse(.fingerprintMismatch) }
    var block = [UInt8](repeating: 0, count: 2 * (profile.keyBytes + profile.saltBytes))
    let label = "EXTRACTOR-dtls_srtp"
    ERR_clear_error()
    guard SSL_export_keying_material(ssl, &block, block.count, label, label.utf8.count, nil, 0, 0) == 1,
      let keys = SRTPKeyMaterial(profile: profile, exported: block)
    else { return refuse(.drainQueue()) }
    block.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
    keyMaterial = keys
    state = .established
  }

  /// Ends a handshake that OpenSSL accepted; close_notify spares the peer a time-out.
  private mutating func refuse(_ failure: DTLSFailure) {
    SSL_shutdown(ssl)
    ERR_clear_error()
    state = .failed(failure)
  }
}
