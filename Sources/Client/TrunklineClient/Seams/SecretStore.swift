import Foundation
import Synchronization

/// Storage for the secrets of this installation: on Apple's systems the keychain, after the first unlock. Never UserDefaults.
/// Every method may fail: a keychain may be locked before the first unlock, full, or missing; the phone continues without it.
public protocol SecretStore: Sendable {
  /// The value; nil: there is no value, or it cannot be read now.
  func read(_ key: String) -> [UInt8]?
  /// Keeps the value; nil deletes. False: nothing was changed.
  @discardableResult func write(_ key: String, _ value: [UInt8]?) -> Bool
}

/// For tests, and for apps that store no secrets.
public final class MemorySecrets: SecretStore {
  private let values = Mutex<[String: [UInt8]]>([:])
  /// An empty store.
  public init() {}
  /// The value written under the key in this process.
  public func read(_ key: String) -> [UInt8]? { values.withLock { $0[key] } }
  public func write(_ key: String, _ value: [UInt8]?) -> Bool {
    values.withLock { $0[key] = value }
    return true
  }
}

/// A folder with one file of mode 0600 per key.
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
