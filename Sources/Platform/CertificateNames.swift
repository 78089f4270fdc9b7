import CTrunklineOpenSSL

/// The names in a certificate.
///
/// Reading costs one allocation per name, `Limits.certificateNames` at most: a certificate with more is refused before any is
/// read.
public struct CertificateNames: Sendable, Equatable {
  public enum Failure: Error, Equatable, CustomStringConvertible {
    /// The number of names.
    case tooMany(Int)

    public var description: String {
      switch self {
      case .tooMany(let count): "it has \(count) names, more than the limit of \(Limits.certificateNames)"
      }
    }
  }

  /// Uniform resource identifiers among the alternative names, as written.
  public var uris: [String] = []
  /// DNS names among the alternative names, in lower case; wildcards as written.
  public var hosts: [String] = []
  /// In lower case; nil if absent.
  public var commonName: String?

  /// `certificate`: an `X509`.
  public init(_ certificate: OpaquePointer) throws(Failure) {
    if let raw = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) {
      let list = OpaquePointer(raw)
      defer { GENERAL_NAMES_free(list) }
      let count = Int(OPENSSL_sk_num(list))
      guard count <= Limits.certificateNames else { throw .tooMany(count) }
      for index in 0..<Int32(clamping: count) {
        guard let entry = OPENSSL_sk_value(list, index)?.assumingMemoryBound(to: GENERAL_NAME.self) else { continue }
        switch entry.pointee.type {
        case GEN_URI: uris += text(entry.pointee.d.uniformResourceIdentifier).map { [$0] } ?? []
        case GEN_DNS: hosts += text(entry.pointee.d.dNSName).map { [$0.lowercased()] } ?? []
        default: break
        }
      }
    }
    commonName = Self.commonName(certificate)?.lowercased()
  }

  /// The names by which a TLS client may request this certificate through SNI (RFC 6066 §3): its DNS names, else its common name.
  /// A wildcard counts only as the whole first label (RFC 9525 §6.3): `a.*.example` matches no name.
  public var askable: [ExpectedName] { (hosts.isEmpty ? commonName.map { [$0] } ?? [] : hosts).compactMap { ExpectedName($0) } }

  private static func commonName(_ certificate: OpaquePointer) -> String? {
    guard let subject = X509_get_subject_name(certificate) else { return nil }
    let index = X509_NAME_get_index_by_NID(subject, NID_commonName, -1)
    guard index >= 0, let entry = X509_NAME_get_entry(subject, index) else { return nil }
    return text(X509_NAME_ENTRY_get_data(entry))
  }
}

/// A string of a certificate; nil if it contains a NUL.
private func text(_ string: UnsafePointer<ASN1_STRING>?) -> String? {
  guard let string, let bytes = ASN1_STRING_get0_data(string) else { return nil }
  let all = UnsafeBufferPointer(start: bytes, count: Int(max(0, ASN1_STRING_length(string))))
  return all.contains(0) ? nil : String(decoding: all, as: UTF8.self)
}
