import Foundation
import Glibc

/// Checks of the access to a file with a secret.
enum SecretFile {
  /// Whether all users of the machine can read the file and enter every folder above it. Symbolic links are resolved.
  static func isOpenToAll(_ path: String) -> Bool {
    guard let real = realpath(path, nil) else { return false }
    defer { free(real) }
    var resolved = String(cString: real)
    guard hasMode(resolved, S_IROTH) else { return false }
    while let slash = resolved.lastIndex(of: "/"), slash > resolved.startIndex {
      resolved = String(resolved[..<slash])
      guard hasMode(resolved, S_IXOTH) else { return false }
    }
    return true
  }

  private static func hasMode(_ path: String, _ bit: mode_t) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & bit != 0
  }

  /// True for PEM with only public keys and certificates.
  static func isPublic(_ data: Data) -> Bool {
    let labels = String(decoding: data, as: UTF8.self).split(separator: "\n").compactMap { line in
      line.hasPrefix("-----BEGIN ") ? line.dropFirst("-----BEGIN ".count).prefix { $0 != "-" } : nil
    }
    return !labels.isEmpty && labels.allSatisfy { $0.hasSuffix("PUBLIC KEY") || $0 == "CERTIFICATE" }
  }
}
