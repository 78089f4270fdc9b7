import Foundation

/// The surface's keychain, for the programs of the suite: a query without its class, or with an unknown attribute, is refused.
public final class Keychain: @unchecked Sendable {  // one thread
  public static let shared = Keychain()
  public var isLocked = false
  public private(set) var accessible: [String: String] = [:]
  private var items: [String: Data] = [:]
  private static let parameter: OSStatus = -50

  private func name(_ query: CFDictionary) -> String? {
    let known: Set = [
      kSecClass, kSecAttrService, kSecAttrAccount, kSecValueData, kSecAttrAccessible, kSecReturnData, kSecMatchLimit,
    ]
    guard query[kSecClass] as? String == kSecClassGenericPassword, query.keys.allSatisfy(known.contains),
      let service = query[kSecAttrService] as? String, let account = query[kSecAttrAccount] as? String
    else { return nil }
    return service + "/" + account
  }

  func copy(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
    guard let name = name(query), query[kSecReturnData] as? Bool == true else { return Self.parameter }
    guard !isLocked else { return errSecInteractionNotAllowed }
    guard let data = items[name] else { return errSecItemNotFound }
    result?.pointee = data as NSData
    return errSecSuccess
  }

  func add(_ attributes: CFDictionary) -> OSStatus {
    guard let name = name(attributes), let data = attributes[kSecValueData] as? Data else { return Self.parameter }
    guard !isLocked else { return errSecInteractionNotAllowed }
    guard items[name] == nil else { return -25299 }
    items[name] = data
    accessible[name] = attributes[kSecAttrAccessible] as? String
    return errSecSuccess
  }

  func update(_ query: CFDictionary, _ attributes: CFDictionary) -> OSStatus {
    guard let name = name(query) else { return Self.parameter }
    guard !isLocked else { return errSecInteractionNotAllowed }
    guard items[name] != nil else { return errSecItemNotFound }
    items[name] = attributes[kSecValueData] as? Data
    return errSecSuccess
  }

  func delete(_ query: CFDictionary) -> OSStatus {
    guard let name = name(query) else { return Self.parameter }
    guard !isLocked else { return errSecInteractionNotAllowed }
    return items.removeValue(forKey: name) == nil ? errSecItemNotFound : errSecSuccess
  }
}
