/// The class of a message (RFC 8489 §5).
public enum STUNClass: UInt8, Sendable {
  case request = 0
  case indication = 1
  case success = 2
  case error = 3
}

/// The method of a message; ICE uses Binding only, the others are TURN's (RFC 8656 §17).
public struct STUNMethod: RawRepresentable, Hashable, Sendable {
  public let rawValue: UInt16
  public init(rawValue: UInt16) { self.rawValue = rawValue }
  public static let binding = STUNMethod(rawValue: 1)
  public static let allocate = STUNMethod(rawValue: 3)
  public static let refresh = STUNMethod(rawValue: 4)
  public static let send = STUNMethod(rawValue: 6)
  public static let data = STUNMethod(rawValue: 7)
  public static let createPermission = STUNMethod(rawValue: 8)
  public static let channelBind = STUNMethod(rawValue: 9)
}

/// Error codes of RFC 8489 §14.8, RFC 8445 §7.3.1.1 and RFC 8656 §19.
public enum STUNErrorCode: UInt16, Sendable, CaseIterable {
  case tryAlternate = 300
  case badRequest = 400
  case unauthenticated = 401
  case forbidden = 403
  case unknownAttribute = 420
  case allocationMismatch = 437
  case staleNonce = 438
  case addressFamilyNotSupported = 440
  case wrongCredentials = 441
  case unsupportedTransport = 442
  case peerFamilyMismatch = 443
  case allocationQuotaReached = 486
  case roleConflict = 487
  case serverError = 500
  case insufficientCapacity = 508

  /// The reason phrase that goes into ERROR-CODE.
  var reason: StaticString {
    switch self {
    case .badRequest: "Bad Request"
    case .unauthenticated: "Unauthenticated"
    case .unknownAttribute: "Unknown Attribute"
    case .roleConflict: "Role Conflict"
    case .serverError: "Server Error"
    case .tryAlternate: "Try Alternate"
    case .forbidden: "Forbidden"
    case .allocationMismatch: "Allocation Mismatch"
    case .staleNonce: "Stale Nonce"
    case .addressFamilyNotSupported: "Address Family not Supported"
    case .wrongCredentials: "Wrong Credentials"
    case .unsupportedTransport: "Unsupported Transport Protocol"
    case .peerFamilyMismatch: "Peer Address Family Mismatch"
    case .allocationQuotaReached: "Allocation Quota Reached"
    case .insufficientCapacity: "Insufficient Capacity"
    }
  }
}

/// Why bytes are no STUN message. The receiver drops them in silence (RFC 8489 §6.3).
public enum STUNError: Error, Sendable, Equatable {
  /// Shorter than a header, a length field that does not fit, no magic cookie, or first bits not zero.
  case notSTUN
  /// An attribute reaches beyond the message, at this offset.
  case truncatedAttribute(offset: Int)
  /// An attribute we read has a length it cannot have.
  case badAttribute(offset: Int)
  /// More than `Limits.attributes`, or longer than `Limits.messageBytes`.
  case tooLong
  /// FINGERPRINT is present and does not match, or is not last.
  case wrongFingerprint
}

/// Attribute types that this module reads or writes (RFC 8489 §18.3, RFC 8445 §16.1, RFC 8656 §18).
enum Attribute {
  static let mappedAddress: UInt16 = 0x0001
  static let username: UInt16 = 0x0006
  static let messageIntegrity: UInt16 = 0x0008
  static let errorCode: UInt16 = 0x0009
  static let unknownAttributes: UInt16 = 0x000a
  static let channelNumber: UInt16 = 0x000c
  static let lifetime: UInt16 = 0x000d
  static let xorPeerAddress: UInt16 = 0x0012
  static let data: UInt16 = 0x0013
  static let realm: UInt16 = 0x0014
  static let nonce: UInt16 = 0x0015
  static let xorRelayedAddress: UInt16 = 0x0016
  static let requestedAddressFamily: UInt16 = 0x0017
  static let requestedTransport: UInt16 = 0x0019
  static let messageIntegritySHA256: UInt16 = 0x001c
  static let passwordAlgorithm: UInt16 = 0x001d
  static let userHash: UInt16 = 0x001e
  static let xorMappedAddress: UInt16 = 0x0020
  static let priority: UInt16 = 0x0024
  static let useCandidate: UInt16 = 0x0025
  static let software: UInt16 = 0x8022
  static let alternateServer: UInt16 = 0x8023
  static let fingerprint: UInt16 = 0x8028
  static let iceControlled: UInt16 = 0x8029
  static let iceControlling: UInt16 = 0x802a

  /// Types below 0x8000 must be understood (RFC 8489 §14); these are, or may be ignored beside those we use.
  static func mayBeIgnored(_ type: UInt16) -> Bool {
    switch type {
    case mappedAddress, realm, nonce, messageIntegritySHA256, passwordAlgorithm, userHash, unknownAttributes: true
    default: type >= 0x8000
    }
  }
}

let magicCookie: UInt32 = 0x2112_a442
/// Header, and the sizes of the two closing attributes.
let headerBytes = 20
let integrityBytes = 24
let fingerprintBytes = 8
