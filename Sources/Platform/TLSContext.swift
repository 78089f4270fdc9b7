import CTrunklineOpenSSL
import Glibc
import TrunklineBytes

/// Certificates that our TLS listeners show and request.
public struct TLSServerSettings: Sendable, Equatable {
  public enum Clients: String, Sendable, CaseIterable { case off, optional, required }
  /// Shown to clients that request none of the others' names.
  public var identity: TLSFiles
  /// Each is shown to clients that request a name of its certificate (SNI, RFC 6066 §3); their `authorities` are ignored.
  public var others: [TLSFiles]
  public var clients: Clients
  public init(identity: TLSFiles, others: [TLSFiles] = [], clients: Clients = .off) {
    (self.identity, self.others, self.clients) = (identity, others, clients)
  }
}

/// TLS toward one peer that we connect to.
public struct TLSClientSettings: Sendable, Equatable {
  public var identity: TLSFiles
  /// The name that the peer's certificate must have. For a trunk: the host of its URI, whichever servers DNS returned (RFC 5922
  /// §7.3).
  public var host: String
  /// Names of which the certificate must have one instead of `host`. Empty: `host`.
  public var names: [ExpectedName]
  public var verifies: Bool
  public init(identity: TLSFiles = TLSFiles(), host: String, names: [ExpectedName] = [], verifies: Bool = true) {
    (self.identity, self.host, self.names, self.verifies) = (identity, host, names, verifies)
  }

  /// The name requested by SNI: the host, or an expected name if the host is an address.
  public var serverName: String {
    guard IPAddress(host) != nil else { return host }
    return names.first { !$0.isWildcard }?.domain ?? host
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

/// An `SSL_CTX`, created and used on one thread: files are read once, and shared by the connections made while it is current.
/// Replacing it does not affect them.
public final class TLSContext {
  package let raw: OpaquePointer
  private let names: ServerNames?
  /// Which of `others` could not be used, and why; the previous context of such files stays in use.
  public let failures: [TLSFailure]

  /// - Parameter previous: the context that it replaces.
  public init(server settings: TLSServerSettings, previous: TLSContext? = nil) throws(TLSFailure) {
    raw = try Self.makeServer(settings.identity, settings.clients)
    guard !settings.others.isEmpty else {
      (names, failures) = (nil, [])
      return
    }
    let names = ServerNames()
    var failures: [TLSFailure] = []
    // the default certificate's names first, so that no other certificate replaces it for them
    try? names.add(raw, of: settings.identity, isShared: true)
    for var files in settings.others {
      files.authorities = settings.identity.authorities
      do throws(TLSFailure) { try names.add(Self.makeServer(files, settings.clients), of: files) } catch {
        failures.append(error)
        names.add(from: previous?.names, files)
      }
    }
    (self.names, self.failures) = (names, failures)
    names.serve(raw)
  }

  /// Of a port for HTTP: ALPN `http/1.1`, and sessions are resumed by ticket, which costs no memory here.
  package init(http files: TLSFiles) throws(TLSFailure) {
    (names, failures) = (nil, [])
    raw = try Self.make(TLS_server_method(), files)
    _ = cossl_set_session_cache_off(raw)
    _ = cossl_set_stream_writes(raw)
    cossl_alpn_http11(raw)
  }

  /// A context that the caller made; both keep it.
  package init(sharing raw: OpaquePointer) {
    SSL_CTX_up_ref(raw)
    (self.raw, names, failures) = (raw, nil, [])
  }

  public init(client settings: TLSClientSettings) throws(TLSFailure) {
    (names, failures) = (nil, [])
    raw = try Self.make(TLS_client_method(), settings.identity)
    if settings.identity.authorities == nil { SSL_CTX_set_default_verify_paths(raw) }
    SSL_CTX_set_verify(raw, settings.verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nil)
  }

  deinit { SSL_CTX_free(raw) }

  /// For TLS 1.2: authenticated encryption with forward secrecy only, in both roles (RFC 9325 §4.2); TLS 1.3 has no other suites.
  private static let suites = "ECDHE+AESGCM:ECDHE+CHACHA20"

  private static func makeServer(_ identity: TLSFiles, _ clients: TLSServerSettings.Clients) throws(TLSFailure) -> OpaquePointer {
    let raw = try make(TLS_server_method(), identity)
    // A session of one name must not be resumed under another; and without an id context OpenSSL ends a resumption with an alert
    // if it requests client certificates.
    SSL_CTX_set_options(raw, cossl_op_no_ticket())
    _ = SSL_CTX_set_num_tickets(raw, 0)
    _ = cossl_set_session_cache_off(raw)
    guard clients != .off else { return raw }
    SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | (clients == .required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), nil)
    guard let path = identity.authorities else { return raw }
    SSL_CTX_set_client_CA_list(raw, SSL_load_client_CA_file(path))
    // The operator's authorities certify who the peer is, not the purpose of its key. Public authorities no longer write
    // clientAuth (RFC 5280 §4.2.1.12): without this a carrier's next renewal would end mutual TLS.
    _ = SSL_CTX_set_purpose(raw, X509_PURPOSE_ANY)
    return raw
  }

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
        failure = TLSFailure("\(certificate): no certificate chain in PEM can be read from it")
      } else if SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1 {
        failure = TLSFailure("\(key): no private key in PEM can be read from it")
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

/// The peer that a client requires: the certificate that the peer shows must have this name.
public struct TLSPeer {
  public let name: String
  /// Why an X.509 certificate does not match the name; nil if it does.
  let refusal: (OpaquePointer) -> String?

  /// Checks by a rule of the protocol above TLS, such as RFC 5922 §7 for SIP.
  public init(_ name: String, refusal: @escaping (OpaquePointer) -> String?) { (self.name, self.refusal) = (name, refusal) }

  /// A host name or an IP address (RFC 6125, RFC 9525).
  public init(host: String) {
    self.init(host) { certificate in
      let isFor =
        IPAddress(host) != nil
        ? X509_check_ip_asc(certificate, host, 0) == 1 : X509_check_host(certificate, host, 0, 0, nil) == 1
      return isFor ? nil : "the certificate is not for \(host)"
    }
  }
}
