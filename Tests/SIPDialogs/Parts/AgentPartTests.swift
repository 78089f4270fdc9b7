import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

private let credentials = Credentials(username: "alice", password: "secret")
private func challenge(_ realm: String, nonce: String = "n", isStale: Bool = false) -> DigestClient.Challenge {
  DigestClient.Challenge(
    realm: realm, nonce: nonce, opaque: nil, algorithm: .sha256, algorithmName: "SHA-256", hasQop: true, isStale: isStale,
    isProxy: false)
}

@Suite struct StandaloneRequestPartTests {
  private let id = RequestID(1)
  private func register(_ credentials: Credentials? = credentials) -> OutboundRequest {
    OutboundRequest(
      trunk: TrunkPeer(name: "carrier", domain: "carrier.example", flow: udp, credentials: credentials), method: .register,
      uri: "sip:carrier.example", to: "sip:alice@carrier.example", callID: "c", sequence: 5)
  }
  private func response(_ code: Int, extra: [String] = []) throws -> Message {
    let sent = try Message(Array(request("REGISTER").utf8))
    return try Message(Array(reply(sent, code, extra: extra).utf8))
  }

  @Test func `inputs of an unknown request give no outcome`() throws {
    var requests = StandaloneRequests()
    holds(requests.nextTry(id, cnonce: "c") == nil && !requests.challenged(id, [challenge("r")]))
    requests.wasSent(id, contact: "<sip:a>")
    holds(requests.failed(id, code: 408, byTransport: false) == nil)
    let ok = try response(200)
    holds(requests.answered(id, code: 200, ok) == nil && !requests.has(id))
  }

  @Test func `each challenge uses the next CSeq, and a repeated refusal is an outcome`() throws {
    var requests = StandaloneRequests()
    requests.begin(id, register(), tag: "t")
    requests.begin(id, register(nil), tag: "other")
    let first = requests.nextTry(id, cnonce: "c")
    #expect(first?.sequence == 5 && first?.tag == "t" && first?.authorizations.isEmpty == true)
    requests.wasSent(id, contact: "<sip:alice@198.51.100.9>")
    holds(requests.challenged(id, [challenge("r")]))
    let second = requests.nextTry(id, cnonce: "c")
    #expect(second?.sequence == 6 && second?.authorizations.count == 1)
    holds(!requests.challenged(id, [challenge("r")]), "the same nonce")
    let outcome = requests.answered(id, code: 401, try response(401))
    #expect(outcome?.code == 401 && outcome?.sequence == 6 && outcome?.isResponse == true && outcome?.contact != nil)
    holds(requests.failed(id, code: 408, byTransport: false) == nil, "it is over")
  }

  @Test func `the registrar's expires of our own Contact counts`() throws {
    var requests = StandaloneRequests()
    requests.begin(id, register(), tag: "t")
    requests.wasSent(id, contact: "<sip:alice@198.51.100.9>")
    let contacts = "Contact: <sip:bob@192.0.2.1>;expires=5, <sip:alice@198.51.100.9>;expires=120"
    #expect(requests.answered(id, code: 200, try response(200, extra: [contacts, "Expires: 9"]))?.expires == 120)
  }

  @Test func `without a message there is no Contact to remove, and a full table begins none`() {
    var requests = StandaloneRequests()
    for n in 0..<UInt64(Limits.standaloneRequests) { requests.begin(RequestID(n), register(), tag: "t") }
    requests.begin(RequestID(999_999), register(), tag: "t")
    #expect(requests.isFull && !requests.has(RequestID(999_999)))
    let outcome = requests.failed(id, code: 503, byTransport: true, peer: .refused)
    #expect(outcome?.contact == nil && outcome?.byTransport == true && outcome?.peer == .refused && !requests.isFull)
  }
}

@Suite struct DialogAuthenticationTests {
  @Test func `without credentials no challenge is answered`() {
    var authentication = DialogAuthentication()
    holds(!authentication.accept([challenge("r")]) && !authentication.answer([challenge("r")]))
    holds(authentication.authorizations(method: .bye, uri: "sip:a", cnonce: "c").isEmpty && !authentication.hasCredentials)
  }

  @Test func `an INVITE is tried once for each nonce that is new, and again at the next server`() {
    var authentication = DialogAuthentication(credentials)
    holds(authentication.authorizations(method: .invite, uri: "sip:a", cnonce: "c").isEmpty)
    holds(!authentication.accept([]) && authentication.accept([challenge("r")]) && !authentication.accept([challenge("r")]))
    holds(authentication.authorizations(method: .invite, uri: "sip:a", cnonce: "c").count == 1)
    authentication.restart()
    holds(authentication.authorizations(method: .invite, uri: "sip:a", cnonce: "c").isEmpty)
    holds(authentication.accept([challenge("r")]))
  }

  @Test func `another request has its own try, and realms add up`() {
    var authentication = DialogAuthentication(credentials)
    for realm in ["a", "b", "a"] { holds(authentication.answer([challenge(realm)])) }
    let values = authentication.authorizations(method: .bye, uri: "sip:a", cnonce: "c").map(\.1)
    #expect(values.count == 2 && values.allSatisfy { $0.contains("nc=00000001") })
  }
}

@Suite struct OrphanQueueTests {
  @Test func `orphans are closed in batches with pauses, the oldest first`() throws {
    let (wire, leg, _, _) = try Wire.confirmed()
    let orphan = try #require(wire.agent.orphan(of: leg))
    var (orphans, step) = (OrphanQueue(), Step.at(0))
    #expect(orphans.nextBatch(&step).isEmpty && step.isQuiet)
    let all = Array(repeating: (leg: orphan, credentials: Credentials?.none), count: Limits.orphansAtOnce + 1)
    orphans.adopt(all, &step)
    #expect(step.due == ["0 orphans"])
    #expect(orphans.nextBatch(&step).count == Limits.orphansAtOnce && step.due == ["20 orphans"])
    step = Step.at(20)
    #expect(orphans.nextBatch(&step).count == 1 && orphans.nextBatch(&step).isEmpty && step.isQuiet)
  }
}

@Suite struct TrunkDirectoryTests {
  @Test func `a trunk without rules has the default ones, and a removed one keeps its own`() {
    var trunks = TrunkDirectory()
    #expect(!trunks.isKnown("a") && !trunks.rules(of: "a").allowsTransfer)
    trunks.set(["a": TrunkRules(allowsTransfer: true)])
    trunks.set(["b": TrunkRules()])
    trunks.set([:])
    #expect(trunks.rules(of: "a").allowsTransfer && trunks.isKnown("b"))
  }

  @Test func `accounts follow the rules of all trunks`() {
    var trunks = TrunkDirectory()
    var second = TrunkRules()
    second.peersKnownAs = "a"
    trunks.set(["a": TrunkRules()])
    #expect(!trunks.accounts.mayBeOne("a", "b"))
    trunks.set(["b": second])
    #expect(trunks.accounts.mayBeOne("a", "b") && trunks.accounts.all(of: "a") == ["a", "b"])
  }
}

@Suite struct IdentifierPartTests {
  @Test func `numbers grow, and identifiers differ between two agents and two requests`() {
    var (one, other) = (Identifiers(.seeded(1)), Identifiers(.seeded(2)))
    #expect([one.nextNumber(), one.nextNumber(), other.nextNumber()] == [1, 2, 1])
    #expect(one.newTag() != one.newTag() && one.newCallID() != one.newCallID() && one.newBranch() != one.newBranch())
    #expect((1...0x1_0000).contains(one.initialSequence()) && (1...0x4000_0000).contains(one.initialResponseNumber()))
  }

  @Test func `a request of ours for the same user is a loop, for another a spiral, of another agent neither`() throws {
    let (one, other) = (Identifiers(.seeded(1)), Identifiers(.seeded(2)))
    let message = try Message(Array(request("INVITE", branch: one.newBranch(for: "+15551")).utf8))
    #expect(one.isLoop(message, user: "+15551") && !one.isLoop(message, user: "+15552") && !other.isLoop(message, user: "+15551"))
    #expect(one.statelessTag(message) == one.statelessTag(message) && one.statelessTag(message) != other.statelessTag(message))
  }

  @Test func `after a glare the owner of the Call-ID waits longer`() {
    let identifiers = Identifiers(.seeded(3))
    for _ in 0..<100 {
      #expect(identifiers.glareDelay(ownsCallID: true) > identifiers.glareDelay(ownsCallID: false))
      #expect(identifiers.offerRetrySeconds() < 10)
    }
  }
}
