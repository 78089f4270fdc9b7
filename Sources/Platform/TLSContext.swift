import Bytes
import COpenSSL
import Glibc

/// What our TLS listeners show and ask.
public struct TLSServerSettings: Sendable, Equatable {
  public enum Clients: String, Sendable, CaseIterable { case off, optional, required }
  public var identity: TLSFiles
  public var clients: Clients
  public init(identity: TLSFiles, clients: Clients = .off) { (self.identity, self.clients) = (identity, clients) }
}

/// TLS toward one peer that we connect to.
public struct TLSClientSettings: Sendable, Equatable {
  public var identity: TLSFiles
  /// What the peer's certificate must be for. Of a trunk: the host of its URI, whatever servers DNS led to (RFC 5922 §7.3).
  public var host: String
  public var verifies: Bool
  public init(identity: TLSFiles = TLSFiles(), host: String, verifies: Bool = true) {
    (self.identity, self.host, self.verifies) = (identity, host, verifies)
  }
}

/// Why certificates cannot be used.
public struct TLSFailure: Error, CustomStringConvertible {
  public let description: String
  public init(_ what: String) {
    var text = [CChar](repeating: 0, count: 256)
    let code = ERR_get_error()
    if code != 0 { ERR_error_string_n(code, &text, text.count) }
    let reason = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    description = reason.isEmpty ? what : "\(what): \(reason)"
    ERR_clear_error()
  }
}

/// An `SSL_CTX`, made and used on one thread: files read once, shared by the connections made while it is the present one. Replacing it does not touch them.
public final class TLSContext {
  let raw: OpaquePointer

  public init(server settings: TLSServerSettings) throws(TLSFailure) {
    raw = try Self.make(TLS_server_method(), settings.identity)
    guard settings.clients != .off else { return }
    let mode = SSL_VERIFY_PEER | (settings.clients == .required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0)
    SSL_CTX_set_verify(raw, mode, nil)
    if let path = settings.identity.authorities { SSL_CTX_set_client_CA_list(raw, SSL_load_client_CA_file(path)) }
  }

  public init(client settings: TLSClientSettings) throws(TLSFailure) {
    raw = try Self.make(TLS_client_method(), settings.identity)
    if settings.identity.authorities == nil { SSL_CTX_set_default_verify_paths(raw) }
    SSL_CTX_set_verify(raw, settings.verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nil)
  }

  deinit { SSL_CTX_free(raw) }

  /// For TLS 1.2: authenticated encryption with forward secrecy, of both sides (RFC 9325 §4.2); TLS 1.3 has nothing else.
  private static let suites = "ECDHE+AESGCM:ECDHE+CHACHA20"

  private static func make(_ method: OpaquePointer?, _ identity: TLSFiles) throws(TLSFailure) -> OpaquePointer {
    ERR_clear_error()
    guard let context = SSL_CTX_new(method) else { throw TLSFailure("no TLS context") }
    var failure: TLSFailure?
    _ = cossl_set_min_proto_version(context, TLS1_2_VERSION)
    SSL_CTX_set_options(context, cossl_op_no_renegotiation())
    _ = cossl_set_release_buffers(context)
    if SSL_CTX_set_cipher_list(context, suites) != 1 { failure = TLSFailure("cipher suites \(suites)") }
    if failure == nil, let certificate = identity.certificate, let key = identity.key {
      if SSL_CTX_use_certificate_chain_file(context, certificate) != 1 {
        failure = TLSFailure("certificate \(certificate)")
      } else if SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1 {
        failure = TLSFailure("key \(key)")
      } else if SSL_CTX_check_private_key(context) != 1 {
        failure = TLSFailure("\(key) is not the key of \(certificate)")
      }
    }
    if failure == nil, let authorities = identity.authorities, SSL_CTX_load_verify_locations(context, authorities, nil) != 1 {
      failure = TLSFailure("authorities \(authorities)")
    }
    guard let failure else { return context }
    SSL_CTX_free(context)
    throw failure
  }
}

/// Whom a client insists to speak to: the certificate that the peer shows must be for this name.
public struct TLSPeer {
  public let name: String
  /// Whether an X.509 certificate is for the name.
  let accepts: (OpaquePointer) -> Bool

  /// By a rule of the protocol above, such as RFC 5922 §7 for SIP.
  public init(_ name: String, accepts: @escaping (OpaquePointer) -> Bool) { (self.name, self.accepts) = (name, accepts) }

  /// A host name or an IP address (RFC 6125, RFC 9525).
  public init(host: String) {
    self.init(host) { certificate in
      if IPAddress(host) != nil { return X509_check_ip_asc(certificate, host, 0) == 1 }
      return X509_check_host(certificate, host, 0, 0, nil) == 1
    }
  }
}
