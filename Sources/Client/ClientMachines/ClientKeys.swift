import TrunklineSRTP

/// A call's SRTP keys: our packets are protected with the DTLS client's, received ones with the server's (RFC 5764 §4.2).
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | none | `install` | installed | true |
/// | none | `install` of keys that do not fit | installed without contexts: no packet passes | an error, once |
/// | installed | `install` | same: they stay for the call | false |
/// | none | `unprotect`, `protect` | same; a received RTP packet counts as refused | false |
/// | installed | `unprotect` of an authentic packet | same | true |
/// | installed | `unprotect` of another packet, or of a replayed one | same; counted as refused | false |
struct ClientKeys: ~Copyable {
  private(set) var profile: SRTPProfile?
  private(set) var refusedPackets: UInt64 = 0
  private var sender: SRTPSender?
  private var receiver: SRTPReceiver?

  init() {}

  @inline(__always) var isInstalled: Bool { profile != nil }

  mutating func install(_ material: SRTPKeyMaterial) throws(SRTPError) -> Bool {
    guard profile == nil else { return false }
    profile = material.profile
    sender = try SRTPSender(material.profile, material.client)
    receiver = try SRTPReceiver(material.profile, material.server)
    return true
  }

  /// Decrypts a packet in place. HOT
  mutating func unprotect(_ packet: UnsafeMutableRawBufferPointer, count: inout Int) -> Bool {
    do throws(SRTPError) {
      if try receiver?.unprotect(packet, count: &count) != nil, count <= packet.count { return true }
    } catch {}
    refusedPackets += 1
    return false
  }

  mutating func unprotectRTCP(_ packet: UnsafeMutableRawBufferPointer, count: inout Int) -> Bool {
    guard receiver != nil else { return false }
    do throws(SRTPError) {
      try receiver?.unprotectRTCP(packet, count: &count)
      if count <= packet.count { return true }
    } catch {}
    refusedPackets += 1
    return false
  }

  /// Protects a packet in place. HOT
  mutating func protect(_ packet: UnsafeMutableRawBufferPointer, count: inout Int) -> Bool {
    do throws(SRTPError) { return try sender?.protect(packet, count: &count) != nil } catch { return false }
  }

  mutating func protectRTCP(_ packet: UnsafeMutableRawBufferPointer, count: inout Int) -> Bool {
    do throws(SRTPError) { return try sender?.protectRTCP(packet, count: &count) != nil } catch { return false }
  }
}
