import Foundation
import Testing

@testable import JSONWebToken

/// Of the curve, but not as both coordinates.
let coordinate = "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"

@Suite struct KeyFileTests {
  @Test func `a secret is the file without trailing white space`() throws {
    let keys = try KeySet(.HS256, keyFile: secret + Array(" \t\r\n\n".utf8))
    let token = try pyJWT("HS256")
    #expect(try TokenVerifier(keys: keys, audience: "trunkline").verify(token, unixSeconds: 1_700_000_000) == alice)
    #expect(!keys.isWeak)
    #expect(try KeySet(.HS256, keyFile: Array("short\n".utf8)).isWeak)
  }

  @Test func `an empty, huge or unsuitable file is refused`() throws {
    #expect(throws: KeyError.empty) { try KeySet(.HS256, keyFile: Array("\n \n".utf8)) }
    #expect(throws: KeyError.empty) { try KeySet(.ES256, keyFile: []) }
    #expect(throws: KeyError.tooBig) { try KeySet(.HS256, keyFile: [UInt8](repeating: 1, count: 262_145)) }
    #expect(throws: KeyError.notAKey("no PEM of a private key, public key or certificate")) {
      try KeySet(.RS256, keyFile: secret)
    }
    #expect(throws: KeyError.notAKey("RS256 needs an RSA key")) { try KeySet(.RS256, keyFile: vector("ec-public.pem")) }
    #expect(throws: KeyError.notAKey("ES256 needs an EC key")) { try KeySet(.ES256, keyFile: vector("rsa-public.pem")) }
    #expect(throws: KeyError.unsuitable("RSA below 2048 bits")) { try KeySet(.RS256, keyFile: vector("rsa-1024-public.pem")) }
    #expect(throws: KeyError.unsuitable("the curve is not P-256")) {
      try KeySet(.ES256, keyFile: vector("ec-p384-public.pem"))
    }
  }

  @Test(arguments: [Algorithm.RS256, .ES256]) func `a JWKS file serves by kid, other kinds of key are passed over`(
    algorithm: Algorithm
  ) throws {
    let file = try vector("jwks.json")
    let verifier = TokenVerifier(keys: try KeySet(algorithm, jwksFile: file), audience: "trunkline")
    #expect(try verifier.verify(pyJWT(algorithm.rawValue), unixSeconds: 1_700_000_000) == alice)
    let private_ = try vector(algorithm == .RS256 ? "rsa-private.pem" : "ec-private.pem")
    let other = try TokenSigner(keys: KeySet(algorithm, keyFile: private_), kid: "x9").sign(alice)
    #expect(throws: TokenError.signature) { try verifier.verify(other, unixSeconds: 1_700_000_000) }
  }

  @Test(arguments: [
    "", "[]", "{}", #"{"keys":{}}"#, #"{"keys":[]}"#, #"{"keys":[{"kty":"oct","k":"AA"}]}"#,
    #"{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}"#, #"{"keys":[{"kty":"EC","crv":"P-256"}]}"#,
    #"{"keys":[{"kty":"EC","crv":"P-256","x":"\#(coordinate)","y":"\#(coordinate)"}]}"#,
  ])
  func `a JWKS file without a usable key is refused`(text: String) {
    #expect(throws: KeyError.self) { try KeySet(.ES256, jwksFile: Array(text.utf8)) }
  }

  @Test func `signing needs the private key`() throws {
    #expect(throws: KeyError.noPrivateKey) { try TokenSigner(keys: KeySet(.ES256, keyFile: vector("ec-public.pem"))) }
  }

  @Test func `base64url has one text for each value`() {
    for bytes in [[], [0], [255, 254], [1, 2, 3], Array(0...255)] as [[UInt8]] {
      #expect(Base64URL.decode(Base64URL.encode(bytes).utf8) == bytes)
    }
    for bad in ["A", "AB==", "AB", "AAB", "A+AA", "A/AA", "AA AA", "AAAA\n"] {
      #expect(Base64URL.decode(bad.utf8) == nil, "\(bad)")
    }
  }
}
