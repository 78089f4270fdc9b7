/// PEM files of one side of TLS: its certificate and its trusted authorities. Nil: it shows no certificate, or trusts the
/// system's authorities.
public struct TLSFiles: Hashable, Sendable {
  /// Our certificate and its chain to the root.
  public var certificate: String?
  public var key: String?
  /// The authorities that may have signed the other side's certificate.
  public var authorities: String?

  public init(certificate: String? = nil, key: String? = nil, authorities: String? = nil) {
    (self.certificate, self.key, self.authorities) = (certificate, key, authorities)
  }
}
