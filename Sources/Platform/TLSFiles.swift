/// PEM files of one side of TLS: its certificate and its trusted authorities. Nil: no certificate is shown; the system's authorities are trusted.
public struct TLSFiles: Hashable, Sendable {
  /// Our certificate and those that lead to its root.
  public var certificate: String?
  public var key: String?
  /// The authorities that may have signed the other side's certificate.
  public var authorities: String?

  public init(certificate: String? = nil, key: String? = nil, authorities: String? = nil) {
    (self.certificate, self.key, self.authorities) = (certificate, key, authorities)
  }
}
