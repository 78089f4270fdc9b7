import TrunklineBytes
import TrunklineSRTP

/// The input of every implementation: the same keys and the same packets.
struct Fixture {
  let profile: SRTPProfile
  let payloadBytes: Int
  let key: [UInt8]
  let salt: [UInt8]

  init(_ profile: SRTPProfile, payloadBytes: Int) {
    let random = RandomSource.seeded(7)
    (self.profile, self.payloadBytes) = (profile, payloadBytes)
    (key, salt) = (random.bytes(profile.keyBytes), random.bytes(profile.saltBytes))
  }

  var master: SRTPMasterKey { SRTPMasterKey(key: key, salt: salt) }
  var packetBytes: Int { 12 + payloadBytes }
  /// Protection appends only the tag; libsrtp needs 32-bit alignment and space for its trailer.
  func makeBuffer() -> UnsafeMutableRawBufferPointer {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: packetBytes + 160, alignment: 16)
    for index in 0..<buffer.count { buffer[index] = UInt8(truncatingIfNeeded: index &* 31) }
    (buffer[0], buffer[1]) = (0x80, 0)
    return buffer
  }

  /// Makes the buffer packet `index` of the stream. The payload remains from the last `unprotect`: the same bytes.
  @inline(__always) func number(_ buffer: UnsafeMutableRawBufferPointer, _ index: Int) {
    buffer.storeBytes(of: UInt16(truncatingIfNeeded: index).bigEndian, toByteOffset: 2, as: UInt16.self)
  }

  /// The ciphertext's last eight octets and the tag's first four: equal digests mean equal protection.
  @inline(__always) func digest(_ buffer: UnsafeMutableRawBufferPointer) -> UInt64 {
    buffer.loadUnaligned(fromByteOffset: packetBytes - 8, as: UInt64.self)
      ^ UInt64(buffer.loadUnaligned(fromByteOffset: packetBytes, as: UInt32.self))
  }
}
