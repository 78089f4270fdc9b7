import Bytes
import COpenSSL

/// Whether a certificate is for a SIP domain (RFC 5922 §7.1, §7.2): the `sip:` URIs among its alternative names if there are any, else
/// its DNS names, else the common name. Without wildcards, which SIP does not know.
func certificate(_ certificate: OpaquePointer, isFor host: String) -> Bool {
  if IPAddress(host) != nil { return X509_check_ip_asc(certificate, host, 0) == 1 }
  let wanted = host.lowercased()
  var uris: [String] = []
  var names: [String] = []
  if let raw = X509_get_ext_d2i(certificate, NID_subject_alt_name, nil, nil) {
    let list = OpaquePointer(raw)
    for index in 0..<OPENSSL_sk_num(list) {
      guard let entry = OPENSSL_sk_value(list, index)?.assumingMemoryBound(to: GENERAL_NAME.self) else { continue }
      switch entry.pointee.type {
      case GEN_URI: uris += sipHost(text(entry.pointee.d.uniformResourceIdentifier)).map { [$0] } ?? []
      case GEN_DNS: names += text(entry.pointee.d.dNSName).map { [$0.lowercased()] } ?? []
      default: break
      }
    }
    GENERAL_NAMES_free(list)
  }
  if !uris.isEmpty { return uris.contains(wanted) }
  if !names.isEmpty { return names.contains(wanted) }
  return commonName(certificate)?.lowercased() == wanted
}

/// The domain of a `sip:` or `sips:` URI without a user part; nil for any other.
private func sipHost(_ uri: String?) -> String? {
  guard let uri = uri?.lowercased() else { return nil }
  for scheme in ["sip:", "sips:"] where uri.hasPrefix(scheme) {
    let host = uri.dropFirst(scheme.count).prefix { $0 != ";" && $0 != "?" && $0 != ":" }
    return host.contains("@") || host.isEmpty ? nil : String(host)
  }
  return nil
}

/// A string of a certificate; one with a NUL inside names nobody.
private func text(_ string: UnsafePointer<ASN1_STRING>?) -> String? {
  guard let string, let bytes = ASN1_STRING_get0_data(string) else { return nil }
  let all = UnsafeBufferPointer(start: bytes, count: Int(max(0, ASN1_STRING_length(string))))
  return all.contains(0) ? nil : String(decoding: all, as: UTF8.self)
}

private func commonName(_ certificate: OpaquePointer) -> String? {
  guard let subject = X509_get_subject_name(certificate) else { return nil }
  let place = X509_NAME_get_index_by_NID(subject, NID_commonName, -1)
  guard place >= 0, let entry = X509_NAME_get_entry(subject, place) else { return nil }
  return text(X509_NAME_ENTRY_get_data(entry))
}
