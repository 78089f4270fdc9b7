import CTrunklineOpenSSL
public import HTTP

extension HTTPRequest {
  /// SHA-256 of method, path and query as sent, and body: requests with the same digest are the same. Nil if OpenSSL fails.
  public var digest: [UInt8]? {
    let bytes = Array("\(method) \(path)?\(target.query)\n".utf8) + body
    var out = [UInt8](repeating: 0, count: 32)
    return EVP_Digest(bytes, bytes.count, &out, nil, EVP_sha256(), nil) == 1 ? out : nil
  }

  /// For tests of handlers. `target` with its query.
  public init(_ method: String, target: String, body: [UInt8] = [], client: String = "") throws(RequestRefusal) {
    self.init(
      method: method, target: try RequestTarget(target.utf8), host: "localhost", origin: nil, authorization: nil, client: client,
      body: body, peer: .loopback)
  }
}
