// What the SDK uses of Security. Core Foundation's types are Swift's here; bridging makes them so on Apple's systems.
import Foundation

/// CoreFoundation/CFString.h
public typealias CFString = String
/// CoreFoundation/CFDictionary.h
public typealias CFDictionary = [String: Any]
/// CoreFoundation/CFBase.h
public typealias CFTypeRef = AnyObject
/// MacTypes.h
public typealias OSStatus = Int32

/// Security/SecBase.h
public let errSecSuccess: OSStatus = 0
/// Security/SecBase.h
public let errSecItemNotFound: OSStatus = -25300
/// Security/SecBase.h: the keychain before the first unlock
public let errSecInteractionNotAllowed: OSStatus = -25308

/// Security/SecItem.h
public let kSecClass: CFString = "class"
/// Security/SecItem.h
public let kSecClassGenericPassword: CFString = "genp"
/// Security/SecItem.h
public let kSecAttrService: CFString = "svce"
/// Security/SecItem.h
public let kSecAttrAccount: CFString = "acct"
/// Security/SecItem.h
public let kSecAttrAccessible: CFString = "pdmn"
/// Security/SecItem.h
public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly: CFString = "cku"
/// Security/SecItem.h
public let kSecValueData: CFString = "v_Data"
/// Security/SecItem.h
public let kSecReturnData: CFString = "r_Data"
/// Security/SecItem.h
public let kSecMatchLimit: CFString = "m_Limit"
/// Security/SecItem.h
public let kSecMatchLimitOne: CFString = "m_LimitOne"

/// Security/SecItem.h
public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
  Keychain.shared.copy(query, result)
}
/// Security/SecItem.h
public func SecItemAdd(_ attributes: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
  Keychain.shared.add(attributes)
}
/// Security/SecItem.h
public func SecItemUpdate(_ query: CFDictionary, _ attributesToUpdate: CFDictionary) -> OSStatus {
  Keychain.shared.update(query, attributesToUpdate)
}
/// Security/SecItem.h
public func SecItemDelete(_ query: CFDictionary) -> OSStatus { Keychain.shared.delete(query) }

/// Security/SecProtocolTypes.h
public final class sec_protocol_options_t {
  public fileprivate(set) var serverName = "the host"
  public init() {}
}
/// Security/SecProtocolOptions.h
public func sec_protocol_options_set_tls_server_name(_ options: sec_protocol_options_t, _ name: String) {
  options.serverName = name
}
