import Foundation
import TrunklineBytes

@testable import TrunklineSRTP

/// The bytes after an in-place operation in a buffer with 64 bytes of room behind the packet.
func inPlace<E: Error>(
  _ packet: [UInt8], room: Int = 64, _ body: (UnsafeMutableRawBufferPointer, inout Int) throws(E) -> Void
) throws(E) -> [UInt8] {
  let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, packet.count + room), alignment: 1)
  defer { buffer.deallocate() }
  buffer.copyBytes(from: packet)
  let area = UnsafeMutableRawBufferPointer(rebasing: buffer[0..<(packet.count + room)])
  var count = packet.count
  try body(area, &count)
  return Array(area[0..<count])
}

extension SRTPSender {
  mutating func protected(_ packet: [UInt8]) throws(SRTPError) -> [UInt8] {
    try inPlace(packet) { (b, n) throws(SRTPError) in try self.protect(b, count: &n) }
  }
  mutating func protectedRTCP(_ packet: [UInt8]) throws(SRTPError) -> [UInt8] {
    try inPlace(packet) { (b, n) throws(SRTPError) in try self.protectRTCP(b, count: &n) }
  }
}

extension SRTPReceiver {
  mutating func unprotected(_ packet: [UInt8]) throws(SRTPError) -> [UInt8] {
    try inPlace(packet, room: 0) { (b, n) throws(SRTPError) in try self.unprotect(b, count: &n) }
  }
  mutating func unprotectedRTCP(_ packet: [UInt8]) throws(SRTPError) -> [UInt8] {
    try inPlace(packet, room: 0) { (b, n) throws(SRTPError) in try self.unprotectRTCP(b, count: &n) }
  }
}

/// A master key of a profile's length, the same for the same seed.
func masterKey(_ profile: SRTPProfile, seed: UInt64 = 1) -> SRTPMasterKey {
  let random = RandomSource.seeded(seed)
  return SRTPMasterKey(key: random.bytes(profile.keyBytes), salt: random.bytes(profile.saltBytes))
}

/// An RTP packet, with `csrcs` contributing sources and a header extension of `extensionWords` words if not nil.
func rtpPacket(
  _ sequence: UInt16, ssrc: UInt32 = 0x1234_5678, payload: [UInt8] = Array(0..<160), csrcs: Int = 0, extensionWords: Int? = nil
) -> [UInt8] {
  var out: [UInt8] = [0x80 | UInt8(csrcs) | (extensionWords == nil ? 0 : 0x10), 0, UInt8(sequence >> 8), UInt8(sequence & 255)]
  out += [0, 0, 1, 0] + bigEndian(ssrc) + Array(repeating: 0xc5, count: 4 * csrcs)
  if let extensionWords { out += [0xbe, 0xde, 0, UInt8(extensionWords)] + Array(repeating: 0xe7, count: 4 * extensionWords) }
  return out + payload
}

/// A receiver report without blocks and `more` bytes behind it.
func rtcpPacket(ssrc: UInt32 = 0x1234_5678, more: [UInt8] = Array(0..<24)) -> [UInt8] {
  [0x80, 201] + bigEndian(UInt32(1 + more.count / 4)).suffix(2) + bigEndian(ssrc) + more
}

func bigEndian(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> UInt32(24 - 8 * $0)) } }

/// Tests/Vectors/srtp/srtp-vectors.json: values of RFC 3711 appendix B, RFC 7714 §16-17 and libsrtp's driver (BSD-3-Clause).
struct Vectors {
  private let root: [String: Any]
  init() throws {
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let data = try Data(contentsOf: folder.appendingPathComponent("Vectors/srtp/srtp-vectors.json"))
    root = try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
  }
  /// The bytes at a path of keys; an absent one is a failed test.
  func callAsFunction(_ path: String...) throws -> [UInt8] {
    var node: Any? = root
    for key in path { node = (node as? [String: Any])?[key] }
    guard let text = node as? String, let bytes = hexBytes(text) else { throw CocoaError(.fileReadCorruptFile) }
    return bytes
  }
}
