import Foundation
import TrunklineBytes

extension Section {
  /// The content of the file that `key` names, as bytes; nil if the key is absent or the file cannot be read (which is reported).
  func fileContent(_ key: String, limit: Int = Limits.secretBytes) -> [UInt8]? {
    guard let name = string(key) else { return nil }
    let path = parser.resolve(name)
    guard access(path, R_OK) == 0 else {
      parser.problem(self.path(key), "cannot read \(path): \(String(cString: strerror(errno)))")
      return nil
    }
    guard let data = FileManager.default.contents(atPath: path) else {
      parser.problem(self.path(key), "cannot read \(path)")
      return nil
    }
    guard data.count <= limit else {
      parser.problem(self.path(key), "\(path) has \(data.count) bytes, more than the limit of \(limit)")
      return nil
    }
    if isSecret(key) { checkReaders(of: path, key, data) }
    return [UInt8](data)
  }

  /// Warns if every user of the machine can read a secret: checks the file and every folder on its path. Files of public keys
  /// and certificates are exempt.
  private func checkReaders(of path: String, _ key: String, _ data: Data) {
    guard !SecretFile.isPublic(data), SecretFile.isOpenToAll(path) else { return }
    parser.problem(
      self.path(key), "every user of this machine can read the secret in \(path): chmod o= \(path), and make a new secret",
      .warning)
  }

  /// A secret of one line: the file without trailing white space, which must not be empty.
  func secret(_ key: String) -> [UInt8]? {
    guard var bytes = fileContent(key) else { return nil }
    while let last = bytes.last, [0x20, 0x09, 0x0a, 0x0b, 0x0c, 0x0d].contains(last) { bytes.removeLast() }
    guard !bytes.isEmpty else {
      parser.problem(path(key), "\(parser.resolve(string(key) ?? "")) is empty")
      return nil
    }
    return bytes
  }

  /// A readable file's absolute path.
  func readableFile(_ key: String) -> String? {
    guard fileContent(key, limit: Limits.fileBytes) != nil, let name = string(key) else { return nil }
    return parser.resolve(name)
  }
}
