import CTrunklineOpenSSL
import TrunklineBytes
import TrunklinePlatform

/// Why a certificate is not for a SIP domain (RFC 5922 §7.1, §7.2); nil if it is. Only the `sip:` URIs among its alternative
/// names count; without them its DNS names; without those the common name. Wildcards, which SIP does not define, count only where
/// the operator expects one.
///
/// - Parameter expected: names that the operator expects instead of `host`; one match is enough.
func refusal(of certificate: OpaquePointer, for host: String, expecting expected: [ExpectedName] = []) -> String? {
  if expected.isEmpty, IPAddress(host) != nil {
    return X509_check_ip_asc(certificate, host, 0) == 1 ? nil : "the certificate is not for \(host)"
  }
  let wanted = expected.isEmpty ? [ExpectedName(host)].compactMap(\.self) : expected
  let said = expected.isEmpty ? host : expected.map(\.description).joined(separator: " or ")
  let names: CertificateNames
  do { names = try CertificateNames(certificate) } catch { return "the certificate is not accepted for \(said): \(error)" }
  let uris = names.uris.compactMap(sipHost)
  let own = !uris.isEmpty ? uris : !names.hosts.isEmpty ? names.hosts : names.commonName.map { [$0] } ?? []
  if own.contains(where: { name in wanted.contains { $0.accepts(name) } }) { return nil }
  return "the certificate is not for \(said), but for \(shown(own))"
}

/// The domain of a `sip:` or `sips:` URI without a user part; nil for any other URI.
private func sipHost(_ uri: String) -> String? {
  let uri = uri.lowercased()
  for scheme in ["sip:", "sips:"] where uri.hasPrefix(scheme) {
    let host = uri.dropFirst(scheme.count).prefix { $0 != ";" && $0 != "?" && $0 != ":" }
    return host.contains("@") || host.isEmpty ? nil : String(host)
  }
  return nil
}

/// A peer's first names for the log, cut, with `?` for each byte that is not printable ASCII.
private func shown(_ names: [String]) -> String {
  let first = names.prefix(Limits.loggedNames).map { name in
    String(
      decoding: name.utf8.prefix(Limits.loggedNameBytes).map { (33...126).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
  }
  let more = names.count - first.count
  return names.isEmpty ? "no name" : first.joined(separator: ", ") + (more > 0 ? " and \(more) more" : "")
}
