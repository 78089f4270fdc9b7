import Testing
import TrunklineBytes
import TrunklineSDP

@Suite struct AttributeTests {
  private func section(_ formats: [String], _ attributes: [Attribute]) -> MediaDescription {
    MediaDescription(kind: "audio", port: 1, transport: "RTP/AVP", formats: formats, attributes: attributes)
  }

  @Test func `static payload types need no rtpmap, and a rtpmap goes before them`() {
    let plain = section(["0", "8", "9", "18", "13", "96"], [])
    #expect(plain.audioFormats.map(\.encoding) == ["pcmu", "pcma", "g722", "g729", "cn"])
    #expect(plain.audioFormats.map(\.codec) == [.pcmu, .pcma, .g722, nil, nil])
    let renamed = section(["0", "96"], [Attribute("rtpmap", "0 PCMA/8000"), Attribute("rtpmap", "96 pcmu/8000/1")])
    #expect(renamed.audioFormats.map(\.codec) == [.pcma, .pcmu])
  }

  @Test(arguments: [
    "", "96", "96 ", "96 opus", "96 opus/", "96 opus/0/2", "96 opus/48000", "96 opus/48000/1", "96 opus/16000/2",
    "96 opus/48000/2/3", "x opus/48000/2", "300 opus/48000/2", "96 opus/99999999999/2",
  ])
  func `a rtpmap that is not exactly Opus gives no codec`(_ value: String) {
    #expect(section(["96"], [Attribute("rtpmap", value)]).audioFormats.allSatisfy { $0.codec == nil })
  }

  @Test func `formats that repeat, or are no payload type, are left out`() {
    let formats = section(["0", "0", "+8", "128", "255", "999", "8", "webrtc-datachannel"], []).audioFormats
    #expect(formats.map(\.payloadType) == [0, 8])
  }

  @Test func `format parameters are found without regard to case and space`() {
    let format = section(
      ["111"],
      [
        Attribute("rtpmap", "111 OPUS/48000/2"),
        Attribute("fmtp", "111 minptime=10; UseInbandFEC = 1;stereo;=x;maxplaybackrate=8000"),
      ]
    ).audioFormats.first
    #expect(format?.parameter("useinbandfec") == "1" && format?.parameter("maxplaybackrate") == "8000")
    #expect(format?.parameter("stereo") == nil && format?.parameter("") == nil)
  }

  @Test(
    arguments: [
      (nil, nil, 20), ("30", nil, 30), ("20.0", nil, 20), ("5", nil, 20), ("25", nil, 20), ("1000", nil, 20), ("x", nil, 20),
      ("60", "40", 40),
      ("20", "10", 10), ("20", "0", 20), ("99999999999999999999999", nil, 20),
    ] as [(String?, String?, Int)])
  func `packet time is ptime within maxptime in steps of 10 ms`(_ ptime: String?, _ maxptime: String?, _ expected: Int) {
    let attributes = [ptime.map { Attribute("ptime", $0) }, maxptime.map { Attribute("maxptime", $0) }].compactMap { $0 }
    #expect(section(["0"], attributes).packetTimeMilliseconds == expected)
  }

  @Test func `a fingerprint is read in either case and written in upper case`() throws {
    let value = "SHA-256 " + Array(repeating: "ab", count: 32).joined(separator: ":")
    let fingerprint = try #require(FingerprintAttribute(value))
    #expect(fingerprint.bytes == Array(repeating: 0xab, count: 32))
    #expect(fingerprint.text == "sha-256 " + Array(repeating: "AB", count: 32).joined(separator: ":"))
    #expect(FingerprintAttribute(fingerprint.text) == fingerprint)
  }

  @Test func `a fingerprint of another length, hash or form is refused`() {
    func hash(_ name: String, _ count: Int, _ separator: String = ":") -> String {
      name + " " + Array(repeating: "ab", count: count).joined(separator: separator)
    }
    #expect(FingerprintAttribute(hash("sha-384", 48)) != nil && FingerprintAttribute(hash("sha-512", 64)) != nil)
    for value in [
      "", "sha-256", hash("sha-256", 31), hash("sha-256", 33), hash("sha-1", 20), hash("md5", 16), hash("sha-256", 32, ""),
      hash("sha-256", 32, "-"), hash("sha-256", 31) + ":xy", hash("sha-256", 31) + ":a:b",
    ] {
      #expect(FingerprintAttribute(value) == nil, "\(value)")
    }
  }

  @Test func `candidates of browsers are read, names have no address`() throws {
    let relay = try #require(
      CandidateAttribute(
        "candidate:1382836467 1 udp 33562623 51.195.41.188 61790 typ relay raddr 86.127.230.60 rport 51273 generation 0"))
    #expect(
      relay.address == IPAddress(51, 195, 41, 188) && relay.port == 61790 && relay.kind == .relay && relay.priority == 33_562_623)
    let name = try #require(CandidateAttribute("2 1 UDP 2113937151 7da52ae2.local 51273 typ host"))
    #expect(name.address == nil && name.transport == "udp")
    let own = CandidateAttribute(host: SocketAddress(IPAddress(192, 0, 2, 1), 40_000), index: 0)
    #expect(own.text == "1 1 udp 2130706431 192.0.2.1 40000 typ host")
    #expect(CandidateAttribute(own.text) == own)
    for value in [
      "", "candidate:", "1 1 udp 1 1.2.3.4 5 host", "1 1 udp 1 1.2.3.4 70000 typ host", "1 0 udp 1 1.2.3.4 5 typ host",
      "1 1 udp 99999999999 1.2.3.4 5 typ host", "1 1 udp 1 1.2.3.4 5 typ magic",
    ] {
      #expect(CandidateAttribute(value) == nil, "\(value)")
    }
  }

  @Test func `ICE credentials have their lengths and alphabet`() {
    let password = String(repeating: "p", count: 22)
    #expect(ICECredentials(ufrag: "abcd", password: password) != nil)
    #expect(ICECredentials(ufrag: "abc", password: password) == nil)
    #expect(ICECredentials(ufrag: "abcd", password: String(password.dropLast())) == nil)
    #expect(ICECredentials(ufrag: "ab:d", password: password) == nil)
    #expect(ICECredentials(ufrag: String(repeating: "u", count: 257), password: password) == nil)
  }
}
