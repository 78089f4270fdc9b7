import Foundation
import Testing

@testable import JSONWebToken

@Suite struct FetchedKeyTests {
  private let now: Int64 = 1_700_000_000

  @Test(arguments: [Algorithm.RS256, .ES256])
  func `a token whose kid was not fetched has an unknown key, one whose signature is wrong has not`(algorithm: Algorithm) throws {
    let verifier = TokenVerifier(keys: try KeySet(algorithm, fetched: vector("jwks.json")), audience: "trunkline")
    #expect(try verifier.verify(pyJWT(algorithm.rawValue), unixSeconds: now) == alice)
    let key = try KeySet(algorithm, keyFile: vector(algorithm == .RS256 ? "rsa-private.pem" : "ec-private.pem"))
    let other = try TokenSigner(keys: key, kid: "x9").sign(alice)
    #expect(throws: TokenError.unknownKey) { try verifier.verify(other, unixSeconds: now) }
    #expect(TokenVerifier.keyID(of: other) == "x9")
    let forged = String(try pyJWT(algorithm.rawValue).dropLast(8)) + "AAAAAAAA"
    #expect(throws: TokenError.signature) { try verifier.verify(forged, unixSeconds: now) }
    // a token without kid is of the only key that there is, or of one that came since
    let unnamed = try TokenSigner(keys: key).sign(alice)
    #expect(try verifier.verify(unnamed, unixSeconds: now) == alice)
    #expect(throws: TokenError.unknownKey) {
      try verifier.verify(String(unnamed.dropLast(8)) + "AAAAAAAA", unixSeconds: now)
    }
  }

  @Test func `the algorithm stays pinned: what a token or a key says of it changes nothing`() throws {
    let set = try KeySet(.RS256, fetched: vector("jwks.json"))
    let verifier = TokenVerifier(keys: set, audience: "trunkline")
    // signed with HMAC under the public key, as if it were a secret (RFC 8725 §2.1)
    let confused = try TokenSigner(keys: KeySet(.HS256, keyFile: vector("rsa-public.pem")), kid: "r1").sign(alice)
    #expect(throws: TokenError.algorithm) { try verifier.verify(confused, unixSeconds: now) }
    #expect(throws: TokenError.algorithm) { try verifier.verify(pyJWT("ES256"), unixSeconds: now) }
    #expect(throws: TokenError.algorithm) { try verifier.verify("eyJhbGciOiJub25lIn0.e30.", unixSeconds: now) }
    #expect(throws: KeyError.self) { try KeySet(.HS256, fetched: vector("jwks.json")) }
    let relabelled = String(decoding: try vector("jwks.json"), as: UTF8.self).replacing("RS256", with: "HS256")
    #expect(throws: KeyError.self) { try KeySet(.RS256, fetched: Array(relabelled.utf8)) }
  }

  @Test func `before the first fetch every token has an unknown key`() throws {
    let verifier = TokenVerifier(keys: KeySet(awaited: .ES256), audience: "trunkline")
    #expect(throws: TokenError.unknownKey) { try verifier.verify(pyJWT("ES256"), unixSeconds: now) }
    #expect(throws: TokenError.algorithm) { try verifier.verify(pyJWT("RS256"), unixSeconds: now) }
    #expect(KeySet(awaited: .ES256).count == 0)
  }

  @Test func `a key that cannot be used is passed over, and limits hold`() throws {
    let file = try JSONSerialization.jsonObject(with: Data(vector("jwks.json"))) as? [String: Any] ?? [:]
    let keys = file["keys"] as? [Any] ?? []
    func set(_ keys: [Any]) throws -> [UInt8] { Array(try JSONSerialization.data(withJSONObject: ["keys": keys])) }
    let broken: [String: Any] = ["kty": "EC", "crv": "P-256", "kid": "b", "x": coordinate, "y": coordinate]
    let good = try KeySet(.ES256, fetched: set([broken] + keys))
    #expect(try TokenVerifier(keys: good, audience: "trunkline").verify(pyJWT("ES256"), unixSeconds: now) == alice)
    #expect(throws: KeyError.self) { try KeySet(.ES256, fetched: set([broken])) }
    #expect(throws: KeyError.jwks("more than 64 keys")) { try KeySet(.ES256, fetched: set(Array(repeating: broken, count: 65))) }
    #expect(throws: KeyError.tooBig) { try KeySet(.ES256, fetched: [UInt8](repeating: 32, count: 262_145)) }
    for text in ["", "<html>", "[]", "{}", #"{"keys":[]}"#] {
      #expect(throws: KeyError.self) { try KeySet(.ES256, fetched: Array(text.utf8)) }
    }
  }

  @Test(arguments: ["", ".", "e30.e30.", "eyJraWQiOjF9.e30.", String(repeating: "a", count: 9_000)])
  func `of what is no token no kid is read`(text: String) { #expect(TokenVerifier.keyID(of: text) == nil) }
}
