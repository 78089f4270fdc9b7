#if canImport(Darwin) || APPLE_SURFACE
  import Foundation
  import Security

  /// What belongs to this installation, in the keychain: readable after the first unlock (R29), never part of a backup that another device restores.
  ///
  /// A value is in the first of the process's keychain access groups, and is looked for in all: an app and its extensions share it when their
  /// entitlements name the same group first.
  public struct KeychainSecrets: SecretStore {
    private let service: String
    /// - Parameter service: `kSecAttrService` of every item.
    public init(service: String = "trunkline") { self.service = service }

    private func query(_ key: String) -> [CFString: Any] {
      [kSecClass: kSecClassGenericPassword, kSecAttrService: service, kSecAttrAccount: key]
    }

    public func read(_ key: String) -> [UInt8]? {
      var query = query(key)
      query[kSecReturnData] = true
      query[kSecMatchLimit] = kSecMatchLimitOne
      var found: CFTypeRef?
      guard SecItemCopyMatching(query as CFDictionary, &found) == errSecSuccess, let data = found as? Data else { return nil }
      return [UInt8](data)
    }

    @discardableResult
    public func write(_ key: String, _ value: [UInt8]?) -> Bool {
      let query = query(key)
      guard let value else { return SecItemDelete(query as CFDictionary) == errSecSuccess }
      let attributes: [CFString: Any] = [
        kSecValueData: Data(value), kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
      ]
      let status = SecItemUpdate(query as CFDictionary, attributes as CFDictionary)
      guard status == errSecItemNotFound else { return status == errSecSuccess }
      return SecItemAdd(query.merging(attributes) { $1 } as CFDictionary, nil) == errSecSuccess
    }
  }
#endif
