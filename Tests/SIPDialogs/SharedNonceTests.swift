import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// Nodes of one cluster take each other's nonces: a peer may be challenged by one and answer at the next.
@Suite struct SharedNonceTests {
  private typealias Answer = GuestTests.Answer
  private static let secret = Array("0123456789abcdef0123456789abcdef".utf8)
  /// 2023-11-14, in milliseconds.
  private static let epoch: Int64 = 1_700_000_000_000
  private var lastNumber = 0

  /// A node whose clock is so many seconds off; each has been up for a time of its own.
  private func node(_ seed: UInt64, clock seconds: Int64 = 0, secret: [UInt8]? = Self.secret) -> Wire {
    var wire = Wire()
    wire.agent = UserAgent(configuration: .init(nonceSecret: secret.map { Redacted($0) }), random: .seeded(seed))
    wire.now = Instant.zero + .seconds(Int64(seed) * 1_000)
    var rules = TrunkRules()
    rules.peerCredentials = Credentials(username: "pbx", password: "secret")
    wire.input(.rules(["carrier": rules]))
    wire.input(.sharedClock(offsetMilliseconds: Self.epoch + seconds * 1_000 - wire.now.nanoseconds / 1_000_000))
    return wire
  }

  private mutating func ask(
    _ wire: inout Wire, _ answer: Answer? = nil, uri: String = "sip:+15551230001@198.51.100.9", trunk: String = "carrier"
  ) -> Message? {
    lastNumber += 1
    var extra = [answer?.header].compactMap(\.self)
    if trunk == Edge.peer { extra.append("X-Trunkline-Trunk: carrier") }
    return wire.receive(
      request("INVITE", uri: uri, branch: "z9hG4bKs\(lastNumber)", callID: "s\(lastNumber)", extra: extra, sdp: offer),
      trunk: trunk
    ).first
  }

  private mutating func nonce(of wire: inout Wire) throws -> String { try #require(Self.nonce(ask(&wire))) }

  private static func nonce(_ response: Message?) -> String? {
    response.flatMap { try? $0.authentication(.wwwAuthenticate) }?.first?["nonce"]
  }
  private static func isStale(_ response: Message?) -> Bool {
    response?.statusCode == 401 && response?.value(.wwwAuthenticate)?.contains("stale=true") == true
  }

  @Test mutating func `a peer that one node has challenged answers at the next`() throws {
    var (first, second) = (node(1), node(2))
    let fresh = try nonce(of: &first)
    #expect(ask(&second, Answer(nonce: fresh))?.statusCode == 100)
    #expect(ask(&second, Answer(nonce: fresh, count: 2))?.statusCode == 100)
    #expect(ask(&second, Answer(nonce: fresh, count: 3, password: "guess"))?.statusCode == 401)
  }

  @Test mutating func `another key, or a key of the process alone, makes other nonces`() throws {
    var first = node(1)
    let fresh = try nonce(of: &first)
    for secret in [Array("another0123456789abcdef012345678".utf8), nil] {
      var other = node(2, secret: secret)
      let refused = ask(&other, Answer(nonce: fresh))
      #expect(Self.isStale(refused))
      #expect(ask(&other, Answer(nonce: try #require(Self.nonce(refused))))?.statusCode == 100)
    }
  }

  @Test(arguments: [(-14, true), (-16, false), (0, true), (59, true), (61, false), (3_600, false), (-3_600, false)])
  mutating func `clocks may be seconds apart; beyond it the next node's own nonce is wanted, and taken`(
    ahead: Int64, isTaken: Bool
  )
    throws
  {
    var (first, second) = (node(1), node(2, clock: ahead))
    let fresh = try nonce(of: &first)
    let response = ask(&second, Answer(nonce: fresh))
    #expect(response?.statusCode == (isTaken ? 100 : 401) && Self.isStale(response) == !isTaken)
    if !isTaken { #expect(ask(&second, Answer(nonce: try #require(Self.nonce(response))))?.statusCode == 100) }
  }

  @Test mutating func `a clock that is set again is followed, and the nonces of before are asked for anew`() throws {
    var (first, second) = (node(1, clock: 3_600), node(2))
    let early = try nonce(of: &first)
    first.input(.sharedClock(offsetMilliseconds: Self.epoch - first.now.nanoseconds / 1_000_000))
    #expect(Self.isStale(ask(&first, Answer(nonce: early))))
    let fresh = try nonce(of: &first)
    #expect(ask(&second, Answer(nonce: fresh))?.statusCode == 100)
  }

  @Test mutating func `what was used is taken once more at each other node, and for a minute`() throws {
    var (first, second, third) = (node(1), node(2), node(3))
    let used = Answer(nonce: try nonce(of: &first))
    #expect(ask(&first, used)?.statusCode == 100)
    #expect(Self.isStale(ask(&first, used)))
    #expect(ask(&second, used)?.statusCode == 100)
    #expect(Self.isStale(ask(&second, used)))
    third.now = third.now + .seconds(61)
    #expect(Self.isStale(ask(&third, used)))
  }

  @Test mutating func `a nonce that nobody made is stale, whatever time it names`() throws {
    var (first, second) = (node(1), node(2))
    let fresh = try nonce(of: &first)
    let (time, mac) = (String(fresh.prefix(16)), String(fresh.dropFirst(16)))
    let later = String(Int64(try #require(Int64(time, radix: 16))) + 1, radix: 16)
    let times = [String(repeating: "0", count: 16 - later.utf8.count) + later]
    let forged =
      (times + [
        "7fffffffffffffff", "8000000000000000", "ffffffffffffffff", "-7ffffffffffffff", "+000000000000000", "zzzzzzzzzzzzzzzz",
      ])
      .map { $0 + mac } + [time + String(mac.reversed()), time, "", String(repeating: "f", count: 1_000)]
    for nonce in forged {
      let response = ask(&second, Answer(nonce: nonce))
      #expect(Self.isStale(response), "\(nonce.prefix(60))")
      second.now = second.now + .seconds(2)
    }
    #expect(ask(&second, Answer(nonce: fresh))?.statusCode == 100)
  }

  @Test mutating func `a redirect of another node changes the Request-URI on the way: the digest holds for the number`() throws {
    let steered = "sip:+15551230001@10.0.0.6:5060;transport=tcp;x-steered"
    var (first, second) = (node(1), node(2))
    let answer = Answer(nonce: try nonce(of: &first))
    #expect(ask(&first, answer, trunk: Edge.peer)?.statusCode == 100)
    #expect(ask(&second, answer, uri: steered, trunk: Edge.peer)?.statusCode == 100)
    let another = "sip:+15551230002@10.0.0.6:5060;transport=tcp;x-steered"
    let second2 = Answer(nonce: answer.nonce, count: 2)
    #expect(ask(&second, second2, uri: another, trunk: Edge.peer)?.statusCode == 401, "another number")
    #expect(ask(&second, second2, uri: "sip:10.0.0.6:5060", trunk: Edge.peer)?.statusCode == 401, "no number")
    #expect(ask(&second, second2, uri: steered)?.statusCode == 401, "not of an edge")
  }
}
