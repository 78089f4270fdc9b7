import TrunklineSRTP

/// The SRTP contexts of one DTLS association, both directions.
private struct LegSecurity: ~Copyable {
  var sender: SRTPSender
  var receiver: SRTPReceiver

  /// Each side protects with the keys of its DTLS role (RFC 5764 §4.2).
  init(_ keys: SRTPKeyMaterial, isClient: Bool, seed: UInt64) throws(SRTPError) {
    let (own, peers) = isClient ? (keys.client, keys.server) : (keys.server, keys.client)
    let sender = try SRTPSender(keys.profile, own)
    let receiver = try SRTPReceiver(keys.profile, peers, seed: seed)
    self.sender = sender
    self.receiver = receiver
  }
}

/// An app leg's keys: those in use, and pending ones of a newer association.
///
/// | state | input | next |
/// |---|---|---|
/// | none | `install` | installed |
/// | installed | `install` | pending beside the installed ones; they replace earlier pending ones |
/// | any | `install` of keys that do not fit | same; an error |
/// | pending | a packet that the pending keys decrypt | these are the installed ones |
/// | pending or installed | a packet that the installed keys decrypt | same |
/// | any | a refused packet, or a replayed one | same; an error, and the bytes are unchanged |
/// | any | `associationReplaced`, before the connect | none |
/// | any | `associationReplaced`, in the call | installed, if they were; pending ones are dropped |
struct LegKeys: ~Copyable {
  // There are pending keys only beside installed ones.
  private var pending: LegSecurity?
  private var security: LegSecurity?
  /// Stored, because each packet asks: `security != nil` through this struct copies the contexts.
  private(set) var isInstalled = false
  private var isPending = false
  /// The SRTP profile of the keys that were given last.
  private(set) var profileName: String?

  init() {}

  mutating func install(_ keys: SRTPKeyMaterial, isClient: Bool, seed: UInt64) throws(SRTPError) {
    let made = try LegSecurity(keys, isClient: isClient, seed: seed)
    if isInstalled {
      pending = consume made
      isPending = true
    } else {
      security = consume made
      isInstalled = true
    }
    profileName = keys.profile.name
  }

  mutating func associationReplaced(inCall: Bool) {
    pending = nil
    isPending = false
    guard !inCall else { return }
    security = nil
    isInstalled = false
  }

  /// Decrypts a packet in place. HOT
  @inline(__always) mutating func unprotect(
    _ packet: UnsafeMutableRawBufferPointer, isControl: Bool, count: inout Int
  ) throws(SRTPError) {
    if isPending, openPending(packet, isControl: isControl, count: &count) { return }
    if isControl {
      try security?.receiver.unprotectRTCP(packet, count: &count)
    } else {
      try security?.receiver.unprotect(packet, count: &count)
    }
  }

  private mutating func openPending(_ packet: UnsafeMutableRawBufferPointer, isControl: Bool, count: inout Int) -> Bool {
    do throws(SRTPError) {
      if isControl {
        try pending?.receiver.unprotectRTCP(packet, count: &count)
      } else {
        try pending?.receiver.unprotect(packet, count: &count)
      }
    } catch { return false }
    security = pending.take()
    isPending = false
    return true
  }

  /// Protects a packet in place. HOT
  @inline(__always) mutating func protect(
    _ packet: UnsafeMutableRawBufferPointer, isControl: Bool, count: inout Int
  ) throws(SRTPError) {
    if isControl {
      try security?.sender.protectRTCP(packet, count: &count)
    } else {
      try security?.sender.protect(packet, count: &count)
    }
  }

  /// How many SSRCs the receiver retired since the last call.
  mutating func drainRetirements() -> UInt64 { security?.receiver.drainRetirements() ?? 0 }
}
