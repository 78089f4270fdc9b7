import TrunklineRTP
public import TrunklineSRTP

/// SRTP of a trunk leg under keys from its descriptions (RFC 4568): each end's own key protects what it sends.
public struct TrunkProtection: Sendable, Equatable {
  public var profile: SRTPProfile
  public var ours: SRTPMasterKey
  public var theirs: SRTPMasterKey
  /// Bytes of the master key identifier in the peer's packets; ours have none.
  public var identifierBytes: Int

  public init(profile: SRTPProfile, ours: SRTPMasterKey, theirs: SRTPMasterKey, identifierBytes: Int = 0) {
    (self.profile, self.ours, self.theirs, self.identifierBytes) = (profile, ours, theirs, identifierBytes)
  }
}

/// The contexts of a protected trunk leg.
///
/// | new description | sender | receiver |
/// |---|---|---|
/// | the same keys | stays | stays |
/// | another key of ours | new, at once | stays |
/// | another key of theirs | stays | new; the previous one is used until the first packet under the new key |
public struct TrunkSecurity: ~Copyable {
  public private(set) var keys: TrunkProtection
  private var sender: SRTPSender
  private var receiver: SRTPReceiver
  private var before: SRTPReceiver?

  /// Fails for keys that do not fit their profile, and where OpenSSL has no memory.
  public init(_ keys: TrunkProtection) throws(SRTPError) {
    let sender = try SRTPSender(keys.profile, keys.ours)
    let receiver = try Self.makeReceiver(keys)
    self.keys = keys
    self.sender = sender
    self.receiver = receiver
  }

  private static func makeReceiver(_ keys: TrunkProtection) throws(SRTPError) -> SRTPReceiver {
    var receiver = try SRTPReceiver(keys.profile, keys.theirs)
    receiver.identifierBytes = keys.identifierBytes
    return receiver
  }

  /// Applies the keys of another description. `sameEnd`: the peer has not moved, so that its packet indices and ours continue
  /// (RFC 3711 §3.3.1); another end starts at zero.
  public mutating func apply(_ next: TrunkProtection, sameEnd: Bool) throws(SRTPError) {
    if next.profile != keys.profile || next.ours != keys.ours {
      var fresh = try SRTPSender(next.profile, next.ours)
      if sameEnd { fresh.followRollover(of: sender) }
      sender = fresh
    }
    if next.profile != keys.profile || next.theirs != keys.theirs || next.identifierBytes != keys.identifierBytes {
      var fresh = try Self.makeReceiver(next)
      if sameEnd { fresh.followRollover(of: receiver) }
      swap(&fresh, &receiver)
      before = consume fresh
    }
    keys = next
  }

  /// How many SSRCs the receiver retired since the last call.
  public mutating func drainRetirements() -> UInt64 { receiver.drainRetirements() }

  /// Protects a packet in place; the buffer needs `SRTPProfile.overheadBytes` after it. `isControl`: RTCP. HOT
  public mutating func protect(_ packet: UnsafeMutableRawBufferPointer, count: inout Int, isControl: Bool) throws(SRTPError) {
    if isControl { try sender.protectRTCP(packet, count: &count) } else { try sender.protect(packet, count: &count) }
  }

  /// Decrypts a packet in place; a refused one stays unchanged. HOT
  public mutating func unprotect(_ packet: UnsafeMutableRawBufferPointer, count: inout Int, isControl: Bool) throws(SRTPError) {
    do throws(SRTPError) {
      if isControl { try receiver.unprotectRTCP(packet, count: &count) } else { try receiver.unprotect(packet, count: &count) }
      before = nil
    } catch {
      guard error == .authenticationFailed, before != nil else { throw error }
      if isControl { try before?.unprotectRTCP(packet, count: &count) } else { try before?.unprotect(packet, count: &count) }
    }
  }
}
