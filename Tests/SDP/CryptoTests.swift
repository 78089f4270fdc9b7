import Testing
import TrunklineBytes

@testable import TrunklineSDP

/// SDES-SRTP (RFC 4568) on a trunk: lines, offers, answers, new keys.
@Suite struct CryptoTests {
  private let local = SocketAddress(IPAddress(192, 0, 2, 1), 41_000)
  private static let random: RandomSource = {
    nonisolated(unsafe) var generator = SplitMix64(seed: 4_568)
    return RandomSource { generator.next() }
  }()
  private func leg(_ protection: TrunkNegotiation.Protection) -> TrunkNegotiation {
    TrunkNegotiation(local: local, codecs: [.pcmu, .pcma], sessionID: 14, protection: protection)
  }
  private var optional: TrunkNegotiation { leg(.optional(Self.random)) }
  private var required: TrunkNegotiation { leg(.required(Self.random)) }
  private func body(_ lines: [String], transport: String = "RTP/SAVP") -> String {
    "v=0\r\no=- 1 1 IN IP4 198.51.100.7\r\ns=-\r\nc=IN IP4 198.51.100.7\r\nt=0 0\r\nm=audio 5000 \(transport) 0\r\n"
      + lines.map { "a=crypto:\($0)\r\n" }.joined()
  }
  private let key = "d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj"  // the example of RFC 4568 §6.1
  private var line: String { "1 AES_CM_128_HMAC_SHA1_80 inline:\(key)" }

  @Test func `the line of RFC 4568 gives tag, suite, key and identifier`() throws {
    let crypto = try #require(CryptoAttribute("1 AES_CM_128_HMAC_SHA1_80 inline:\(key)|2^20|1:4"))
    #expect(crypto.tag == 1 && crypto.suite == .aes128CM_HMAC_SHA1_80 && crypto.key.identifierBytes == 4)
    #expect(crypto.key.bytes.exposed.count == 30 && base64Text(crypto.key.bytes.exposed) == key)
    #expect(CryptoAttribute("7 AES_CM_128_HMAC_SHA1_32 inline:\(key)|1:4")?.key.identifierBytes == 4)
    #expect(CryptoAttribute("7 AES_CM_128_HMAC_SHA1_32 inline:\(key)|1048576")?.suite == .aes128CM_HMAC_SHA1_32)
  }

  @Test(arguments: [
    "", "1", "1 AES_CM_128_HMAC_SHA1_80", "x AES_CM_128_HMAC_SHA1_80 inline:KEY", "1 F8_128_HMAC_SHA1_80 inline:KEY",
    "1 AES_CM_128_HMAC_SHA1_80 uri:KEY", "1 AES_CM_128_HMAC_SHA1_80 inline:", "1 AES_CM_128_HMAC_SHA1_80 inline:KEYA",
    "1 AES_CM_128_HMAC_SHA1_80 inline:!!!!", "1 AEAD_AES_128_GCM inline:KEY",
    "1 AES_CM_128_HMAC_SHA1_80 inline:KEY|1:4;inline:KEY|2:4",
    "1 AES_CM_128_HMAC_SHA1_80 inline:KEY|1:0", "1 AES_CM_128_HMAC_SHA1_80 inline:KEY|1:129",
    "1 AES_CM_128_HMAC_SHA1_80 inline:KEY|x",
    "1 AES_CM_128_HMAC_SHA1_80 inline:KEY|1:4|2^20", "1 AES_CM_128_HMAC_SHA1_80 inline:KEY|0",
    "1 AES_CM_128_HMAC_SHA1_80 inline:KEY|||",
    "1 AES_CM_128_HMAC_SHA1_80 inline:KEY KDR=1", "1 AES_CM_128_HMAC_SHA1_80 inline:KEY UNENCRYPTED_SRTP",
    "1 AES_CM_128_HMAC_SHA1_80 inline:KEY UNENCRYPTED_SRTCP", "1 AES_CM_128_HMAC_SHA1_80 inline:KEY UNAUTHENTICATED_SRTP",
    "1 AES_CM_128_HMAC_SHA1_80 inline:KEY FEC_ORDER=FEC_SRTP", "1 AES_CM_128_HMAC_SHA1_80 inline:KEY WSH=63",
    "1 AES_CM_128_HMAC_SHA1_80 inline:KEY SOMETHING", "1234567890 AES_CM_128_HMAC_SHA1_80 inline:KEY",
  ])
  func `a line that changes packets, or that nobody can read, is not used`(_ text: String) {
    #expect(CryptoAttribute(text.replacing("KEY", with: key)) == nil)
  }

  @Test func `hints and what is marked as ignorable stay without effect`() {
    #expect(CryptoAttribute("\(line) WSH=64 -EXTENSION") != nil)
  }

  @Test func `base64 goes both ways in every length, with padding or without`() throws {
    for count in 0...64 {
      let bytes = Self.random.bytes(count)
      let text = base64Text(bytes)
      #expect(base64Bytes(text[...]) == bytes && text.utf8.count % 4 == 0)
      #expect(base64Bytes(text.replacing("=", with: "")[...]) == bytes)
    }
    #expect(base64Bytes("A") == nil && base64Bytes("A===") == nil)
  }

  @Test func `an offer of SAVP is answered with the first line that can be used, under its tag`() throws {
    var leg = optional
    let (sdp, media) = try leg.answer(
      to: body([
        "1 F8_128_HMAC_SHA1_80 inline:\(key)", "2 AES_CM_128_HMAC_SHA1_80 inline:\(key) KDR=5",
        "4 AES_CM_128_HMAC_SHA1_32 inline:\(key)", line,
      ]))
    let protection = try #require(media.protection)
    #expect(protection.suite == .aes128CM_HMAC_SHA1_32 && base64Text(protection.theirs.bytes.exposed) == key)
    #expect(protection.ours != protection.theirs && protection.ours.bytes.exposed.count == 30)
    #expect(sdp.contains("m=audio 41000 RTP/SAVP 0\r\n"))
    #expect(sdp.contains("a=crypto:4 AES_CM_128_HMAC_SHA1_32 inline:\(base64Text(protection.ours.bytes.exposed))\r\n"))
  }

  @Test func `off refuses SAVP, required refuses plain audio, both with 488`() throws {
    var off = leg(.off)
    #expect(throws: NegotiationError.transportProfile("RTP/SAVP")) { try off.answer(to: body([line])) }
    var demanding = required
    #expect(throws: NegotiationError.notProtected) { try demanding.answer(to: body([], transport: "RTP/AVP")) }
    #expect(throws: NegotiationError.noUsableKey) { try demanding.answer(to: body(["\(line) KDR=3"])) }
    #expect(NegotiationError.notProtected.sipStatus == 488 && NegotiationError.noUsableKey.sipStatus == 488)
    // keys beside plain RTP: the peer would accept either
    #expect(try demanding.answer(to: body([line], transport: "RTP/AVP")).media.protection != nil)
    #expect(throws: NegotiationError.transportProfile("UDP/TLS/RTP/SAVP")) {
      try demanding.answer(to: body([line], transport: "UDP/TLS/RTP/SAVP"))
    }
  }

  @Test func `optional takes plain audio, but the protected section where there are both`() throws {
    var leg = optional
    #expect(try leg.answer(to: body([], transport: "RTP/AVP")).media.protection == nil)
    let both = body([], transport: "RTP/AVP") + "m=audio 5002 RTP/SAVP 0\r\na=crypto:\(line)\r\n"
    let (sdp, media) = try leg.answer(to: both)
    #expect(media.protection != nil && media.remote.port == 5_002)
    #expect(sdp.contains("m=audio 0 RTP/AVP 0\r\n") && sdp.contains("m=audio 41000 RTP/SAVP 0\r\n"))
  }

  @Test func `required offers SAVP with a key of its own for each suite`() throws {
    var leg = required
    let offer = leg.makeOffer()
    #expect(offer.contains("RTP/SAVP"))
    let lines = try SessionDescription(parsing: offer).media[0].cryptoAttributes
    #expect(lines.map(\.suite) == [.aeadAES128GCM, .aeadAES256GCM, .aes128CM_HMAC_SHA1_80, .aes128CM_HMAC_SHA1_32])
    #expect(lines.map(\.tag) == [1, 2, 3, 4] && Set(lines.map(\.key)).count == 4)
    let media = try leg.apply(answer: body(["3 AES_CM_128_HMAC_SHA1_80 inline:\(key)"]))
    #expect(media.protection?.ours == lines[2].key && media.protection?.suite == .aes128CM_HMAC_SHA1_80)
    // the next offer, such as a session refresh, equals the first but for the order
    let next = try SessionDescription(parsing: leg.makeOffer()).media[0].cryptoAttributes
    #expect(next.first == lines[2] && Set(next) == Set(lines))
  }

  @Test func `an answer must have one of our lines`() throws {
    for answer in [body(["9 AES_CM_128_HMAC_SHA1_80 inline:\(key)"]), body([line]), body([])] {
      var leg = required
      _ = leg.makeOffer()
      #expect(throws: NegotiationError.noUsableKey) { try leg.apply(answer: answer) }
    }
    var leg = required
    _ = leg.makeOffer()
    #expect(throws: NegotiationError.notProtected) { try leg.apply(answer: body([], transport: "RTP/AVP")) }
  }

  @Test func `optional offers AVP with keys: who ignores them gets plain audio, who takes them SRTP`() throws {
    var (first, second) = (optional, optional)
    let offer = first.makeOffer()
    #expect(offer.contains("m=audio 41000 RTP/AVP 0 8 101\r\n") && offer.contains("a=crypto:1 AEAD_AES_128_GCM inline:"))
    #expect(try first.apply(answer: body([], transport: "RTP/AVP")).protection == nil)
    _ = second.makeOffer()
    #expect(try second.apply(answer: body(["3 AES_CM_128_HMAC_SHA1_80 inline:\(key)"], transport: "RTP/AVP")).protection != nil)
  }

  @Test func `a re-INVITE with the same key keeps ours, one with a new key brings a new one`() throws {
    var leg = required
    let first = try #require(try leg.answer(to: body([line])).media.protection)
    let same = try #require(try leg.answer(to: body([line])).media.protection)
    #expect(same == first)
    let other = base64Text(Array(repeating: 7, count: 30))
    let moved = try #require(try leg.answer(to: body(["1 AES_CM_128_HMAC_SHA1_80 inline:\(other)"])).media.protection)
    #expect(moved.ours != first.ours && moved.theirs != first.theirs)
    // and our next offer uses that key too
    let next = try #require(try SessionDescription(parsing: leg.makeOffer()).media[0].cryptoAttributes.first)
    #expect(next.suite == .aes128CM_HMAC_SHA1_80 && next.key == moved.ours)
  }

  @Test func `keys print as masks`() throws {
    var leg = required
    let media = try leg.answer(to: body([line])).media
    let shown = String(reflecting: media)
    #expect(!shown.contains(key) && shown.contains("‹redacted›"))
  }
}
