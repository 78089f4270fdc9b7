import Foundation
import Testing
import TrunklineBytes
import TrunklineSDP

@Suite struct AppNegotiationTests {
  private func gateway(_ opus: OpusLimits = OpusLimits(.narrowband, maxAverageBitrate: 28_000)) -> AppNegotiation {
    var endpoint = SecureEndpoint.sample(1)
    endpoint.opus = opus
    return AppNegotiation(.gateway, endpoint: endpoint, sessionID: 14)
  }
  private func phone() -> AppNegotiation { AppNegotiation(.app, endpoint: .sample(2), sessionID: 16) }

  @Test func `the gateway's offer is what protocol.md requires`() throws {
    var gateway = gateway()
    let hash = Array(repeating: "01", count: 32).joined(separator: ":")
    #expect(
      gateway.makeOffer() == """
        v=0\r
        o=- 7 1 IN IP4 192.0.2.1\r
        s=-\r
        t=0 0\r
        a=group:BUNDLE 0\r
        a=ice-lite\r
        a=msid-semantic: WMS *\r
        m=audio 40000 UDP/TLS/RTP/SAVPF 111 0 8 110 126\r
        c=IN IP4 192.0.2.1\r
        a=candidate:1 1 udp 2130706431 192.0.2.1 40000 typ host\r
        a=candidate:2 1 udp 2130706175 2001:db8::1 40000 typ host\r
        a=end-of-candidates\r
        a=ice-ufrag:uf1x\r
        a=ice-pwd:password+1+0123456789abcdef\r
        a=ice-options:trickle\r
        a=fingerprint:sha-256 \(hash)\r
        a=setup:actpass\r
        a=mid:0\r
        a=sendrecv\r
        a=rtcp-mux\r
        a=rtpmap:111 opus/48000/2\r
        a=fmtp:111 minptime=10;useinbandfec=1;maxplaybackrate=8000;maxaveragebitrate=28000;sprop-maxcapturerate=8000;stereo=0\r
        a=rtpmap:0 PCMU/8000\r
        a=rtpmap:8 PCMA/8000\r
        a=rtpmap:110 telephone-event/48000\r
        a=fmtp:110 0-15\r
        a=rtpmap:126 telephone-event/8000\r
        a=fmtp:126 0-15\r
        a=ptime:20\r
        a=msid:trunkline audio0\r
        a=ssrc:1000 cname:trunkline\r
        a=ssrc:1000 msid:trunkline audio0\r

        """)
  }

  @Test func `incoming: the phone answers the gateway's offer as DTLS client, both see each other`() throws {
    var (gateway, phone) = (gateway(), phone())
    let (sdp, atPhone) = try phone.answer(to: gateway.makeOffer())
    let atGateway = try gateway.apply(answer: sdp)
    check(atGateway: atGateway, atPhone: atPhone)
    #expect(atGateway.candidates == phone.endpoint.candidates.enumerated().map { CandidateAttribute(host: $1, index: $0) })
    #expect(atPhone.opus.maxAverageBitrate == 28_000 && atGateway.opus.maxAverageBitrate == nil)
    #expect(atPhone.opus.maxPlaybackRateHz == 8_000 && atGateway.opus.maxPlaybackRateHz == nil)
    #expect(sdp.contains("a=setup:active\r\n") && !sdp.contains("ice-lite"))
  }

  @Test(arguments: [
    (
      OpusLimits(.narrowband, maxAverageBitrate: 20_000),
      "maxplaybackrate=8000;maxaveragebitrate=20000;sprop-maxcapturerate=8000;"
    ),
    (OpusLimits(.wideband, maxAverageBitrate: 40_000), "maxaveragebitrate=40000;sprop-maxcapturerate=16000;"),
    (OpusLimits(maxPlaybackRateHz: 24_000), "maxplaybackrate=24000;"), (OpusLimits(), ""),
  ])
  func `our offer and our answer state which Opus parameters the app should use, and what ours have`(
    limits: OpusLimits, text: String
  ) throws {
    var offering = gateway(limits)
    let line = "a=fmtp:111 minptime=10;useinbandfec=1;\(text)stereo=0\r\n"
    #expect(offering.makeOffer().contains(line))
    var (answering, phone) = (gateway(limits), phone())
    #expect(try answering.answer(to: phone.makeOffer()).sdp.contains(line))
  }

  @Test func `outgoing: the gateway answers the phone's offer as DTLS server`() throws {
    var (gateway, phone) = (gateway(), phone())
    let (sdp, atGateway) = try gateway.answer(to: phone.makeOffer())
    let atPhone = try phone.apply(answer: sdp)
    check(atGateway: atGateway, atPhone: atPhone)
    #expect(sdp.contains("a=setup:passive\r\n") && sdp.contains("a=ice-lite\r\n") && sdp.contains("a=group:BUNDLE 0\r\n"))
    #expect(sdp.contains("m=audio 40000 UDP/TLS/RTP/SAVPF 111 110 126\r\n"), "one codec, so that nobody switches")
  }

  private func check(atGateway: AppMedia, atPhone: AppMedia) {
    for (media, number) in [(atGateway, UInt8(2)), (atPhone, UInt8(1))] {
      #expect(media.credentials.ufrag == "uf\(number)x" && media.credentials.password.hasPrefix("password+\(number)"))
      #expect(media.fingerprint == SecureEndpoint.sample(number).fingerprint)
      #expect(media.codec == .opus && media.payloadType == 111 && media.telephoneEvent48 == 110 && media.telephoneEvent8 == 126)
      #expect(media.mid == "0" && media.direction == .sendReceive && media.opus.usesInbandFEC)
    }
    #expect(atGateway.setup == .active && atPhone.setup == .passive)
    #expect(!atGateway.isLite && atPhone.isLite)
  }

  @Test func `an app that prefers G.711 gets it, with telephone-event at its clock`() throws {
    var (gateway, phone) = (gateway(), phone())
    phone.endpoint.codecs = [.pcma, .opus]
    let (sdp, media) = try gateway.answer(to: phone.makeOffer())
    #expect(media.codec == .pcma && media.payloadType == 8)
    #expect(sdp.contains("SAVPF 8 126\r\n"))
  }

  @Test func `a restart keeps the description's number and raises its version`() throws {
    var (gateway, phone) = (gateway(), phone())
    _ = try phone.answer(to: gateway.makeOffer())
    gateway.endpoint.ufrag = "next"
    phone.endpoint.ufrag = "other"
    let (sdp, media) = try gateway.answer(to: phone.makeOffer())
    #expect(media.credentials.ufrag == "other")
    let origin = try SessionDescription(parsing: sdp).origin
    #expect(origin.sessionID == 7 && origin.version == 2)
    #expect(try phone.apply(answer: sdp).credentials.ufrag == "next")
  }

  @Test(
    arguments: [
      ("minptime=10;useinbandfec=1;usedtx=1", true, false, nil), ("useinbandfec=0;stereo=1;cbr=1", false, true, nil),
      ("maxaveragebitrate=6000;maxptime=10", false, false, 6_000), ("usedtx=0;maxaveragebitrate=x", false, false, nil),
      ("usedtx=2;maxaveragebitrate=99999999999999999999", false, false, nil), (nil, false, false, nil),
    ] as [(String?, Bool, Bool, Int?)])
  func `an app's Opus parameters are read, and a missing fmtp sets none`(
    _ fmtp: String?, _ dtx: Bool, _ noFEC: Bool, _ bitrate: Int?
  )
    throws
  {
    var (gateway, phone) = (gateway(), phone())
    let ours = "a=fmtp:111 minptime=10;useinbandfec=1;stereo=0\r\n"
    let offer = phone.makeOffer()
    #expect(offer.contains(ours))
    let parts = offer.components(separatedBy: ours)
    let (_, media) = try gateway.answer(to: parts[0] + (fmtp.map { "a=fmtp:111 \($0)\r\n" } ?? "") + parts[1])
    #expect(media.codec == .opus)
    #expect(media.opus.usesDTX == dtx && media.opus.refusesInbandFEC == noFEC && media.opus.maxAverageBitrate == bitrate)
    #expect(media.opus.wantsConstantBitrate == (fmtp?.contains("cbr=1") ?? false))
  }

  @Test func `rates and bitrates of Opus out of range are ignored`() throws {
    for (text, rate) in [
      ("8000", 8_000), ("16000", 16_000), ("48000", 48_000), ("7999", nil), ("48001", nil), ("0", nil), ("-8000", nil),
      ("+8000", nil), ("8000.5", nil), ("wide", nil), ("", nil), ("9223372036854775808", nil), ("18446744073709551616", nil),
    ] as [(String, Int?)] {
      var (gateway, phone) = (gateway(), phone())
      let offer = phone.makeOffer().replacing("stereo=0", with: "stereo=1;maxplaybackrate=\(text)")
      #expect(try gateway.answer(to: offer).media.opus.maxPlaybackRateHz == rate, "\(text)")
    }
    for (text, bitrate) in [("6000", 6_000), ("510000", 510_000), ("5999", nil), ("510001", nil), ("0", nil), ("-1", nil)]
      as [(String, Int?)]
    {
      var (gateway, phone) = (gateway(), phone())
      let offer = phone.makeOffer().replacing("stereo=0", with: "maxaveragebitrate=\(text)")
      #expect(try gateway.answer(to: offer).media.opus.maxAverageBitrate == bitrate, "\(text)")
    }
  }

  @Test func `Opus of one channel is no Opus: the next codec counts`() throws {
    var (gateway, phone) = (gateway(), phone())
    let (sdp, media) = try gateway.answer(to: phone.makeOffer().replacing("opus/48000/2", with: "opus/48000"))
    #expect(media.codec == .pcmu && !sdp.contains("opus"))
  }

  // MARK: what is refused

  /// An app's description with one thing changed.
  private func app(_ kind: String, _ changes: [(String, String)] = []) throws -> String {
    var (gateway, phone) = (gateway(), phone())
    var text = kind == "offer" ? phone.makeOffer() : try phone.answer(to: gateway.makeOffer()).sdp
    for (old, new) in changes {
      #expect(text.contains(old), "\(old) is not in the text to change")
      text = text.replacing(old, with: new)
    }
    return text
  }
  private static let hash = "a=fingerprint:sha-256 " + Array(repeating: "02", count: 32).joined(separator: ":")

  @Test(arguments: [
    ([("UDP/TLS/RTP/SAVPF", "RTP/AVP")], NegotiationError.transportProfile("RTP/AVP")),
    ([("UDP/TLS/RTP/SAVPF", "RTP/AVPF")], .transportProfile("RTP/AVPF")),
    ([(hash, "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:x")], .keysInDescription), ([(hash, "a=x")], .noFingerprint),
    ([("sha-256", "sha-1")], .unusableFingerprint("sha-1")), ([("02:02:02", "02:02")], .unusableFingerprint("sha-256")),
    ([("v=0\r\n", "v=0\r\na=ice-lite\r\n")], .iceLite), ([("a=rtcp-mux\r\n", "")], .noRTCPMultiplexing),
    ([("a=ice-ufrag", "a=x")], .noICECredentials), ([("uf2x", "u:")], .noICECredentials),
    ([("a=ice-pwd", "a=x")], .noICECredentials),
    ([("opus/48000", "speex/48000")], .noCommonCodec), ([("m=audio", "m=video")], .noAudio),
  ])
  func `an app's answer or offer that is not safe, or not usable, is refused`(
    _ changes: [(String, String)], _ expected: NegotiationError
  )
    throws
  {
    var answered = gateway()
    answered.endpoint.codecs = [.opus]
    _ = answered.makeOffer()
    #expect(throws: expected) { try answered.apply(answer: app("answer", changes)) }
    #expect(answered.agreed == nil)
    var offered = gateway()
    offered.endpoint.codecs = [.opus]
    #expect(throws: expected) { try offered.answer(to: app("offer", changes)) }
  }

  @Test(
    arguments: [
      ("offer", "a=setup:actpass\r\n", .active), ("offer", "a=setup:active\r\n", .active), ("offer", "", .active),
      ("offer", "a=setup:passive\r\n", .passive), ("offer", "a=setup:holdconn\r\n", nil), ("offer", "a=setup:nonsense\r\n", nil),
      ("answer", "a=setup:active\r\n", .active), ("answer", "a=setup:passive\r\n", .passive),
      ("answer", "a=setup:actpass\r\n", nil),
      ("answer", "", .passive),
    ] as [(String, String, SetupRole?)])
  func `the app is DTLS client or server as its setup states (RFC 5763 §5), and a setup that is neither is refused`(
    _ kind: String, _ line: String, _ role: SetupRole?
  ) throws {
    let text = try app(kind, [(kind == "offer" ? "a=setup:actpass\r\n" : "a=setup:active\r\n", line)])
    var gateway = gateway()
    _ = gateway.makeOffer()
    if kind == "offer" {
      let answered = try? gateway.answer(to: text)
      #expect(answered?.media.setup == role)
      #expect(answered?.sdp.contains(role == .passive ? "a=setup:active\r\n" : "a=setup:passive\r\n") ?? true)
    } else {
      #expect((try? gateway.apply(answer: text))?.setup == role)
    }
  }

  @Test func `a restart keeps the roles where the choice is ours, and changes them where the app does`() throws {
    for (first, own) in [("active", "passive"), ("passive", "active")] {
      var gateway = gateway()
      _ = gateway.makeOffer()
      let media = try gateway.apply(answer: app("answer", [("a=setup:active\r\n", "a=setup:\(first)\r\n")]))
      let again = try gateway.answer(to: app("offer"))
      #expect(again.media.setup == media.setup && again.sdp.contains("a=setup:\(own)\r\n"))
      let other = try gateway.answer(to: app("offer", [("a=setup:actpass\r\n", "a=setup:\(own)\r\n")]))
      #expect(other.media.setup.rawValue == own && other.sdp.contains("a=setup:\(first)\r\n"))
    }
  }

  @Test func `the phone refuses a gateway that would be the DTLS client`() throws {
    var (gateway, phone) = (gateway(), phone())
    let offer = gateway.makeOffer().replacing("a=setup:actpass", with: "a=setup:active")
    #expect(throws: NegotiationError.setupRole("active")) { try phone.answer(to: offer) }
    let answer = try gateway.answer(to: phone.makeOffer()).sdp.replacing("a=setup:passive", with: "a=setup:active")
    #expect(throws: NegotiationError.setupRole("active")) { try phone.apply(answer: answer) }
  }

  @Test func `an answer before any offer, and a refused audio section, are different errors`() throws {
    var gateway = gateway()
    let answer = try app("answer")
    #expect(throws: NegotiationError.noOffer) { try gateway.apply(answer: answer) }
    _ = gateway.makeOffer()
    #expect(throws: NegotiationError.audioRefused) { try gateway.apply(answer: app("answer", [("m=audio 40000", "m=audio 0")])) }
    let error = #expect(throws: NegotiationError.self) { try gateway.apply(answer: "{}") }
    #expect(error?.sipStatus == 400)
  }

  // MARK: the shapes of other peers

  @Test func `transport attributes count at session level too, those of the section have priority`() throws {
    let moved = [
      "a=ice-ufrag:uf2x\r\n", "a=ice-pwd:password+2+0123456789abcdef\r\n", Self.hash + "\r\n", "a=setup:actpass\r\n",
      "a=rtcp-mux\r\n",
    ]
    let text = try app("offer", moved.map { ($0, "") } + [("s=-\r\n", "s=-\r\n" + moved.joined())])
    var gateway = gateway()
    #expect(try gateway.answer(to: text).media.credentials.ufrag == "uf2x")
    let both = text.replacing("a=mid:0", with: "a=mid:0\r\na=ice-ufrag:mine")
    #expect(try gateway.answer(to: both).media.credentials.ufrag == "mine")
  }

  @Test func `a bundle-only section uses the transport of the section that carries the bundle`() throws {
    let transport =
      "a=ice-ufrag:uf2x\r\na=ice-pwd:password+2+0123456789abcdef\r\na=setup:actpass\r\n\(Self.hash)\r\na=rtcp-mux\r\n"
    let text =
      "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=group:BUNDLE d a\r\n"
      + "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\nc=IN IP4 0.0.0.0\r\n\(transport)a=mid:d\r\n"
      + "m=audio 0 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 0.0.0.0\r\na=bundle-only\r\na=mid:a\r\na=rtpmap:111 opus/48000/2\r\n"
    var gateway = gateway()
    let (sdp, media) = try gateway.answer(to: text)
    #expect(media.credentials.ufrag == "uf2x" && media.mid == "a")
    let answer = try SessionDescription(parsing: sdp)
    #expect(answer.bundle == ["a"] && answer.media.map(\.port) == [0, 40_000])
  }

  @Test func `a refused section repeats the transport, because aiortc accepts no description without it`() throws {
    let video = "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\na=rtcp-mux\r\na=rtpmap:96 VP8/90000\r\n"
    var gateway = gateway()
    let answer = try SessionDescription(parsing: gateway.answer(to: app("offer") + video).sdp)
    let refused = answer.media[1]
    #expect(refused.port == 0 && refused.mid == "1" && refused.formats == ["96"])
    #expect(refused.attributes.value("ice-ufrag") == "uf1x" && refused.attributes.value("setup") == "passive")
    #expect(refused.attributes.has("rtcp-mux") && refused.attributes.has("inactive"))
    #expect(answer.bundle == ["0"])
  }

  @Test func `a hash that we can check is chosen among several, SHA-256 first`() throws {
    let hash512 = "a=fingerprint:sha-512 " + Array(repeating: "AA", count: 64).joined(separator: ":")
    let hash1 = "a=fingerprint:sha-1 " + Array(repeating: "BB", count: 20).joined(separator: ":")
    var gateway = gateway()
    let several = try app("offer", [(Self.hash, "\(hash1)\r\n\(hash512)\r\n\(Self.hash)")])
    #expect(try gateway.answer(to: several).media.fingerprint.algorithm == .sha256)
    let strong = try app("offer", [(Self.hash, "\(hash1)\r\n\(hash512)")])
    #expect(try gateway.answer(to: strong).media.fingerprint.algorithm == .sha512)
  }

  @Test func `an offer without a bundle gets none, and SDES beside a fingerprint is ignored`() throws {
    let text = try app("offer", [("a=group:BUNDLE 0\r\n", ""), ("a=mid:0", "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:x")])
    var gateway = gateway()
    let (sdp, media) = try gateway.answer(to: text)
    #expect(media.mid == nil && !sdp.contains("BUNDLE") && !sdp.contains("crypto") && !sdp.contains("a=mid"))
  }

  @Test func `at most 64 candidates are read`() throws {
    let many = (0..<100).map { "a=candidate:1 1 udp 1 192.0.2.9 \($0 + 1) typ host\r\n" }.joined()
    var gateway = gateway()
    let media = try gateway.answer(to: app("offer", [("a=end-of-candidates\r\n", many)])).media
    #expect(media.candidates.count == 64)
  }
}
