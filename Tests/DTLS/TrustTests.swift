import CTrunklineOpenSSL
import Testing
import TrunklineBytes
import TrunklineSRTP

@testable import TrunklineDTLS

@Suite struct TrustTests {
  let ours: DTLSIdentity
  let theirs: DTLSIdentity
  init() throws {
    ours = try DTLSIdentity()
    theirs = try DTLSIdentity()
  }

  @Test func `without the description's fingerprint the handshake ends unverified and has no keys; then it has`() throws {
    var pair = try Pair(client: theirs, server: ours, clientExpects: ours.fingerprint, serverExpects: nil)
    pair.run()
    #expect(pair.client.state == .established && pair.server.state == .unverified)
    #expect(pair.server.keyMaterial == nil && pair.server.peerFingerprint == theirs.fingerprint)
    pair.server.setRemoteFingerprint(theirs.fingerprint)
    #expect(pair.server.state == .established && pair.server.keyMaterial == pair.client.keyMaterial)
    pair.server.setRemoteFingerprint(theirs.fingerprint)
    #expect(pair.server.state == .established)
  }

  @Test(arguments: [true, false])
  func `a certificate that is not the description's gives no keys and says goodbye`(_ isLate: Bool) throws {
    let other = try DTLSIdentity()
    var pair = try Pair(
      client: theirs, server: ours, clientExpects: ours.fingerprint, serverExpects: isLate ? nil : other.fingerprint)
    pair.run()
    if isLate { pair.server.setRemoteFingerprint(other.fingerprint) }
    #expect(pair.server.state == .failed(.fingerprintMismatch) && pair.server.keyMaterial == nil)
    pair.exchange()
    #expect(pair.client.state == .closed)
  }

  @Test func `another fingerprint after the keys were given takes them back`() throws {
    var pair = try Pair(client: theirs, server: ours, clientExpects: ours.fingerprint, serverExpects: theirs.fingerprint)
    pair.run()
    pair.server.setRemoteFingerprint(ours.fingerprint)
    #expect(pair.server.state == .failed(.fingerprintMismatch) && pair.server.keyMaterial == nil)
  }

  @Test(arguments: [DTLSFingerprint.Algorithm.sha384, .sha512])
  func `longer hashes are compared as well`(_ algorithm: DTLSFingerprint.Algorithm) throws {
    // Our own certificate's hash by another algorithm, read from the context it was put in.
    let certificate = try #require(SSL_CTX_get0_certificate(theirs.context))
    let right = try #require(DTLSFingerprint(of: certificate, algorithm))
    var pair = try Pair(client: theirs, server: ours, clientExpects: ours.fingerprint, serverExpects: right)
    pair.run()
    #expect(pair.server.state == .established)
    var bytes = right.bytes
    bytes[bytes.count - 1] ^= 1
    let wrong = try #require(DTLSFingerprint(algorithm: algorithm.rawValue, bytes: bytes))
    var second = try Pair(client: theirs, server: ours, clientExpects: ours.fingerprint, serverExpects: wrong)
    second.run()
    #expect(second.server.state == .failed(.fingerprintMismatch))
  }

  @Test func `a fingerprint needs a known algorithm and its length`() {
    #expect(DTLSFingerprint(algorithm: "SHA-256", bytes: Array(repeating: 1, count: 32)) != nil)
    #expect(DTLSFingerprint(algorithm: "sha-256", bytes: Array(repeating: 1, count: 31)) == nil)
    #expect(DTLSFingerprint(algorithm: "sha-1", bytes: Array(repeating: 1, count: 20)) == nil)
    #expect(ours.fingerprint.description.hasPrefix("sha-256 ") && ours.fingerprint.description.count == 8 + 95)
    #expect(ours.fingerprint != theirs.fingerprint)
  }

  @Test func `no profile in common fails both sides`() throws {
    let gcm = try DTLSIdentity(profiles: [.aeadAES256GCM])
    let counter = try DTLSIdentity(profiles: [.aes128CM_HMAC_SHA1_80])
    var pair = try Pair(client: gcm, server: counter, clientExpects: counter.fingerprint, serverExpects: gcm.fingerprint)
    pair.run()
    #expect(pair.server.state == .failed(.noSRTPProfile) && pair.client.state == .failed(.noSRTPProfile))
    #expect(pair.server.keyMaterial == nil && pair.client.keyMaterial == nil)
  }

  @Test func `a client without certificate, use_srtp, DTLS 1-2 or authenticated encryption gets no keys`() throws {
    for flaw in Flaw.allCases {
      var server = try DTLSAssociation(.server, identity: ours, remoteFingerprint: theirs.fingerprint)
      var client = try FlawedClient(flaw, theirs.context)
      var sent: [[UInt8]] = []
      for _ in 0..<6 {
        let flight = server.drained()
        sent += flight
        for datagram in client.step(flight) { server.receive(datagram) }
      }
      switch flaw {
      case .noCertificate: #expect(server.state == .failed(.openSSL("peer did not return a certificate")))
      case .noSRTP: #expect(server.state == .failed(.noSRTPProfile))
      case .oldVersion: #expect(server.state == .failed(.openSSL("unsupported protocol")))
      case .noAEAD: #expect(server.state == .failed(.openSSL("no shared cipher")))
      }
      #expect(server.keyMaterial == nil)
      let types = (sent + server.drained()).flatMap(recordTypes)
      #expect(types.contains(21) || flaw == .noSRTP, "an alert is sent")
    }
  }
}

/// The content types of a datagram's records (RFC 6347 §4.1): a slow machine's alert shares its datagram with a retransmission.
private func recordTypes(_ datagram: [UInt8]) -> [UInt8] {
  var (types, at): ([UInt8], Int) = ([], 0)
  while at + 13 <= datagram.count {
    types.append(datagram[at])
    at += 13 + Int(datagram[at + 11]) << 8 + Int(datagram[at + 12])
  }
  return types
}

private enum Flaw: CaseIterable { case noCertificate, noSRTP, oldVersion, noAEAD }

/// A DTLS client made of bare OpenSSL calls, wrong in one respect.
private struct FlawedClient: ~Copyable {
  private let context: OpaquePointer
  private let ssl: OpaquePointer
  private let input: OpaquePointer
  private let output: OpaquePointer

  init(_ flaw: Flaw, _ identity: OpaquePointer) throws {
    let context = try #require(SSL_CTX_new(DTLS_client_method()))
    if flaw != .noCertificate {
      SSL_CTX_use_certificate(context, SSL_CTX_get0_certificate(identity))
      SSL_CTX_use_PrivateKey(context, SSL_CTX_get0_privatekey(identity))
    }
    if flaw != .noSRTP { SSL_CTX_set_tlsext_use_srtp(context, "SRTP_AEAD_AES_128_GCM") }
    if flaw == .noAEAD { SSL_CTX_set_cipher_list(context, "ECDHE-ECDSA-AES128-SHA:ECDHE-ECDSA-AES128-SHA256") }
    if flaw == .oldVersion {
      SSL_CTX_set_cipher_list(context, "ALL:@SECLEVEL=0")
      SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(DTLS1_VERSION), nil)
      SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(DTLS1_VERSION), nil)
    }
    let ssl = try #require(SSL_new(context))
    let input = try #require(BIO_new(BIO_s_mem()))
    let output = try #require(BIO_new(BIO_s_mem()))
    _ = cossl_bio_set_mem_eof_return(input, -1)
    SSL_set_bio(ssl, input, output)
    SSL_set_connect_state(ssl)
    (self.context, self.ssl, self.input, self.output) = (context, ssl, input, output)
  }
  deinit {
    SSL_free(ssl)
    SSL_CTX_free(context)
  }

  mutating func step(_ datagrams: [[UInt8]]) -> [[UInt8]] {
    for datagram in datagrams {
      BIO_write(input, datagram, Int32(datagram.count))
      SSL_do_handshake(ssl)
    }
    if datagrams.isEmpty { SSL_do_handshake(ssl) }
    ERR_clear_error()
    var memory: UnsafeMutablePointer<CChar>?
    let count = cossl_bio_memory(output, &memory)
    guard count > 0, let memory else { return [] }
    defer { _ = cossl_bio_reset(output) }
    return [Array(UnsafeRawBufferPointer(start: memory, count: count))]
  }
}
