import Foundation
import Testing
import TrunklineBytes
import TrunklineSDP

@Suite struct ParsingTests {
  static let minimal = "v=0\r\no=- 1 2 IN IP4 192.0.2.1\r\ns=-\r\nt=0 0\r\n"

  @Test func `lines may end in CRLF or LF, and sections keep their own lines`() throws {
    let text =
      Self.minimal
      + "c=IN IP4 192.0.2.1\r\na=sendonly\r\nm=audio 4000 RTP/AVP 0\r\nc=IN IP6 2001:db8::1\r\na=ptime:30\r\na=recvonly\r\n"
      + "m=video 0 RTP/AVP 31\r\n"
    let description = try SessionDescription(parsing: text)
    #expect(try SessionDescription(parsing: text.replacing("\r\n", with: "\n")) == description)
    #expect(description.origin == .init(sessionID: 1, version: 2, address: "192.0.2.1"))
    #expect(description.media.map(\.kind) == ["audio", "video"])
    #expect(description.connection(of: description.media[0])?.address == IPAddress("2001:db8::1"))
    #expect(description.connection(of: description.media[1])?.address == IPAddress(192, 0, 2, 1))
    #expect(description.direction(of: description.media[0]) == .receiveOnly)
    #expect(description.direction(of: description.media[1]) == .sendOnly)
    #expect(description.media[1].isOff && !description.media[0].isOff)
  }

  @Test func `lines that a gateway has no use for are dropped, attributes are all kept`() throws {
    let text =
      Self.minimal
      + "i=x\r\nb=AS:64\r\nk=prompt\r\nz=1 2\r\nm=audio 4000/2 RTP/AVP 0 8\r\nb=TIAS:1\r\na=x-unknown: :y\r\na=flag\r\n"
    let description = try SessionDescription(parsing: text)
    #expect(description.media[0].attributes == [Attribute("x-unknown", " :y"), Attribute("flag")])
    #expect(description.media[0].port == 4000)
  }

  @Test(arguments: [
    ("", 0), ("\r\n\r\n", 0), ("hello", 1), ("o=- 1 1 IN IP4 1.2.3.4\r\n", 1), ("v=1\r\n", 1), ("v=0\r\nxyz\r\n", 2),
    ("v=0\r\n=\r\n", 2),
    ("v=0\r\nm=audio\r\n", 2), ("v=0\r\nm=audio 70000 RTP/AVP 0\r\n", 2), ("v=0\r\nm=audio -1 RTP/AVP 0\r\n", 2),
    ("v=0\r\nm=audio 1 RTP/AVP\r\n", 2), ("v=0\r\nc=IN IP4\r\n", 2), ("v=0\r\nc=IN IP4 ::1\r\n", 2),
    ("v=0\r\nc=XX IP4 1.2.3.4\r\n", 2),
    ("v=0\r\ns=a\0b\r\n", 2), ("v=0\r\ns=a\rb\r\n", 2),
  ])
  func `what is not a description is refused with its line`(_ text: String, _ line: Int) {
    let error = #expect(throws: DescriptionError.self) { try SessionDescription(parsing: text) }
    #expect(error?.line == line)
  }

  @Test(arguments: ["m=video 0 RTP/AVP\r\n", "m=audio 0 RTP/AVP \r\n", "m=image 0 udptl\r\n"])
  func `a section that is off may come without formats, and is written as it came`(_ section: String) throws {
    let description = try SessionDescription(parsing: Self.minimal + "m=audio 4000 RTP/AVP 0\r\n" + section)
    #expect(description.media.count == 2 && description.media[1].isOff && description.media[1].formats.isEmpty)
    #expect(try SessionDescription(parsing: description.text) == description)
    #expect(!description.text.contains(" \r\n"))
  }

  @Test func `every limit holds at its value and breaks beyond it`() throws {
    func parses(_ text: String) -> Bool { (try? SessionDescription(parsing: text)) != nil }
    let start = Self.minimal
    #expect(parses(start + String(repeating: "m=audio 1 RTP/AVP 0\r\n", count: 16)))
    #expect(!parses(start + String(repeating: "m=audio 1 RTP/AVP 0\r\n", count: 17)))
    #expect(parses(start + String(repeating: "a=x\r\n", count: 400)))
    #expect(!parses(start + String(repeating: "a=x\r\n", count: 401)))
    #expect(parses(start + String(repeating: "b=x\r\n", count: 995)))
    #expect(!parses(start + String(repeating: "b=x\r\n", count: 997)))
    #expect(parses(start + "a=" + String(repeating: "x", count: 4_094)))
    #expect(!parses(start + "a=" + String(repeating: "x", count: 4_095)))
    #expect(parses(start + "m=audio 1 RTP/AVP" + String(repeating: " 0", count: 128)))
    #expect(!parses(start + "m=audio 1 RTP/AVP" + String(repeating: " 0", count: 129)))
    let line = "i=" + String(repeating: "x", count: 1_020) + "\r\n"
    #expect(parses(start + String(repeating: line, count: 31)))
    #expect(!parses(start + String(repeating: line, count: 32)))
  }

  @Test func `no value can add a line when it is written`() throws {
    let description = SessionDescription(
      origin: .init(username: "a\r\na=evil", sessionID: 1, version: 1, address: "1.2.3.4"), name: "x\nm=audio 1 RTP/AVP 0",
      attributes: [Attribute("y\r\n", "z\0\r\nc=IN IP4 9.9.9.9")])
    #expect(description.text.split(separator: "\r\n").count == 5)
    let read = try SessionDescription(parsing: description.text)
    #expect(read.media.isEmpty && read.connection == nil && read.attributes.count == 1)
  }

  @Test func `junk and mutated descriptions never trap, and what is read is written so that it reads the same`() throws {
    let seed: UInt64 = 20_260
    var random = SplitMix64(seed: seed)
    let samples = try FileManager.default.contentsOfDirectory(atPath: SampleTests.folder.path).filter { $0.hasSuffix(".sdp") }
      .sorted()
      .map { Array(try SampleTests.text($0).utf8) }
    #expect(samples.count == 8)
    let tokens = [
      "=", ":", "/", " ", "\r\n", "\n", "\0", "m=", "a=", "c=IN IP4 ", "99999999999999999999", "-1", "a=rtpmap:", "a=fmtp:0 ",
      "a=candidate:", "a=fingerprint:sha-256 ", "a=setup:", "a=mid:", "ü", "255", "a=group:BUNDLE ", "RTP/SAVP",
      "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz|2^31|1:4", "|", "inline:",
    ].map { Array($0.utf8) }
    var read = 0
    for round in 0..<1_500 {
      var bytes = samples[Int(random.next() % UInt64(samples.count))]
      for _ in 0..<1 + random.next() % 8 where !bytes.isEmpty {
        let offset = Int(random.next() % UInt64(bytes.count))
        switch random.next() % 4 {
        case 0: bytes[offset] = UInt8(truncatingIfNeeded: random.next())
        case 1: bytes.removeSubrange(offset..<min(bytes.count, offset + Int(random.next() % 30)))
        case 2: bytes.insert(contentsOf: tokens[Int(random.next() % UInt64(tokens.count))], at: offset)
        default: bytes.insert(contentsOf: bytes[offset..<min(bytes.count, offset + Int(random.next() % 200))], at: offset)
        }
      }
      exercise(bytes)
      guard let description = try? SessionDescription(parsing: bytes) else { continue }
      read += 1
      let again = try? SessionDescription(parsing: description.text)
      #expect(again?.media == description.media && again?.attributes == description.attributes, "seed \(seed), round \(round)")
    }
    #expect(read > 400)
  }

  /// Every door at once; only the absence of a trap counts.
  private func exercise(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    for protection in [TrunkNegotiation.Protection.off, .optional(.seeded(1)), .required(.seeded(2))] {
      var trunk = TrunkNegotiation(local: SocketAddress(.loopback, 4_000), sessionID: 1, protection: protection)
      _ = try? trunk.answer(to: text)
      _ = trunk.makeOffer()
      _ = try? trunk.apply(answer: text)
    }
    var app = AppNegotiation(.gateway, endpoint: .sample(1), sessionID: 1)
    _ = try? app.answer(to: text)
    _ = app.makeOffer()
    _ = try? app.apply(answer: text)
    var client = AppNegotiation(.app, endpoint: .sample(2), sessionID: 1)
    _ = try? client.answer(to: text)
    _ = client.makeOffer()
    _ = try? client.apply(answer: text)
    _ = CandidateAttribute(text.prefix(200))
    _ = FingerprintAttribute(text)
  }
}
