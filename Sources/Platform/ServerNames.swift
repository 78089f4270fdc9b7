import CTrunklineOpenSSL

/// The certificates of one listener by the names that a TLS client may request (SNI, RFC 6066 §3). Filled before it serves, only
/// read afterwards: by the handshakes of the sessions that hold its `TLSContext`.
final class ServerNames {
  /// Holds a reference to each, except the context that has the names.
  private var contexts: [TLSFiles: OpaquePointer] = [:]
  private var exact: [String: OpaquePointer] = [:]
  private var wildcards: [String: OpaquePointer] = [:]

  deinit { for context in contexts.values { SSL_CTX_free(context) } }

  /// Takes ownership of a context, even if it throws: it serves the names of its certificate that no earlier context has.
  /// `isShared`: the caller keeps ownership.
  func add(_ context: OpaquePointer, of files: TLSFiles, isShared: Bool = false) throws(TLSFailure) {
    let names: [ExpectedName]
    do throws(TLSFailure) { names = try Self.names(of: context, files.certificate ?? "") } catch {
      if !isShared { SSL_CTX_free(context) }
      throw error
    }
    if !isShared {
      guard contexts[files] == nil else { return SSL_CTX_free(context) }
      contexts[files] = context
    }
    for name in names {
      if name.isWildcard {
        if wildcards[name.domain] == nil { wildcards[name.domain] = context }
      } else if exact[name.domain] == nil {
        exact[name.domain] = context
      }
    }
  }

  private static func names(of context: OpaquePointer, _ path: String) throws(TLSFailure) -> [ExpectedName] {
    guard let certificate = SSL_CTX_get0_certificate(context) else { throw TLSFailure("no certificate in \(path)") }
    do throws(CertificateNames.Failure) {
      let names = try CertificateNames(certificate).askable
      if !names.isEmpty { return names }
    } catch {
      throw TLSFailure("certificate \(path): \(error)")
    }
    throw TLSFailure("certificate \(path) has no name that a client could request")
  }

  /// Adds the context of the same files from the previous table, if it has one.
  func add(from previous: ServerNames?, _ files: TLSFiles) {
    guard let context = previous?.contexts[files], SSL_CTX_up_ref(context) == 1 else { return }
    try? add(context, of: files)
  }

  /// Makes sessions of `context` show the requested certificate. The table must live as long as they do.
  func serve(_ context: OpaquePointer) {
    cossl_set_server_name_callback(
      context,
      { ssl, _, table in
        guard let ssl, let table, let asked = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name) else {
          return SSL_TLSEXT_ERR_NOACK
        }
        let names = Unmanaged<ServerNames>.fromOpaque(table).takeUnretainedValue()
        // an unknown or impossible name: the listener's own certificate, as without SNI
        guard let context = names.context(for: String(cString: asked)) else { return SSL_TLSEXT_ERR_NOACK }
        SSL_set_SSL_CTX(ssl, context)
        return SSL_TLSEXT_ERR_OK
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  func context(for asked: String) -> OpaquePointer? {
    guard let name = ExpectedName(asked), !name.isWildcard else { return nil }
    return exact[name.domain] ?? name.parent.flatMap { wildcards[$0] }
  }
}
