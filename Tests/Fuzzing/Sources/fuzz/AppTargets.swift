import JSONWebToken
import TrunklineAppProtocol

@Sendable func fuzzAppJSON(_ bytes: [UInt8]) {
  if let frame = try? ClientFrame(decoding: bytes), case .message = frame.body {
    precondition((try? ClientFrame(decoding: frame.encoded())) == frame, "a message that was read must survive being written")
  }
  _ = try? ServerFrame(decoding: bytes)
}

private let verifier: TokenVerifier? = {
  guard let keys = try? KeySet(.HS256, keyFile: Array("a secret of more than thirty-two bytes, for the fuzzer".utf8)) else {
    return nil
  }
  return TokenVerifier(keys: keys, audience: "trunkline")
}()

@Sendable func fuzzJWT(_ bytes: [UInt8]) {
  let token = String(decoding: bytes, as: UTF8.self)
  precondition(
    (try? verifier?.verify(token, unixSeconds: 1_800_000_000)) == nil, "no input can be a token signed with the secret")
}
