import CTrunklineOpenSSL

/// Verifies and decrypts the packets that one side of a leg receives: RTP and RTCP, in place (RFC 3711, RFC 7714). Allocates for
/// the fourth SSRC and some later ones, never for a packet of a known one.
///
/// A noncopyable value for one thread, kept like `SRTPSender`. A packet whose tag does not match changes no state (SSRC,
/// roll-over counter, replay window), and a refused packet's bytes stay unchanged, so that other keys can be tried on them.
public struct SRTPReceiver: ~Copyable {
  public let profile: SRTPProfile
  private let rtp: SessionCipher
  private let rtcp: SessionCipher
  var sources: ReceivedSources
  /// Bytes of the master key identifier in each packet (RFC 3711 §3.1), 0…128. Its value is not used: there is one key.
  public var identifierBytes = 0
  /// The roll-over counter of the previous keys: a sender may continue with it, or begin with 0.
  private var rollover: UInt64 = 0
  /// Packets of unknown senders refused since the last accepted one.
  private var refusals: UInt32 = 0

  /// Derives the session keys. Throws `keyLength` or `cryptoFailed`. About 5 µs and a dozen allocations.
  /// - Parameter seed: randomises the slots of SSRCs; from a `RandomSource` if the peer may choose them to do harm.
  public init(_ profile: SRTPProfile, _ master: SRTPMasterKey, seed: UInt64 = 0) throws(SRTPError) {
    let rtpKeys = try SessionKeys(profile, master, .rtp)
    let rtcpKeys = try SessionKeys(profile, master, .rtcp)
    try self.init(profile, rtp: rtpKeys, rtcp: rtcpKeys, seed: seed)
  }

  init(_ profile: SRTPProfile, rtp: SessionKeys, rtcp: SessionKeys, seed: UInt64 = 0) throws(SRTPError) {
    let rtpCipher = try SessionCipher(profile, rtp, encrypts: false)
    let rtcpCipher = try SessionCipher(profile, rtcp, encrypts: false)
    self.profile = profile
    self.rtp = rtpCipher
    self.rtcp = rtcpCipher
    sources = ReceivedSources(seed: seed)
  }

  /// Adopts each sender's roll-over counter: a new master key does not reset it (RFC 3711 §3.3.1).
  public mutating func followRollover(of before: borrowing SRTPReceiver) { rollover = before.sources.lastRollover }

  /// How many sources were retired since the last call; for the metric.
  public mutating func drainRetirements() -> UInt64 { sources.drainRetirements() }

  /// Verifies and decrypts an SRTP packet in place. `count` is the datagram's length before, the RTP packet's after. Returns the
  /// 48-bit packet index (roll-over counter and sequence number). HOT
  @discardableResult
  public mutating func unprotect(_ packet: UnsafeMutableRawBufferPointer, count: inout Int) throws(SRTPError) -> UInt64 {
    let tagBytes = profile.rtpTagBytes
    let inner = count - tagBytes - identifierBytes
    guard let p = PacketShape.bytes(packet, count), let header = PacketShape.headerBytes(p, inner) else { throw .malformed }
    let ssrc = p.loadBigEndian32(8)
    guard let source = sources.find(ssrc) else {
      let index = try unprotectFirst(p, count, header: header, ssrc: ssrc)
      count = inner
      return index
    }
    guard var index = source.pointee.rtp.estimate(p.loadBigEndian16(2)) else { throw .tooOld }
    guard index <= Limits.packetIndex else { throw .keyExhausted }
    if let refusal = source.pointee.rtp.refusal(index) { throw refusal }
    if !open(p, count, header: header, ssrc: ssrc, index: index) {
      // Its reports may have arrived first.
      guard source.pointee.rtp.isEmpty, let other = otherIndex(p, count, header: header, ssrc: ssrc) else {
        throw .authenticationFailed
      }
      index = other
    }
    source.pointee.rtp.record(index)
    sources.use(source)
    count = inner
    return index
  }

  /// Verifies the first packet of an SSRC, or the first since it was retired.
  private mutating func unprotectFirst(_ p: UnsafeMutablePointer<UInt8>, _ count: Int, header: Int, ssrc: UInt32)
    throws(SRTPError) -> UInt64
  {
    guard var source = sources.candidate(ssrc) else { throw .tooManySources }
    guard var index = source.rtp.estimate(p.loadBigEndian16(2)) else { throw .tooOld }
    guard index <= Limits.packetIndex else { throw .keyExhausted }
    if let refusal = source.rtp.refusal(index) { throw refusal }
    if !open(p, count, header: header, ssrc: ssrc, index: index) {
      guard source.rtp.isEmpty, let other = otherIndex(p, count, header: header, ssrc: ssrc) else {
        throw .authenticationFailed
      }
      index = other
    }
    source.rtp.record(index)
    sources.admit(source)
    refusals = 0
    return index
  }

  /// Verifies and decrypts an SRTCP packet in place. `count` is the datagram's length before, the compound packet's after. HOT
  public mutating func unprotectRTCP(_ packet: UnsafeMutableRawBufferPointer, count: inout Int) throws(SRTPError) {
    let (header, tagBytes) = (PacketShape.controlHeaderBytes, profile.rtcpTagBytes)
    let inner = count - tagBytes - 4 - identifierBytes
    guard let p = PacketShape.bytes(packet, count), inner >= header, p[0] >> 6 == 2 else { throw .malformed }
    let word = p.loadBigEndian32(rtcp.isAEAD ? inner + tagBytes : inner)
    guard word & 0x8000_0000 != 0 else { throw .notEncrypted }
    let index = UInt64(word & 0x7fff_ffff)
    let ssrc = p.loadBigEndian32(4)
    let known = sources.find(ssrc)
    guard var source = known?.pointee ?? sources.candidate(ssrc) else { throw .tooManySources }
    if let refusal = source.rtcp.refusal(index) { throw refusal }
    if rtcp.isAEAD {
      guard
        rtcp.open(
          ssrc: ssrc, index: index, header: p, headerCount: header, indexWord: word, text: p + header, count: inner - header,
          tagAt: p + inner)
      else { throw .authenticationFailed }
    } else {
      let tag = rtcp.authenticate(p, inner + 4, rolloverCounter: nil)
      guard CRYPTO_memcmp(tag, p + count - tagBytes, tagBytes) == 0 else { throw .authenticationFailed }
      guard rtcp.applyKeyStream(ssrc: ssrc, index: index, text: p + header, count: inner - header) else { throw .cryptoFailed }
    }
    source.rtcp.record(index)
    if let known {
      known.pointee.rtcp = source.rtcp
      sources.use(known)
    } else {
      sources.admit(source)
    }
    count = inner
  }

  /// Another roll-over count than 0 for an unknown sender's packet: the sender began just below 2^16 and its first packets were
  /// lost, or it continues under new keys. After `Limits.otherIndices` refused packets only one in four, irregularly, is tried:
  /// forged packets should not cost twice.
  private mutating func otherIndex(_ p: UnsafeMutablePointer<UInt8>, _ count: Int, header: Int, ssrc: UInt32) -> UInt64? {
    let low = UInt64(p.loadBigEndian16(2))
    defer { refusals &+= 1 }
    guard refusals < Limits.otherIndices || (refusals &* 0x9e37_79b9) >> 30 == 0 else { return nil }
    if low < Limits.missedBeforeFirst, open(p, count, header: header, ssrc: ssrc, index: 1 << 16 | low) {
      return 1 << 16 | low
    }
    guard rollover > 0 else { return nil }
    for index in [rollover << 16 | low, (rollover + 1) << 16 | low] where open(p, count, header: header, ssrc: ssrc, index: index)
    {
      return index
    }
    return nil
  }

  /// Verifies the tag of an RTP packet under an index and, if it matches, decrypts; otherwise the bytes stay unchanged. HOT
  @inline(__always)
  private func open(_ p: UnsafeMutablePointer<UInt8>, _ count: Int, header: Int, ssrc: UInt32, index: UInt64) -> Bool {
    let inner = count - profile.rtpTagBytes - identifierBytes
    if rtp.isAEAD {
      return rtp.open(
        ssrc: ssrc, index: index, header: p, headerCount: header, text: p + header, count: inner - header, tagAt: p + inner)
    }
    let tag = rtp.authenticate(p, inner, rolloverCounter: UInt32(truncatingIfNeeded: index >> 16))
    return CRYPTO_memcmp(tag, p + count - profile.rtpTagBytes, profile.rtpTagBytes) == 0
      && rtp.applyKeyStream(ssrc: ssrc, index: index, text: p + header, count: inner - header)
  }
}
