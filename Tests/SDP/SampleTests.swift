import Foundation
import Testing
import TrunklineBytes
import TrunklineRTP
import TrunklineSDP

/// Descriptions of real systems (Tests/Vectors/sdp, sources in INDEX.tsv) get the verdict that the index asks for.
@Suite struct SampleTests {
  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "../Vectors/sdp")

  static func text(_ name: String) throws -> String { try String(contentsOf: folder.appending(path: name), encoding: .utf8) }

  private func trunk() -> TrunkNegotiation {
    TrunkNegotiation(local: SocketAddress(IPAddress(192, 0, 2, 1), 41_000), sessionID: 7)
  }

  @Test func `every sample of the index is here and is read`() throws {
    let rows = try Self.text("INDEX.tsv").split(separator: "\n").dropFirst()
    #expect(rows.count == 8)
    for row in rows {
      let columns = row.split(separator: "\t").map(String.init)
      let description = try SessionDescription(parsing: Self.text(columns[0]))
      #expect(description.media.count == Int(columns[2]), "\(columns[0])")
      #expect(description.media.first { $0.kind == "audio" }?.transport == columns[3], "\(columns[0])")
      #expect(try SessionDescription(parsing: description.text) == description, "\(columns[0]): parse∘print")
    }
  }

  @Test(arguments: [
    ("018-cisco-ua.sdp", "192.168.1.100:1"), ("019-sonus.sdp", "64.152.60.164:19144"), ("021-asterisk.sdp", "172.17.2.10:19722"),
    ("053-bria.sdp", "144.137.16.240:34640"), ("270-drachtio-server.sdp", "127.0.0.1:5000"),
  ])
  func `a telephone system's offer is answered on a trunk and refused toward an app`(_ name: String, _ remote: String) throws {
    let text = try Self.text(name)
    var negotiation = trunk()
    let (sdp, media) = try negotiation.answer(to: text)
    var expected = TrunkMedia(
      remote: try #require(SocketAddress(remote)), codec: .pcmu, payloadType: 0, telephoneEventPayloadType: 101)
    (expected.telephoneEventClockRateHz, expected.incoming) = (8_000, media.incoming)
    #expect(media == expected)
    #expect(media.incoming.contains(NumberedFormat(0, .audio(.pcmu))))
    let answer = try SessionDescription(parsing: sdp)
    #expect(answer.media.map(\.formats) == [["0", "101"]])
    #expect(answer.direction(of: answer.media[0]) == .sendReceive)

    var app = AppNegotiation(.gateway, endpoint: .sample(1), sessionID: 1)
    #expect(throws: NegotiationError.transportProfile("RTP/AVP")) { try app.answer(to: text) }
  }

  @Test(arguments: [
    ("005-chrome-libwebrtc.sdp", 0, "bar", UInt8(111), UInt8(110), UInt8(126), "sendrecv"),
    ("007-chrome-libwebrtc.sdp", 1, "1", 111, nil, 101, "sendrecv"),
    ("011-firefox.sdp", 0, "0", 109, nil, 101, "sendonly"),
  ])
  func `a browser's offer is answered on the app leg and refused on a trunk`(
    _ name: String, _ index: Int, _ mid: String, _ opus: UInt8, _ event48: UInt8?, _ event8: UInt8, _ direction: String
  ) throws {
    let text = try Self.text(name)
    let offer = try SessionDescription(parsing: text)
    var app = AppNegotiation(.gateway, endpoint: .sample(1), sessionID: 1)
    let (sdp, media) = try app.answer(to: text)
    #expect(media.codec == .opus && media.payloadType == opus)
    #expect(media.telephoneEvent48 == event48 && media.telephoneEvent8 == event8)
    #expect(media.mid == mid && media.setup == .active && media.fingerprint.algorithm == .sha256)
    #expect(media.direction.rawValue == direction)
    #expect(media.opus.usesInbandFEC)

    let answer = try SessionDescription(parsing: sdp)
    #expect(answer.media.map(\.mid) == offer.media.map(\.mid))
    #expect(answer.media.map(\.kind) == offer.media.map(\.kind))
    #expect(answer.media.map(\.transport) == offer.media.map(\.transport))
    #expect(answer.media.enumerated().allSatisfy { ($0.offset == index) != ($0.element.port == 0) })
    #expect(answer.bundle == (offer.bundle == nil ? nil : [mid]))
    let section = answer.media[index]
    #expect(section.attributes.value("setup") == "passive" && answer.attributes.has("ice-lite"))
    #expect(answer.direction(of: section).rawValue == direction)
    #expect(!sdp.contains("extmap") && !sdp.contains("rtcp-fb"))

    var negotiation = trunk()
    #expect(throws: NegotiationError.self) { try negotiation.answer(to: text) }
  }
}

extension SecureEndpoint {
  /// A side of an app leg with its own number in everything that must differ.
  static func sample(_ number: UInt8) -> SecureEndpoint {
    SecureEndpoint(
      ufrag: "uf\(number)x", password: "password-\(number)-0123456789abcdef".replacing("-", with: "+"),
      fingerprint: FingerprintAttribute(.sha256, Array(repeating: number, count: 32)) ?? { fatalError("a hash of 32 bytes") }(),
      candidates: [
        SocketAddress(IPAddress(192, 0, 2, number), 40_000),
        SocketAddress(IPAddress(v6High: 0x2001_0db8 << 32, low: 1), 40_000),
      ],
      ssrc: UInt32(number) * 1_000)
  }
}
