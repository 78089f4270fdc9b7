import CTrunklineOpenSSL
import Foundation
import TrunklinePlatform

/// A PEM file as OpenSSL reads it, for checks of dates and key pairs. TLS reads the file again.
package struct PEMFile {
  let path: String
  /// Certificates checked in one file.
  private static let most = 64

  /// A certificate's facts for the operator.
  package struct Certificate {
    package var subject: String
    /// In seconds since 1970.
    package var expires: Int64
  }

  package init(path: String) { self.path = path }

  /// Every certificate up to the first unreadable one.
  package func certificates() -> [Certificate] {
    let epoch = ASN1_TIME_set(nil, 0)
    defer { ASN1_TIME_free(epoch) }
    var out: [Certificate] = []
    each { certificate in
      var (days, seconds): (Int32, Int32) = (0, 0)
      _ = ASN1_TIME_diff(&days, &seconds, epoch, X509_get0_notAfter(certificate))
      let name = X509_NAME_oneline(X509_get_subject_name(certificate), nil, 0)
      defer { CRYPTO_free(name, nil, 0) }
      let expires = Int64(days) * 86_400 + Int64(seconds)
      out.append(Certificate(subject: name.map { String(cString: $0) } ?? "", expires: expires))
    }
    return out
  }

  /// Counts the BEGIN CERTIFICATE lines of the file.
  var writtenCertificates: Int {
    let text = String(decoding: FileManager.default.contents(atPath: path) ?? Data(), as: UTF8.self)
    return text.components(separatedBy: "-----BEGIN CERTIFICATE-----").count - 1
  }

  /// Whether the first certificate is for `host`, a name or an address (RFC 9525).
  func names(_ host: String) -> Bool {
    var isNamed = false
    first { isNamed = X509_check_host($0, host, 0, 0, nil) == 1 || X509_check_ip_asc($0, host, 0) == 1 }
    return isNamed
  }

  /// Why the first certificate matches no name that a client can request; nil if it matches one.
  var unaskable: String? {
    var out: String? = "it has no name that a client could request"
    first { certificate in
      do { if try !CertificateNames(certificate).askable.isEmpty { out = nil } } catch { out = "\(error)" }
    }
    return out
  }

  enum Key: Equatable { case pairs, other, encrypted, unreadable }

  /// Whether the file is the private key of the first certificate of `chain`.
  func key(of chain: PEMFile) -> Key {
    guard let file = BIO_new_file(path, "r") else { return .unreadable }
    defer {
      BIO_free(file)
      ERR_clear_error()
    }
    // OpenSSL calls this only if the key is encrypted; without a callback it would prompt on the terminal.
    var isEncrypted = false
    let key = PEM_read_bio_PrivateKey(
      file, nil,
      { _, _, _, asked in
        asked?.storeBytes(of: true, as: Bool.self)
        return -1
      }, &isEncrypted)
    defer { EVP_PKEY_free(key) }
    guard let key else { return isEncrypted ? .encrypted : .unreadable }
    var out = Key.other
    chain.first { if X509_check_private_key($0, key) == 1 { out = .pairs } }
    return out
  }

  private func first(_ look: (OpaquePointer) -> Void) { each(most: 1, look) }

  private func each(most: Int = Self.most, _ look: (OpaquePointer) -> Void) {
    guard let file = BIO_new_file(path, "r") else { return ERR_clear_error() }
    defer {
      BIO_free(file)
      ERR_clear_error()  // OpenSSL reports the end of the file as an error
    }
    for _ in 0..<most {
      guard let certificate = PEM_read_bio_X509(file, nil, nil, nil) else { return }
      look(certificate)
      X509_free(certificate)
    }
  }
}
