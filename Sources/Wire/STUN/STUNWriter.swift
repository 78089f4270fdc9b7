import TrunklineBytes

/// Writes one message into the caller's buffer, attribute by attribute, without allocation.
///
/// Add MESSAGE-INTEGRITY and then FINGERPRINT last. A buffer that is too small makes `finish()` return nil; 256 bytes hold every
/// connectivity check and answer with ufrags of ordinary length.
public struct STUNWriter {
  private let buffer: UnsafeMutableRawBufferPointer
  private let transaction: TransactionID
  private(set) var count = 0
  var hasFailed = false

  public init(
    _ messageClass: STUNClass, method: STUNMethod = .binding, transaction: TransactionID,
    into buffer: UnsafeMutableRawBufferPointer
  ) {
    self.buffer = buffer
    self.transaction = transaction
    let (m, c) = (method.rawValue, UInt16(messageClass.rawValue))
    put16(m & 0x0f | (m & 0x70) << 1 | (m & 0xf80) << 2 | (c & 1) << 4 | (c & 2) << 7)
    put16(0)
    put32(magicCookie)
    put32(transaction.high)
    put64(transaction.low)
  }

  /// USERNAME from its parts, as `recipient:sender` (RFC 8445 §7.2.2).
  public mutating func addUsername(recipient: some Collection<UInt8>, sender: some Collection<UInt8>) {
    let length = recipient.count + 1 + sender.count
    guard length <= Limits.usernameBytes else {
      hasFailed = true
      return
    }
    begin(Attribute.username, length)
    for byte in recipient { put8(byte) }
    put8(UInt8(ascii: ":"))
    for byte in sender { put8(byte) }
    pad()
  }

  public mutating func addPriority(_ priority: UInt32) {
    begin(Attribute.priority, 4)
    put32(priority)
  }
  public mutating func addUseCandidate() { begin(Attribute.useCandidate, 0) }
  public mutating func addControlling(tieBreaker: UInt64) {
    begin(Attribute.iceControlling, 8)
    put64(tieBreaker)
  }
  public mutating func addControlled(tieBreaker: UInt64) {
    begin(Attribute.iceControlled, 8)
    put64(tieBreaker)
  }

  /// XOR-MAPPED-ADDRESS; an IPv4-mapped IPv6 address is written as IPv4.
  public mutating func addMappedAddress(_ address: SocketAddress) { addXORAddress(Attribute.xorMappedAddress, address) }

  mutating func addXORAddress(_ type: UInt16, _ address: SocketAddress) {
    let ip = address.ip.unmapped
    begin(type, ip.family == .v4 ? 8 : 20)
    put16(ip.family == .v4 ? 1 : 2)
    put16(address.port ^ UInt16(truncatingIfNeeded: magicCookie >> 16))
    if ip.family == .v4 {
      put32(UInt32(truncatingIfNeeded: ip.low) ^ magicCookie)
    } else {
      put64(ip.high ^ (UInt64(magicCookie) << 32 | UInt64(transaction.high)))
      put64(ip.low ^ transaction.low)
    }
  }

  /// ERROR-CODE with its reason phrase.
  public mutating func addError(_ code: STUNErrorCode) {
    let reason = code.reason
    begin(Attribute.errorCode, 4 + reason.utf8CodeUnitCount)
    put16(0)
    put8(UInt8(code.rawValue / 100))
    put8(UInt8(code.rawValue % 100))
    for offset in 0..<reason.utf8CodeUnitCount { put8(reason.utf8Start[offset]) }
    pad()
  }

  public mutating func addUnknownAttributes(_ types: UnknownAttributes) {
    begin(Attribute.unknownAttributes, 2 * types.count)
    for index in 0..<types.count { put16(types[index]) }
    pad()
  }

  public mutating func addIntegrity(_ key: IntegrityKey) {
    let message = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[0..<count])
    begin(Attribute.messageIntegrity, 20)
    guard !hasFailed, room(20) else { return }
    let target = UnsafeMutableRawBufferPointer(rebasing: buffer[count..<(count + 20)])
    if key.withDigest(of: message, { target.copyMemory(from: $0) }) == nil { hasFailed = true }
    count += 20
  }

  public mutating func addFingerprint() {
    let message = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[0..<count])
    let length = UInt16(truncatingIfNeeded: max(0, count - headerBytes + fingerprintBytes))
    begin(Attribute.fingerprint, 4)
    put32(Checksum.fingerprint(message, lengthField: length))
  }

  /// Sets the length field; the message's size in bytes, or nil if the buffer was too small.
  public mutating func finish() -> Int? {
    guard !hasFailed, count >= headerBytes, count <= Limits.messageBytes else { return nil }
    buffer.storeBytes(of: UInt16(truncatingIfNeeded: count - headerBytes).bigEndian, toByteOffset: 2, as: UInt16.self)
    return count
  }

  // MARK: Bytes

  mutating func room(_ more: Int) -> Bool {
    if hasFailed || buffer.count - count < more {
      hasFailed = true
      return false
    }
    return true
  }
  mutating func begin(_ type: UInt16, _ length: Int) {
    put16(type)
    put16(UInt16(truncatingIfNeeded: length))
  }
  mutating func pad() { while !hasFailed, count % 4 != 0 { put8(0) } }
  mutating func put(_ bytes: UnsafeRawBufferPointer) {
    guard room(bytes.count) else { return }
    UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyMemory(from: bytes)
    count += bytes.count
  }
  mutating func put8(_ value: UInt8) {
    guard room(1) else { return }
    buffer[count] = value
    count += 1
  }
  mutating func put16(_ value: UInt16) {
    guard room(2) else { return }
    buffer.storeBytes(of: value.bigEndian, toByteOffset: count, as: UInt16.self)
    count += 2
  }
  mutating func put32(_ value: UInt32) {
    guard room(4) else { return }
    buffer.storeBytes(of: value.bigEndian, toByteOffset: count, as: UInt32.self)
    count += 4
  }
  mutating func put64(_ value: UInt64) {
    guard room(8) else { return }
    buffer.storeBytes(of: value.bigEndian, toByteOffset: count, as: UInt64.self)
    count += 8
  }
}
