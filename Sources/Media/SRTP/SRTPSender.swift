import CTrunklineOpenSSL

/// Protects the packets that one side of a leg sends: RTP and RTCP, in place, without allocation (RFC 3711, RFC 7714).
///
/// A noncopyable value for one thread; keep it in an optional stored property or behind an `UnsafeMutablePointer`. Tracks the
/// roll-over counter of up to four SSRCs and refuses to use an index twice, since a repeated nonce breaks GCM.
public struct SRTPSender: ~Copyable {
  public let profile: SRTPProfile
  private let rtp: SessionCipher
  private let rtcp: SessionCipher
  var sources = SSRCTable<Source>(limit: Limits.sourcesSent)
  var nextControlIndex: UInt64 = 0

  /// Derives the session keys. Throws `keyLength` or `cryptoFailed`. About 5 µs and a dozen allocations.
  public init(_ profile: SRTPProfile, _ master: SRTPMasterKey) throws(SRTPError) {
    let rtpKeys = try SessionKeys(profile, master, .rtp)
    let rtcpKeys = try SessionKeys(profile, master, .rtcp)
    try self.init(profile, rtp: rtpKeys, rtcp: rtcpKeys)
  }

  init(_ profile: SRTPProfile, rtp: SessionKeys, rtcp: SessionKeys) throws(SRTPError) {
    let rtpCipher = try SessionCipher(profile, rtp, encrypts: true)
    let rtcpCipher = try SessionCipher(profile, rtcp, encrypts: true)
    self.profile = profile
    self.rtp = rtpCipher
    self.rtcp = rtcpCipher
  }

  /// Continues the packet indices of the previous keys: a new master key does not reset them (RFC 3711 §3.3.1).
  public mutating func followRollover(of before: borrowing SRTPSender) {
    var former: [Source] = []
    before.sources.forEach { former.append($0) }
    for var source in former {
      source.rtcp = IndexWindow()
      _ = sources.insert(source)
    }
  }

  /// Encrypts an RTP packet in place and appends the tag. `count` is the packet's length before and after; the buffer needs
  /// `profile.overheadBytes` more. On an error the packet must not be sent. HOT
  public mutating func protect(_ packet: UnsafeMutableRawBufferPointer, count: inout Int) throws(SRTPError) {
    guard let p = PacketShape.bytes(packet, count), let header = PacketShape.headerBytes(p, count) else { throw .malformed }
    let tagBytes = profile.rtpTagBytes
    guard packet.count - count >= tagBytes else { throw .noRoom }
    let ssrc = p.loadBigEndian32(8)
    guard let source = sources.find(ssrc) ?? add(ssrc) else { throw .tooManySources }
    guard let index = source.pointee.rtp.estimate(p.loadBigEndian16(2)) else { throw .tooOld }
    if let refusal = source.pointee.rtp.refusal(index) { throw refusal }
    guard index <= Limits.packetIndex else { throw .keyExhausted }
    source.pointee.rtp.record(index)
    if rtp.isAEAD {
      guard
        rtp.seal(
          ssrc: ssrc, index: index, header: p, headerCount: header, text: p + header, count: count - header, tagAt: p + count)
      else { throw .cryptoFailed }
    } else {
      guard rtp.applyKeyStream(ssrc: ssrc, index: index, text: p + header, count: count - header) else { throw .cryptoFailed }
      let tag = rtp.authenticate(p, count, rolloverCounter: UInt32(truncatingIfNeeded: index >> 16))
      (p + count).update(from: tag, count: tagBytes)
    }
    count += tagBytes
  }

  private mutating func add(_ ssrc: UInt32) -> UnsafeMutablePointer<Source>? {
    var source = Source()
    source.ssrc = ssrc
    source.usedAt = 1
    return sources.insert(source)
  }

  /// Encrypts a (compound) RTCP packet in place and appends index word and tag: 4 octets and the tag more. HOT
  public mutating func protectRTCP(_ packet: UnsafeMutableRawBufferPointer, count: inout Int) throws(SRTPError) {
    let header = PacketShape.controlHeaderBytes
    guard let p = PacketShape.bytes(packet, count), count >= header, p[0] >> 6 == 2 else { throw .malformed }
    let tagBytes = profile.rtcpTagBytes
    guard packet.count - count >= tagBytes + 4 else { throw .noRoom }
    let index = nextControlIndex
    guard index <= Limits.controlIndex else { throw .keyExhausted }
    nextControlIndex += 1
    let ssrc = p.loadBigEndian32(4)
    let word = UInt32(truncatingIfNeeded: index) | 0x8000_0000  // E bit: encrypted
    if rtcp.isAEAD {
      guard
        rtcp.seal(
          ssrc: ssrc, index: index, header: p, headerCount: header, indexWord: word, text: p + header, count: count - header,
          tagAt: p + count)
      else { throw .cryptoFailed }
      (p + count + tagBytes).storeBigEndian(word)
    } else {
      guard rtcp.applyKeyStream(ssrc: ssrc, index: index, text: p + header, count: count - header) else { throw .cryptoFailed }
      (p + count).storeBigEndian(word)
      let tag = rtcp.authenticate(p, count + 4, rolloverCounter: nil)
      (p + count + 4).update(from: tag, count: tagBytes)
    }
    count += tagBytes + 4
  }
}
