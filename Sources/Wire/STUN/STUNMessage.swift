import CTrunklineOpenSSL
import TrunklineBytes

/// A view of a received message (RFC 8489 §5): the header and the attributes that ICE needs, found in one pass without
/// allocation.
///
/// Holds the caller's pointer: use it only while those bytes live and stay unchanged. Parsing checks format and FINGERPRINT;
/// whether the sender knows the password is checked by `hasIntegrity(_:)`.
public struct STUNMessage {
  public let messageClass: STUNClass
  public let method: STUNMethod
  public let transaction: TransactionID
  /// PRIORITY: the priority that the sender would give a peer-reflexive candidate (RFC 8445 §7.1.1).
  public private(set) var priority: UInt32?
  public private(set) var usesCandidate = false
  /// The tie-breaker of ICE-CONTROLLING or ICE-CONTROLLED.
  public private(set) var controlling: UInt64?
  public private(set) var controlled: UInt64?
  /// XOR-MAPPED-ADDRESS: our address as the peer sees it.
  public private(set) var mappedAddress: SocketAddress?
  /// The number of ERROR-CODE, 300…699.
  public private(set) var errorCode: UInt16?
  public private(set) var hasFingerprint = false
  /// Attribute types that must be understood and are unknown; the first few.
  public private(set) var unknownRequired = UnknownAttributes()
  public var hasIntegrityAttribute: Bool { integrityOffset != nil }
  /// Attributes of every method but Binding.
  var turn = TURNAttributes()

  let bytes: UnsafeRawBufferPointer
  private var usernameRange: Range<Int>?
  private var integrityOffset: Int?

  /// Whether a datagram is STUN rather than DTLS or SRTP: first byte 0…3 (RFC 7983 §7) and the magic cookie. HOT
  @inline(__always) public static func isSTUN(_ bytes: UnsafeRawBufferPointer) -> Bool {
    bytes.count >= headerBytes && bytes[0] < 4
      && UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self)) == magicCookie
  }

  /// Reads a whole datagram. Throws for anything that is not one well-formed message.
  public init(_ bytes: UnsafeRawBufferPointer) throws(STUNError) {
    guard Self.isSTUN(bytes) else { throw .notSTUN }
    guard bytes.count <= Limits.messageBytes else { throw .tooLong }
    let type = bytes.bigEndian16(0)
    guard bytes.count % 4 == 0, Int(bytes.bigEndian16(2)) == bytes.count - headerBytes else { throw .notSTUN }
    guard let messageClass = STUNClass(rawValue: UInt8(type >> 4 & 1 | type >> 7 & 2)) else { throw .notSTUN }
    self.bytes = bytes
    self.messageClass = messageClass
    method = STUNMethod(rawValue: type & 0x0f | type >> 1 & 0x70 | type >> 2 & 0xf80)
    transaction = TransactionID(high: bytes.bigEndian32(8), low: bytes.bigEndian64(12))
    try readAttributes()
  }

  private mutating func readAttributes() throws(STUNError) {
    var (offset, count) = (headerBytes, 0)
    while offset < bytes.count {
      guard bytes.count - offset >= 4 else { throw .truncatedAttribute(offset: offset) }
      let (type, length) = (bytes.bigEndian16(offset), Int(bytes.bigEndian16(offset + 2)))
      let end = offset + 4 + (length + 3) & ~3
      guard end <= bytes.count else { throw .truncatedAttribute(offset: offset) }
      count += 1
      guard count <= Limits.attributes else { throw .tooLong }
      // Attributes after MESSAGE-INTEGRITY are not covered by it and are ignored, except FINGERPRINT (RFC 8489 §14.5).
      if integrityOffset == nil || type == Attribute.fingerprint { try read(type, at: offset, length) }
      offset = end
    }
  }

  private mutating func read(_ type: UInt16, at offset: Int, _ length: Int) throws(STUNError) {
    let value = offset + 4
    func require(_ fits: Bool) throws(STUNError) { if !fits { throw .badAttribute(offset: offset) } }
    switch type {
    case Attribute.username:
      try require(length <= Limits.usernameBytes)
      usernameRange = usernameRange ?? value..<(value + length)
    case Attribute.messageIntegrity:
      try require(length == 20)
      integrityOffset = offset
    case Attribute.fingerprint:
      guard length == 4, value + 4 == bytes.count else { throw .wrongFingerprint }
      let covered = UnsafeRawBufferPointer(rebasing: bytes[0..<offset])
      guard bytes.bigEndian32(value) == Checksum.fingerprint(covered, lengthField: bytes.bigEndian16(2)) else {
        throw .wrongFingerprint
      }
      hasFingerprint = true
    case Attribute.priority:
      try require(length == 4)
      priority = priority ?? bytes.bigEndian32(value)
    case Attribute.useCandidate:
      try require(length == 0)
      usesCandidate = true
    case Attribute.iceControlled:
      try require(length == 8)
      controlled = controlled ?? bytes.bigEndian64(value)
    case Attribute.iceControlling:
      try require(length == 8)
      controlling = controlling ?? bytes.bigEndian64(value)
    case Attribute.xorMappedAddress:
      let address = readXORAddress(at: value, length: length)
      try require(address != nil)
      mappedAddress = mappedAddress ?? address
    case Attribute.errorCode:
      try require(length >= 4)
      let (hundreds, rest) = (UInt16(bytes[value + 2] & 7), UInt16(bytes[value + 3]))
      try require((3...6).contains(hundreds) && rest < 100)
      errorCode = errorCode ?? hundreds * 100 + rest
    default:
      // An ICE agent does not support TURN.
      if method != .binding, try readTURN(type, at: offset, length) { return }
      if !Attribute.mayBeIgnored(type) { unknownRequired.append(type) }
    }
  }

  /// RFC 8489 §14.2: port and address exclusive-or cookie and transaction.
  func readXORAddress(at value: Int, length: Int) -> SocketAddress? {
    guard length >= 8 else { return nil }
    let port = bytes.bigEndian16(value + 2) ^ UInt16(truncatingIfNeeded: magicCookie >> 16)
    switch (bytes[value + 1], length) {
    case (1, 8): return SocketAddress(IPAddress(v4: bytes.bigEndian32(value + 4) ^ magicCookie), port)
    case (2, 20):
      let high = bytes.bigEndian64(value + 4) ^ (UInt64(magicCookie) << 32 | UInt64(transaction.high))
      return SocketAddress(IPAddress(v6High: high, low: bytes.bigEndian64(value + 12) ^ transaction.low), port)
    default: return nil
    }
  }
}

extension STUNMessage {
  /// USERNAME's bytes; valid as long as the message's.
  public var username: UnsafeRawBufferPointer? { usernameRange.map { UnsafeRawBufferPointer(rebasing: bytes[$0]) } }

  /// The first half of an ICE username, `recipient ":" sender` (RFC 8445 §7.2.2): the recipient's ufrag.
  public var recipientUfrag: UnsafeRawBufferPointer? {
    guard let username, let colon = username.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    return UnsafeRawBufferPointer(rebasing: username[0..<colon])
  }
  /// The second half of an ICE username: the ufrag of the sender.
  public var senderUfrag: UnsafeRawBufferPointer? {
    guard let username, let colon = username.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    return UnsafeRawBufferPointer(rebasing: username[(colon + 1)...])
  }

  /// True if MESSAGE-INTEGRITY is present and matches this key; compared in constant time.
  public func hasIntegrity(_ key: IntegrityKey) -> Bool {
    guard let integrityOffset else { return false }
    let covered = UnsafeRawBufferPointer(rebasing: bytes[0..<integrityOffset])
    let sent = UnsafeRawBufferPointer(rebasing: bytes[(integrityOffset + 4)..<(integrityOffset + 24)])
    return key.withDigest(of: covered) { CRYPTO_memcmp($0.baseAddress, sent.baseAddress, 20) == 0 } ?? false
  }
}

/// Up to four attribute types for a 420 answer.
public struct UnknownAttributes: Sendable {
  public private(set) var count = 0
  private var types: (UInt16, UInt16, UInt16, UInt16) = (0, 0, 0, 0)

  mutating func append(_ type: UInt16) {
    switch count {
    case 0: types.0 = type
    case 1: types.1 = type
    case 2: types.2 = type
    case 3: types.3 = type
    default: return
    }
    count += 1
  }
  public subscript(index: Int) -> UInt16 {
    switch index {
    case 0: types.0
    case 1: types.1
    case 2: types.2
    default: types.3
    }
  }
  public var isEmpty: Bool { count == 0 }
}

extension UnsafeRawBufferPointer {
  // Callers have checked the offset against `count`.
  @inline(__always) func bigEndian16(_ offset: Int) -> UInt16 {
    UInt16(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt16.self))
  }
  @inline(__always) func bigEndian32(_ offset: Int) -> UInt32 {
    UInt32(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
  @inline(__always) func bigEndian64(_ offset: Int) -> UInt64 {
    UInt64(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }
}
