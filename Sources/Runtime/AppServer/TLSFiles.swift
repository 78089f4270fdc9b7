import COpenSSL

/// Certificate chain and key of a port, PEM.
public struct TLSFiles: Hashable, Sendable {
  public var certificate: String
  public var key: String
  public init(certificate: String, key: String) { (self.certificate, self.key) = (certificate, key) }

  /// Gives both to a context; the error says which cannot be read, or that they do not belong together.
  func load(into context: OpaquePointer) throws(TLSError) {
    defer { ERR_clear_error() }
    guard SSL_CTX_use_certificate_chain_file(context, certificate) == 1 else {
      throw TLSError("\(certificate): no certificate chain in PEM can be read from it")
    }
    guard SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) == 1, SSL_CTX_check_private_key(context) == 1 else {
      throw TLSError("\(key): no private key in PEM that fits \(certificate)")
    }
  }
}

public struct TLSError: Error, Hashable, Sendable, CustomStringConvertible {
  public let description: String
  init(_ text: String) { description = text }
}
