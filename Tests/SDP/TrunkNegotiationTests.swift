import Testing
import TrunklineBytes
import TrunklineRTP
import TrunklineSDP

@Suite struct TrunkNegotiationTests {
  private let local = SocketAddress(IPAddress(192, 0, 2, 1), 41_000)
  private func leg(_ codecs: [AudioEncoding] = [.pcmu, .pcma]) -> TrunkNegotiation {
    TrunkNegotiation(local: local, codecs: codecs, sessionID: 14)
  }
  private func body(_ section: String, session: String = "c=IN IP4 198.51.100.7\r\n") -> String {
    "v=0\r\no=- 1 1 IN IP4 198.51.100.7\r\ns=-\r\n\(session)t=0 0\r\n\(section)"
  }
  private let both = "m=audio 5000 RTP/AVP 0 8 101\r\na=rtpmap:101 telephone-event/8000\r\n"

  @Test func `our offer has every codec, telephone-event and 20 ms`() {
    var leg = leg()
    #expect(
      leg.makeOffer() == """
        v=0\r
        o=- 7 1 IN IP4 192.0.2.1\r
        s=-\r
        c=IN IP4 192.0.2.1\r
        t=0 0\r
        m=audio 41000 RTP/AVP 0 8 101\r
        a=rtpmap:0 PCMU/8000\r
        a=rtpmap:8 PCMA/8000\r
        a=rtpmap:101 telephone-event/8000\r
        a=fmtp:101 0-15\r
        a=ptime:20\r
        a=sendrecv\r

        """)
  }

  @Test func `the answer has one codec: the first of ours that the offer has`() throws {
    var first = leg([.pcma, .pcmu])
    let (sdp, media) = try first.answer(to: body(both))
    var expected = TrunkMedia(
      remote: SocketAddress(IPAddress(198, 51, 100, 7), 5_000), codec: .pcma, payloadType: 8, telephoneEventPayloadType: 101)
    expected.telephoneEventClockRateHz = 8_000
    expected.incoming = [
      NumberedFormat(0, .audio(.pcmu)), NumberedFormat(8, .audio(.pcma)),
      NumberedFormat(101, .telephoneEvent(clockRateHz: 8_000)),
    ]
    #expect(media == expected)
    #expect(sdp.contains("m=audio 41000 RTP/AVP 8 101\r\n") && !sdp.contains("PCMU"))
    #expect(first.agreed == media)
  }

  @Test(arguments: ["m=video 0 RTP/AVP\r\n", "m=audio 0 RTP/AVP\r\n"])
  func `a section that is off and has no formats is answered at its index, before and behind the audio`(_ off: String) throws {
    let refused = String(off.dropLast()) + " 0\r\n"  // CRLF is one character
    var before = leg()
    let first = try before.answer(to: body(off + both))
    #expect(first.media.codec == .pcmu)
    #expect(first.sdp.firstRange(of: refused)!.lowerBound < first.sdp.firstRange(of: "m=audio 41000")!.lowerBound)
    var behind = leg()
    let second = try behind.answer(to: body(both + off))
    #expect(second.sdp.firstRange(of: refused)!.lowerBound > second.sdp.firstRange(of: "m=audio 41000")!.lowerBound)
    // In an answer to our offer, too.
    var asked = leg()
    _ = asked.makeOffer()
    #expect(try asked.apply(answer: body(both + off)).codec == .pcmu)
    var refusing = leg()
    _ = refusing.makeOffer()
    #expect(throws: NegotiationError.audioRefused) { try refusing.apply(answer: body("m=audio 0 RTP/AVP\r\n")) }
  }

  @Test func `payload types are the offer's, also dynamic ones`() throws {
    var leg = leg()
    let (sdp, media) = try leg.answer(
      to: body(
        "m=audio 5000 RTP/AVP 98 97 96\r\na=rtpmap:98 telephone-event/16000\r\na=rtpmap:97 telephone-event/8000\r\na=rtpmap:96 PCMA/8000\r\na=ptime:30\r\n"
      ))
    #expect(media.codec == .pcma && media.payloadType == 96 && media.telephoneEventPayloadType == 97)
    #expect(media.packetTimeMilliseconds == 30)
    #expect(sdp.contains("m=audio 41000 RTP/AVP 96 97\r\n") && sdp.contains("a=rtpmap:96 PCMA/8000\r\n"))
  }

  @Test func `L16 is offered under a dynamic payload type, and answered under the offer's`() throws {
    var caller = leg([.l16, .pcmu])
    let offer = caller.makeOffer()
    #expect(offer.contains("RTP/AVP 97 0 101\r\n") && offer.contains("a=rtpmap:97 L16/8000\r\n"))
    var called = leg([.l16])
    let (answer, theirs) = try called.answer(to: offer.replacing("97", with: "118"))
    #expect(theirs.codec == .l16 && theirs.payloadType == 118 && theirs.telephoneEventPayloadType == 101)
    #expect(answer.contains("RTP/AVP 118 101\r\n") && answer.contains("a=rtpmap:118 L16/8000\r\n"))
    let ours = try caller.apply(answer: answer)
    #expect(ours.codec == .l16 && ours.payloadType == 118)
    #expect(caller.makeOffer().contains("RTP/AVP 97 0 101\r\n"), "a number keeps its meaning (RFC 3264 §8.3.2)")
  }

  @Test func `an answer with a codec that has no row is an error, not another codec`() {
    var leg = leg([.opus, .l16, .pcmu])
    _ = leg.makeOffer()
    for map in ["97 L24/8000", "97 L16/16000", "111 silk/48000/2", "111 opus/48000"] {
      let number = map.prefix { $0 != " " }
      #expect(throws: NegotiationError.noCommonCodec, "\(map)") {
        try leg.apply(answer: body("m=audio 5000 RTP/AVP \(number)\r\na=rtpmap:\(map)\r\n"))
      }
    }
  }

  @Test func `what may come in has our numbers and the answer's, ours first`() throws {
    var leg = leg([.opus, .pcmu, .pcma])
    _ = leg.makeOffer()  // 111 0 8, events 101 on 48000 and 102 on 8000
    let media = try leg.apply(
      answer: body(
        "m=audio 5000 RTP/AVP 8 0 96 102\r\na=rtpmap:96 telephone-event/8000\r\na=rtpmap:102 opus/48000/2\r\n"))
    #expect(media.codec == .pcma && media.payloadType == 8)
    #expect(media.telephoneEventPayloadType == 96 && media.telephoneEventClockRateHz == 8_000)
    let event = PayloadFormat.telephoneEvent(clockRateHz: 8_000)
    #expect(
      Set(media.incoming) == [
        NumberedFormat(111, .audio(.opus)), NumberedFormat(0, .audio(.pcmu)), NumberedFormat(8, .audio(.pcma)),
        NumberedFormat(101, .telephoneEvent(clockRateHz: 48_000)), NumberedFormat(102, event), NumberedFormat(96, event),
      ], "102 means what our offer said")
    #expect(media.incoming.count == 6)
    #expect(leg.makeOffer().contains("m=audio 41000 RTP/AVP 8 111 0 102 101\r\n"), "ours keep their numbers")
  }

  @Test func `two forks may answer with different numbers: each is taken by itself`() throws {
    var leg = leg()
    _ = leg.makeOffer()
    var (one, two) = (leg, leg)
    let first = try one.apply(answer: body("m=audio 5000 RTP/AVP 0 96\r\na=rtpmap:96 telephone-event/8000\r\n"))
    let second = try two.apply(answer: body("m=audio 6000 RTP/AVP 8 97\r\na=rtpmap:97 telephone-event/8000\r\n"))
    let last = try leg.apply(answer: body("m=audio 6000 RTP/AVP 8 97\r\na=rtpmap:97 telephone-event/8000\r\n"))
    let event = PayloadFormat.telephoneEvent(clockRateHz: 8_000)
    for (media, number) in [(first, 96), (second, 97), (last, 97)] as [(TrunkMedia, UInt8)] {
      #expect(media.telephoneEventPayloadType == number)
      #expect(media.incoming.filter { $0.format == event }.map(\.payloadType) == [101, number])
    }
  }

  @Test func `an offer of 20 formats is answered with one codec, and each that we have may come`() throws {
    let maps = (96..<112).map { "a=rtpmap:\($0) \($0 % 2 == 0 ? "telephone-event/8000" : "silk/24000")\r\n" }.joined()
    let numbers = (96..<112).map { String($0) }.joined(separator: " ")
    var leg = leg()
    let (sdp, media) = try leg.answer(to: body("m=audio 5000 RTP/AVP 18 9 8 0 \(numbers)\r\n" + maps))
    #expect(sdp.contains("m=audio 41000 RTP/AVP 0 96\r\n"))
    #expect(media.incoming.map(\.payloadType) == [8, 0] + stride(from: 96, to: 112, by: 2).map { UInt8($0) })
  }

  @Test func `telephone-event of another clock is taken where there is none of the codec's, and 8000 is offered beside Opus`()
    throws
  {
    var offering = leg([.opus])
    #expect(offering.makeOffer().contains("m=audio 41000 RTP/AVP 111 101 102\r\n"))
    let section = "m=audio 5000 RTP/AVP 111 126\r\na=rtpmap:111 opus/48000/2\r\na=rtpmap:126 telephone-event/8000\r\n"
    let offered = try offering.apply(answer: body(section))
    #expect(offered.telephoneEventPayloadType == 126 && offered.telephoneEventClockRateHz == 8_000)
    var answering = leg([.opus])
    let (sdp, media) = try answering.answer(to: body(section))
    #expect(media.telephoneEventPayloadType == 126 && media.telephoneEventClockRateHz == 8_000)
    #expect(sdp.contains("RTP/AVP 111 126\r\n") && sdp.contains("a=rtpmap:126 telephone-event/8000\r\n"))
    let both = section.replacing("111 126", with: "111 126 110") + "a=rtpmap:110 telephone-event/48000\r\n"
    #expect(try answering.answer(to: body(both)).media.telephoneEventPayloadType == 110)
  }

  @Test func `an offer or an answer that cannot be used leaves numbers, codecs and keys as they were`() throws {
    var leg = leg()
    let offer = leg.makeOffer()
    let media = try leg.apply(answer: body("m=audio 5000 RTP/AVP 8 0 96\r\na=rtpmap:96 telephone-event/8000\r\n"))
    let again = leg.makeOffer()
    for bad in ["m=audio 5000 RTP/AVP 18\r\n", "m=audio 0 RTP/AVP 0\r\n", "m=video 5000 RTP/AVP 31\r\n"] {
      #expect(throws: NegotiationError.self) { try leg.answer(to: body(bad)) }
      _ = leg.makeOffer()
      #expect(throws: NegotiationError.self) { try leg.apply(answer: body(bad)) }
    }
    #expect(leg.agreed == media && leg.makeOffer() == again && again != offer)
  }

  @Test func `without telephone-event in the offer there is none in the answer`() throws {
    var leg = leg()
    let (sdp, media) = try leg.answer(to: body("m=audio 5000 RTP/AVP 0\r\n"))
    #expect(media.telephoneEventPayloadType == nil && !sdp.contains("telephone-event"))
  }

  @Test(arguments: [
    ("sendrecv", "sendrecv"), ("sendonly", "recvonly"), ("recvonly", "sendonly"), ("inactive", "inactive"),
  ])
  func `the direction is mirrored`(_ theirs: String, _ ours: String) throws {
    for text in [body(both + "a=\(theirs)\r\n"), body(both, session: "c=IN IP4 198.51.100.7\r\na=\(theirs)\r\n")] {
      var leg = leg()
      let (sdp, media) = try leg.answer(to: text)
      #expect(media.direction.rawValue == ours)
      #expect(sdp.contains("a=\(ours)\r\n"))
    }
  }

  @Test func `an unspecified address is hold: nothing is sent`() throws {
    var leg = leg()
    let (sdp, media) = try leg.answer(to: body(both, session: "c=IN IP4 0.0.0.0\r\n"))
    #expect(media.direction == .receiveOnly && sdp.contains("a=recvonly"))
    let back = try leg.answer(to: body(both)).media
    #expect(back.direction == .sendReceive)
  }

  @Test func `a leg that we hold stays held through the peer's offer`() throws {
    var leg = leg()
    #expect(try leg.answer(to: body(both), direction: .sendOnly).media.direction == .sendOnly)
    #expect(try leg.answer(to: body(both + "a=sendonly\r\n"), direction: .sendOnly).media.direction == .inactive)
  }

  @Test func `other sections are refused at their index, and stay there in our next offer`() throws {
    var leg = leg()
    let offer = body(
      "m=video 6000 RTP/AVP 31 34\r\na=mid:v\r\n" + both + "a=mid:a\r\nm=audio 7000 RTP/AVP 0\r\nm=image 8000 udptl t38\r\n")
    let answer = try SessionDescription(parsing: leg.answer(to: offer).sdp)
    #expect(answer.media.map(\.kind) == ["video", "audio", "audio", "image"])
    #expect(answer.media.map(\.port) == [0, 41_000, 0, 0])
    #expect(answer.media.map(\.transport) == ["RTP/AVP", "RTP/AVP", "RTP/AVP", "udptl"])
    #expect(answer.media.map(\.mid) == ["v", "a", nil, nil])
    let next = try SessionDescription(parsing: leg.makeOffer(direction: .sendOnly))
    #expect(next.media.map(\.port) == [0, 41_000, 0, 0])
    #expect(next.direction(of: next.media[1]) == .sendOnly)
  }

  @Test func `a secure section beside a plain one is passed over`() throws {
    var leg = leg()
    let (sdp, media) = try leg.answer(
      to: body("m=audio 6000 RTP/SAVP 0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:x\r\n" + both))
    #expect(media.remote.port == 5_000)
    #expect(sdp.contains("m=audio 0 RTP/SAVP 0\r\n") && !sdp.contains("crypto"))
  }

  @Test(arguments: [
    ("m=audio 5000 RTP/AVP 18 9\r\n", NegotiationError.noCommonCodec),
    ("m=audio 5000 RTP/AVP 96\r\na=rtpmap:96 PCMU/16000\r\n", .noCommonCodec),
    ("m=audio 5000 RTP/AVP 96 97\r\na=rtpmap:96 EVS/16000\r\na=rtpmap:97 L16/44100/2\r\n", .noCommonCodec),
    ("m=audio 5000 RTP/SAVP 0\r\n", .transportProfile("RTP/SAVP")), ("m=audio 0 RTP/AVP 0\r\n", .noAudio),
    ("m=video 5000 RTP/AVP 31\r\n", .noAudio), ("", .noAudio),
    ("m=audio 5000 RTP/AVP 0\r\nc=IN IP4 media.example.com\r\n", .unusableAddress("media.example.com")),
    ("m=audio 5000 RTP/AVP 0\r\nc=IN IP4 224.2.1.1/127\r\n", .unusableAddress("224.2.1.1")),
    ("m=audio 5000 RTP/AVP 0\r\nc=IN IP6 2001:db8::1\r\n", .unusableAddress("2001:db8::1")),
  ])
  func `what cannot be bridged is refused with 488 and leaves the leg as it was`(_ section: String, _ expected: NegotiationError)
    throws
  {
    var leg = leg()
    #expect(throws: expected) { try leg.answer(to: body(section)) }
    #expect(expected.sipStatus == 488)
    #expect(leg.agreed == nil)
    #expect(try leg.answer(to: body(both)).sdp.contains("o=- 7 1 "))
  }

  @Test func `what is not SDP is refused with 400, no address with 488`() {
    var leg = leg()
    let error = #expect(throws: NegotiationError.self) { try leg.answer(to: "hello") }
    #expect(error?.sipStatus == 400)
    #expect(throws: NegotiationError.unusableAddress("(no c= line)")) { try leg.answer(to: body(both, session: "")) }
  }

  @Test func `the peer's answer settles the first codec it lists that we offered`() throws {
    var leg = leg()
    #expect(throws: NegotiationError.noOffer) { try leg.apply(answer: body(both)) }
    _ = leg.makeOffer()
    let media = try leg.apply(answer: body("m=audio 5000 RTP/AVP 18 8 0 100\r\na=rtpmap:100 telephone-event/8000\r\n"))
    #expect(media.codec == .pcma && media.payloadType == 8 && media.telephoneEventPayloadType == 100)
    #expect(throws: NegotiationError.noOffer, "an offer has one answer") { try leg.apply(answer: body(both)) }
  }

  @Test func `an answer that refuses, or has no codec of ours, can be followed by a good one`() throws {
    var leg = leg([.pcma])
    _ = leg.makeOffer()
    #expect(throws: NegotiationError.audioRefused) { try leg.apply(answer: body("m=audio 0 RTP/AVP 0\r\n")) }
    #expect(throws: NegotiationError.noCommonCodec) { try leg.apply(answer: body("m=audio 5000 RTP/AVP 0\r\n")) }
    #expect(throws: NegotiationError.transportProfile("RTP/SAVP")) { try leg.apply(answer: body("m=audio 5000 RTP/SAVP 8\r\n")) }
    #expect(throws: NegotiationError.noAudio) { try leg.apply(answer: body("m=video 5000 RTP/AVP 8\r\n")) }
    #expect(try leg.apply(answer: body("m=audio 5000 RTP/AVP 8\r\n")).codec == .pcma)
  }

  @Test func `holding offers the settled codec first under its payload type, and our hold limits the answer`() throws {
    var leg = leg()
    _ = try leg.answer(to: body("m=audio 5000 RTP/AVP 96 97\r\na=rtpmap:96 PCMA/8000\r\na=rtpmap:97 telephone-event/8000\r\n"))
    let offer = try SessionDescription(parsing: leg.makeOffer(direction: .sendOnly))
    #expect(offer.media[0].formats == ["96", "0", "97"])
    #expect(offer.origin.version == 2)
    let media = try leg.apply(answer: body("m=audio 5000 RTP/AVP 96 97\r\na=rtpmap:96 PCMA/8000\r\n"))
    #expect(media.direction == .sendOnly, "the peer answered sendrecv to sendonly")
  }

  @Test func `the version grows when the text changes, and only then`() throws {
    var leg = leg()
    func version(_ sdp: String) throws -> UInt64 { try SessionDescription(parsing: sdp).origin.version }
    #expect(try version(leg.makeOffer()) == 1)
    #expect(try version(leg.makeOffer()) == 1)
    #expect(try version(leg.makeOffer(direction: .inactive)) == 2)
    leg.local = SocketAddress(IPAddress(192, 0, 2, 1), 41_002)
    #expect(try version(leg.makeOffer(direction: .inactive)) == 3)
  }

  @Test func `two legs of ours agree, on IPv6 too`() throws {
    for ip in [IPAddress(192, 0, 2, 1), try #require(IPAddress("2001:db8::5"))] {
      var a = TrunkNegotiation(local: SocketAddress(ip, 1_000), codecs: [.pcma, .pcmu], sessionID: 1)
      var b = TrunkNegotiation(local: SocketAddress(ip, 2_000), codecs: [.pcmu], sessionID: 2)
      let (answer, atB) = try b.answer(to: a.makeOffer())
      let atA = try a.apply(answer: answer)
      #expect(atA.codec == .pcmu && atB.codec == .pcmu)
      #expect(atA.remote == b.local && atB.remote == a.local)
      #expect(atA.telephoneEventPayloadType == 101 && atB.telephoneEventPayloadType == 101)
    }
  }

  @Test func `comfort noise is taken when the peer has it, and offered again only to it`() throws {
    var leg = leg()
    #expect(!leg.makeOffer().contains("CN/8000"))
    let (sdp, media) = try leg.answer(to: body("m=audio 5000 RTP/AVP 0 13 101\r\na=rtpmap:101 telephone-event/8000\r\n"))
    #expect(media.comfortNoisePayloadType == 13)
    #expect(sdp.contains("m=audio 41000 RTP/AVP 0 13 101\r\n") && sdp.contains("a=rtpmap:13 CN/8000\r\n"))
    #expect(leg.makeOffer().contains("m=audio 41000 RTP/AVP 0 8 13 101\r\n"))
    var other = self.leg()
    #expect(try other.answer(to: body(both)).media.comfortNoisePayloadType == nil)
    let wide = try other.answer(to: body("m=audio 5000 RTP/AVP 0 96\r\na=rtpmap:96 CN/16000\r\n"))
    #expect(wide.media.comfortNoisePayloadType == nil, "noise of another clock is of no use")
  }

  @Test(arguments: [
    ("a=rtcp:5013\r\n", SocketAddress("198.51.100.7:5013")),
    ("a=rtcp:5013 IN IP4 198.51.100.8\r\n", SocketAddress("198.51.100.8:5013")),
    ("a=rtcp:0\r\n", nil), ("a=rtcp:5013 IN IP6 ::1\r\n", nil), ("a=rtcp:x\r\n", nil), ("a=rtcp:5013 IN IP4 224.0.0.1\r\n", nil),
    ("", nil),
  ])
  func `the peer may name another address for reports`(line: String, expected: SocketAddress?) throws {
    var leg = leg()
    #expect(try leg.answer(to: body("m=audio 5000 RTP/AVP 0\r\n" + line)).media.control == expected)
  }

  @Test func `the peer may ask for VoIP metrics, in the section or for all`() throws {
    var leg = leg()
    #expect(try leg.answer(to: body("m=audio 5000 RTP/AVP 0\r\na=rtcp-xr:pkt-loss-rle voip-metrics\r\n")).media.wantsVoIPMetrics)
    #expect(try leg.answer(to: body("a=rtcp-xr:voip-metrics\r\nm=audio 5000 RTP/AVP 0\r\n")).media.wantsVoIPMetrics)
    #expect(try !leg.answer(to: body("m=audio 5000 RTP/AVP 0\r\na=rtcp-xr:rcvr-rtt=all\r\n")).media.wantsVoIPMetrics)
  }

  @Test func `Opus and G722 are offered in the trunk's order, with telephone-event on each clock`() throws {
    var leg = leg([.opus, .g722, .pcmu])
    let offer = leg.makeOffer()
    #expect(offer.contains("m=audio 41000 RTP/AVP 111 9 0 101 102\r\n"))
    for line in [
      "rtpmap:111 opus/48000/2", "rtpmap:9 G722/8000", "rtpmap:101 telephone-event/48000", "rtpmap:102 telephone-event/8000",
    ] {
      #expect(offer.contains("a=\(line)\r\n"), "\(line)")
    }
    #expect(offer.contains("a=fmtp:111 minptime=10;useinbandfec=1;stereo=0\r\n"))
    let media = try leg.apply(answer: body("m=audio 5000 RTP/AVP 9 102\r\na=rtpmap:102 telephone-event/8000\r\n"))
    #expect(media.codec == .g722 && media.payloadType == 9 && media.telephoneEventPayloadType == 102)
    #expect(leg.makeOffer().contains("m=audio 41000 RTP/AVP 9 111 0 102 101\r\n"))
  }

  @Test func `an offer of Opus is answered under its number`() throws {
    var leg = leg([.opus, .pcmu])
    let (sdp, media) = try leg.answer(
      to: body("m=audio 5000 RTP/AVP 0 107 97\r\na=rtpmap:107 opus/48000/2\r\na=rtpmap:97 telephone-event/48000\r\n"))
    #expect(media.codec == .opus && media.payloadType == 107 && media.telephoneEventPayloadType == 97)
    #expect(sdp.contains("m=audio 41000 RTP/AVP 107 97\r\n") && sdp.contains("a=rtpmap:97 telephone-event/48000\r\n"))
  }

  @Test func `a trunk's wishes for Opus are read from its offer and its answer, and are none of other codecs`() throws {
    let section = "m=audio 5000 RTP/AVP 107 0\r\na=rtpmap:107 opus/48000/2\r\n"
    let wishes = "a=fmtp:107 stereo=1;usedtx=1;useinbandfec=0;cbr=1;maxplaybackrate=16000;maxaveragebitrate=24000\r\n"
    var (answering, offering) = (leg([.opus, .pcmu]), leg([.opus, .pcmu]))
    let (sdp, media) = try answering.answer(to: body(section + wishes))
    #expect(sdp.contains("a=fmtp:107 minptime=10;useinbandfec=1;stereo=0\r\n"), "whatever is asked for, ours is mono")
    _ = offering.makeOffer()
    for opus in [media.opus, try offering.apply(answer: body(section + wishes)).opus] {
      #expect(opus.usesDTX && opus.refusesInbandFEC && opus.wantsConstantBitrate)
      #expect(opus.maxPlaybackRateHz == 16_000 && opus.maxAverageBitrate == 24_000)
    }
    for nonsense in ["", "a=fmtp:107 maxplaybackrate=0;maxaveragebitrate=-5;usedtx=yes;cbr\r\n", "a=fmtp:107 ;;==;\r\n"] {
      var leg = leg([.opus])
      #expect(try leg.answer(to: body(section + nonsense)).media.opus == OpusParameters(), "\(nonsense)")
    }
    var telephone = leg([.pcmu])
    #expect(try telephone.answer(to: body(section + wishes)).media.opus == OpusParameters())
  }

  @Test func `G722 under its static type has the clock 8000, whatever is claimed; a dynamic type of 16000 is no codec`() throws {
    var leg = leg([.g722, .pcmu])
    let (sdp, media) = try leg.answer(to: body("m=audio 5000 RTP/AVP 9 0 101\r\na=rtpmap:9 G722/16000\r\n" + event))
    #expect(media.codec == .g722 && media.payloadType == 9 && media.telephoneEventPayloadType == 101)
    #expect(sdp.contains("a=rtpmap:9 G722/8000\r\n"))
    var dynamic = self.leg([.g722, .pcmu])
    #expect(try dynamic.answer(to: body("m=audio 5000 RTP/AVP 98 0\r\na=rtpmap:98 G722/16000\r\n")).media.codec == .pcmu)
    #expect(try dynamic.answer(to: body("m=audio 5000 RTP/AVP 98 0\r\na=rtpmap:98 g722/8000\r\n")).media.codec == .g722)
    var other = self.leg([.g722, .pcmu])
    #expect(try other.answer(to: body("m=audio 5000 RTP/AVP 9 0\r\na=rtpmap:9 speex/16000\r\n")).media.codec == .pcmu)
  }
  private let event = "a=rtpmap:101 telephone-event/8000\r\n"

  @Test func `Opus of one channel is no Opus: the next codec counts`() throws {
    var leg = leg([.opus, .pcmu])
    #expect(try leg.answer(to: body("m=audio 5000 RTP/AVP 107 0\r\na=rtpmap:107 opus/48000\r\n")).media.codec == .pcmu)
    #expect(throws: NegotiationError.noCommonCodec) {
      try leg.answer(to: body("m=audio 5000 RTP/AVP 107\r\na=rtpmap:107 opus/48000/1\r\n"))
    }
  }
}
