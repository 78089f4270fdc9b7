import Foundation
import Synchronization

/// Where what belongs to this installation is kept: on Apple's systems the keychain, after the first unlock. Never UserDefaults.
/// Every method may fail: a keychain is closed before the first unlock, full, or gone; the phone goes on without.
public protocol SecretStore: Sendable {
  /// The value; nil: there is none, or it cannot be read now.
  func read(_ key: String) -> [UInt8]?
  /// Keeps the value; nil deletes. False: nothing was changed.
  @discardableResult func write(_ key: String, _ value: [UInt8]?) -> Bool
}

/// For tests, and where nothing is to be kept.
public final class MemorySecrets: SecretStore {
  private let values = Mutex<[String: [UInt8]]>([:])
  /// An empty store.
  public init() {}
  /// What was written under the key in this process.
  public func read(_ key: String) -> [UInt8]? { values.withLock { $0[key] } }
  public func write(_ key: String, _ value: [UInt8]?) -> Bool {
    values.withLock { $0[key] = value }
    return true
  }
}

/// A folder of files of mode 0600, one a key.
public final class FileSecrets: SecretStore {
  private let folder: String
  /// The folder is made if it is missing.
  public init(folder: String) { self.folder = folder }

  private func path(_ key: String) -> String {
    folder + "/" + key.map { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") ? String($0) : "_" }.joined()
  }

  /// The content of the key's file.
  public func read(_ key: String) -> [UInt8]? { FileManager.default.contents(atPath: path(key)).map { [UInt8]($0) } }

  public func write(_ key: String, _ value: [UInt8]?) -> Bool {
    guard let value else { return (try? FileManager.default.removeItem(atPath: path(key))) != nil }
    let attributes: [FileAttributeKey: Any] = [.posixPermissions: 0o700]
    try? FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true, attributes: attributes)
    return FileManager.default.createFile(atPath: path(key), contents: Data(value), attributes: [.posixPermissions: 0o600])
  }
}
