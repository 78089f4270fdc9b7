import Foundation
import JSONWebToken
import Testing

/// The claim `trunkline`.
@Suite struct TokenGrantTests {
  private static let keys = { try! KeySet(.HS256, keyFile: Array("a secret of at least thirty-two bytes".utf8)) }()

  /// What a token with this claim, as JSON, is read as.
  private func grant(_ claim: String, iat: String = "1700000000") throws -> Result<TokenGrant, TokenGrant.Fault>? {
    let body = "{\"sub\":\"alice\",\"dev\":\"d\",\"aud\":\"trunkline\",\"exp\":1800000000,\"iat\":\(iat)\(claim)}"
    return try JSONDecoder().decode(Claims.self, from: Data(body.utf8)).grant
  }

  @Test func `all of it, as the page shows it`() throws {
    let read = try grant(
      """
      ,"trunkline":{"numbers":["+15551230001","089"],"name":"Alice","account":"work","allow":["+1",""],"max_calls":2,\
      "calls_per_hour":20,"record":true,"diversions":{"no_answer":{"number":"+15551230009","after":15,"show_caller":true},"busy":{"code":486}}}
      """)
    var toNumber = TokenGrant.Diversion(number: "+15551230009", after: 15)
    toNumber.showsCaller = true
    var expected = TokenGrant(
      numbers: ["+15551230001", "089"], name: "Alice", account: "work", allow: ["+1", ""], maxCalls: 2, callsPerHour: 20,
      diversions: ["no_answer": toNumber, "busy": .init(code: 486)], issuedAt: 1_700_000_000_000)
    expected.record = true
    #expect(read == .success(expected))
  }

  @Test func `a token without the claim grants nothing, an empty one takes all away`() throws {
    #expect(try grant("") == nil)
    #expect(try grant(",\"trunkline\":{}") == .success(TokenGrant(issuedAt: 1_700_000_000_000)))
    #expect(try grant(",\"trunkline\":{}", iat: "1700000000.25") == .success(TokenGrant(issuedAt: 1_700_000_000_250)))
    for odd in ["\"yesterday\"", "-1", "1e300", "null", "[]"] {
      #expect(try grant(",\"trunkline\":{}", iat: odd) == .success(TokenGrant()), "\(odd)")
    }
  }

  @Test func `what is signed is what is read`() throws {
    var grant = TokenGrant(
      numbers: ["+15551230001"], name: "A", allow: [], maxCalls: 0, diversions: ["busy": .init(user: "bob")],
      issuedAt: 1_700_000_001_250)
    grant.record = false
    let token = try TokenSigner(keys: Self.keys).sign(
      Claims(sub: "alice", dev: "d", aud: ["trunkline"], exp: 1_700_003_600, grant: grant))
    let verifier = TokenVerifier(keys: Self.keys, audience: "trunkline")
    #expect(try verifier.verify(token, unixSeconds: 1_700_000_000).grant == .success(grant))
  }

  private static let faults: [(claim: String, fault: String)] = [
    ("7", "trunkline: is not an object"),
    ("null", "trunkline: is not an object"),
    ("[\"+1\"]", "trunkline: is not an object"),
    (
      "{\"number\":\"+1\"}",
      "trunkline.number: is not known here: one of account, allow, calls_per_hour, diversions, max_calls, name, numbers, record"
    ),
    ("{\"numbers\":\"+1\"}", "trunkline.numbers: is not a list of strings"),
    ("{\"numbers\":[1]}", "trunkline.numbers: is not a list of strings"),
    ("{\"numbers\":[\"+1\",\"\"]}", "trunkline.numbers[1]: is not a number: 1 to 15 digits, with + in front of a country code"),
    (
      "{\"numbers\":[\"+1234567890123456\"]}",
      "trunkline.numbers[0]: is not a number: 1 to 15 digits, with + in front of a country code"
    ),
    ("{\"numbers\":[\"alice\"]}", "trunkline.numbers[0]: is not a number: 1 to 15 digits, with + in front of a country code"),
    ("{\"numbers\":[\"\\u0661\"]}", "trunkline.numbers[0]: is not a number: 1 to 15 digits, with + in front of a country code"),
    ("{\"numbers\":[\"+1\",\"+1\"]}", "trunkline.numbers[1]: is given twice"),
    ("{\"name\":\"\"}", "trunkline.name: must have 1 to 128 bytes without control characters"),
    ("{\"name\":\"a\\u0000\"}", "trunkline.name: must have 1 to 128 bytes without control characters"),
    ("{\"account\":\"a b\"}", "trunkline.account: must have 1 to 128 bytes without control characters or spaces"),
    ("{\"max_calls\":-1}", "trunkline.max_calls: is not within 0…1000"),
    ("{\"max_calls\":1.5}", "trunkline.max_calls: is not an integer"),
    ("{\"max_calls\":\"2\"}", "trunkline.max_calls: is not an integer"),
    ("{\"max_calls\":1e300}", "trunkline.max_calls: is not an integer"),
    ("{\"calls_per_hour\":10001}", "trunkline.calls_per_hour: is not within 0…10000"),
    ("{\"diversions\":[]}", "trunkline.diversions: is not an object"),
    (
      "{\"diversions\":{\"sometimes\":{}}}",
      "trunkline.diversions.sometimes: is not known here: one of busy, declined, media_failed, no_answer, unreached"
    ),
    ("{\"diversions\":{\"busy\":{}}}", "trunkline.diversions.busy: needs exactly one of user, number, code"),
    (
      "{\"diversions\":{\"busy\":{\"user\":\"b\",\"code\":486}}}",
      "trunkline.diversions.busy: needs exactly one of user, number, code"
    ),
    ("{\"diversions\":{\"busy\":{\"code\":200}}}", "trunkline.diversions.busy.code: is not within 400…699"),
    (
      "{\"diversions\":{\"busy\":{\"code\":486,\"after\":3}}}",
      "trunkline.diversions.busy.after: goes with unreached and no_answer"
    ),
    (
      "{\"diversions\":{\"busy\":{\"play\":\"/etc/passwd\"}}}",
      "trunkline.diversions.busy.play: is not known here: one of after, code, number, show_caller, user"
    ),
  ]

  @Test(arguments: faults) func `what is wrong is said with its path`(claim: String, fault: String) throws {
    guard case .failure(let found)? = try grant(",\"trunkline\":" + claim) else { throw Missing() }
    #expect(found.description == fault)
  }

  @Test func `a hundred numbers at most, however many come`() throws {
    func list(_ count: Int) -> String { "[" + (0..<count).map { "\"+1555\($0)\"" }.joined(separator: ",") + "]" }
    guard case .success(let grant)? = try grant(",\"trunkline\":{\"numbers\":\(list(100))}") else { throw Missing() }
    #expect(grant.numbers.count == 100)
    #expect(
      try self.grant(",\"trunkline\":{\"numbers\":\(list(10_000))}") == .failure(.init("numbers", "has more than 100 entries")))
  }

  private struct Missing: Error {}
}
