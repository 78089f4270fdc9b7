import Foundation
import Testing

@testable import JSONWebToken

func vector(_ name: String) throws -> [UInt8] {
  let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../Vectors/jwt")
  return Array(try Data(contentsOf: folder.appendingPathComponent(name)))
}
let secret = Array("a secret of at least thirty-two bytes".utf8)
let alice = Claims(sub: "alice", dev: "phone-1", aud: ["trunkline"], exp: 2_000_000_000, nbf: 1_000, acct: ["work", "home"])

func verifier(_ algorithm: Algorithm = .HS256) throws -> TokenVerifier {
  let file =
    switch algorithm {
    case .HS256: secret
    case .RS256: try vector("rsa-public.pem")
    case .ES256: try vector("ec-public.pem")
    }
  return TokenVerifier(keys: try KeySet(algorithm, keyFile: file), audience: "trunkline")
}
func pyJWT(_ name: String) throws -> String {
  try #require(try JSONDecoder().decode([String: String].self, from: Data(vector("pyjwt-tokens.json")))[name])
}
func handmade(_ header: String, _ body: String, key: [UInt8] = secret) -> String {
  let message = Base64URL.encode(Array(header.utf8)) + "." + Base64URL.encode(Array(body.utf8))
  return message + "." + Base64URL.encode(hmacSHA256(Array(message.utf8), key: key))
}
let hs256 = #"{"alg":"HS256"}"#
let body = #"{"sub":"a","dev":"d","aud":"trunkline","exp":2000}"#

@Suite struct TokenTests {
  @Test(arguments: Algorithm.allCases) func `a token of PyJWT is accepted`(algorithm: Algorithm) throws {
    #expect(try verifier(algorithm).verify(pyJWT(algorithm.rawValue), unixSeconds: 1_700_000_000) == alice)
  }

  @Test(arguments: Algorithm.allCases) func `what the signer writes the verifier reads`(algorithm: Algorithm) throws {
    let file = algorithm == .HS256 ? secret : try vector(algorithm == .RS256 ? "rsa-private.pem" : "ec-private.pem")
    let token = try TokenSigner(keys: KeySet(algorithm, keyFile: file)).sign(alice)
    #expect(try verifier(algorithm).verify(token, unixSeconds: 1_700_000_000) == alice)
    for other in Algorithm.allCases where other != algorithm {
      #expect(throws: TokenError.algorithm) { try verifier(other).verify(token, unixSeconds: 1_700_000_000) }
    }
  }

  @Test(arguments: Algorithm.allCases) func `one changed character anywhere refuses the token`(algorithm: Algorithm) throws {
    let token = Array(try pyJWT(algorithm.rawValue).utf8)
    let verifier = try verifier(algorithm)
    for index in token.indices {
      var forged = token
      forged[index] = forged[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
      #expect(throws: TokenError.self, "\(index)") {
        try verifier.verify(String(decoding: forged, as: UTF8.self), unixSeconds: 1_700_000_000)
      }
    }
  }

  @Test func `alg none, in any spelling and with or without signature, is refused`() throws {
    for alg in ["none", "None", "NONE", "nOnE", "HS512", "hs256", ""] {
      let token = handmade(#"{"alg":"\#(alg)"}"#, body)
      #expect(throws: TokenError.algorithm) { try verifier().verify(token, unixSeconds: 1_000) }
      let unsigned = token.split(separator: ".").prefix(2).joined(separator: ".") + "."
      #expect(throws: TokenError.algorithm) { try verifier().verify(unsigned, unixSeconds: 1_000) }
    }
    let unsigned = handmade(hs256, body).split(separator: ".").prefix(2).joined(separator: ".") + "."
    #expect(throws: TokenError.signature) { try verifier().verify(unsigned, unixSeconds: 1_000) }
  }

  @Test func `an HS256 token keyed with the public key's text does not pass an RS256 verifier`() throws {
    let token = handmade(hs256, body, key: try vector("rsa-public.pem"))
    #expect(throws: TokenError.algorithm) { try verifier(.RS256).verify(token, unixSeconds: 1_000) }
    let renamed = handmade(#"{"alg":"RS256"}"#, body, key: try vector("rsa-public.pem"))
    #expect(throws: TokenError.signature) { try verifier(.RS256).verify(renamed, unixSeconds: 1_000) }
  }

  @Test func `times have a leeway of thirty seconds on either side`() throws {
    let token = handmade(hs256, #"{"sub":"a","dev":"d","aud":"trunkline","exp":2000.9,"nbf":1000}"#)
    let verifier = try verifier()
    #expect(throws: TokenError.notYetValid) { try verifier.verify(token, unixSeconds: 969) }
    #expect(try verifier.verify(token, unixSeconds: 970).exp == 2_000)
    #expect(try verifier.verify(token, unixSeconds: 2_029).sub == "a")
    #expect(throws: TokenError.expired) { try verifier.verify(token, unixSeconds: 2_030) }
  }

  @Test func `an exp in milliseconds is refused by name, and none that is in seconds`() throws {
    func token(_ exp: String) -> String { handmade(hs256, "{\"sub\":\"a\",\"dev\":\"d\",\"aud\":\"trunkline\",\"exp\":\(exp)}") }
    for exp in ["1700000000000", "100000000000", "9007199254740991"] {
      #expect(throws: TokenError.expiryInMilliseconds) { try verifier().verify(token(exp), unixSeconds: 1_700_000_000) }
    }
    #expect(try verifier().verify(token("99999999999"), unixSeconds: 1_700_000_000).sub == "a")
  }

  @Test func `the audience must be ours, alone or in a list`() throws {
    #expect(try verifier().verify(pyJWT("HS256-audlist"), unixSeconds: 1_700_000_000).aud == ["x", "trunkline"])
    for aud in [#""aud":"other","#, #""aud":["a","b"],"#, #""aud":[],"#, ""] {
      let token = handmade(hs256, #"{"sub":"a","dev":"d",\#(aud)"exp":2000}"#)
      #expect(throws: TokenError.audience) { try verifier().verify(token, unixSeconds: 1_000) }
    }
  }

  @Test(arguments: [
    #"{"dev":"d","aud":"trunkline","exp":2000}"#, #"{"sub":"a","aud":"trunkline","exp":2000}"#,
    #"{"sub":"a","dev":"d","aud":"trunkline"}"#, #"{"sub":"","dev":"d","aud":"trunkline","exp":2000}"#,
    #"{"sub":7,"dev":"d","aud":"trunkline","exp":2000}"#, #"{"sub":"a","dev":"d","aud":"trunkline","exp":"2000"}"#,
    #"{"sub":"a","dev":"d","aud":"trunkline","exp":-1}"#, #"{"sub":"a","dev":"d","aud":"trunkline","exp":1e300}"#,
    #"{"sub":"a","dev":"d","aud":{"x":1},"exp":2000}"#, #"{"sub":"a","dev":"d","aud":"trunkline","exp":2000,"acct":"x"}"#,
    "{\"sub\":\"\(String(repeating: "a", count: 257))\",\"dev\":\"d\",\"aud\":\"trunkline\",\"exp\":2000}",
  ])
  func `a missing claim or one outside its limits refuses the token`(body: String) throws {
    #expect(throws: TokenError.claims) { try verifier().verify(handmade(hs256, body), unixSeconds: 1_000) }
  }

  @Test(arguments: [
    "", ".", "..", "a.b", "a.b.c.d", "e30.e30.", "!!.e30.e30", "e30=.e30.e30", " e30.e30.e30", "e30.e30.A",
    "\u{0}.\u{0}.\u{0}",
    "W10.W10.W10", "é.é.é",
  ])
  func `what is not three parts of base64url is malformed`(token: String) throws {
    #expect(throws: TokenError.malformed) { try verifier().verify(token, unixSeconds: 1_000) }
  }

  @Test func `a token above 8 KiB and a critical extension are refused`() throws {
    let long = handmade(hs256, #"{"x":"\#(String(repeating: "a", count: 8_192))"}"#)
    #expect(throws: TokenError.malformed) { try verifier().verify(long, unixSeconds: 1_000) }
    let critical = handmade(#"{"alg":"HS256","crit":["b64"],"b64":false}"#, body)
    #expect(throws: TokenError.critical) { try verifier().verify(critical, unixSeconds: 1_000) }
  }

  @Test func `the examples of RFC 7515 pass the signature check and then lack our claims`() throws {
    let payload = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
    func check(_ keys: KeySet, _ header: String, _ signature: String) {
      #expect(throws: TokenError.claims) {
        try TokenVerifier(keys: keys, audience: "").verify("\(header).\(payload).\(signature)", unixSeconds: 0)
      }
    }
    let key = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"
    check(
      try KeySet(.HS256, keyFile: try #require(Base64URL.decode(key.utf8))), "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9",
      "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    let point = #"""
      {"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
      "y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}
      """#
    check(
      try KeySet(.ES256, jwksFile: Array(point.utf8)), "eyJhbGciOiJFUzI1NiJ9",
      "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q")
  }
}
