import COpenSSL

extension HTTPRequest {
  /// SHA-256 of method, path, query and body: what makes it the same request. Nil if OpenSSL fails.
  public var digest: [UInt8]? {
    let bytes = Array("\(method) \(path)?\(query)\n".utf8) + body
    var out = [UInt8](repeating: 0, count: 32)
    return EVP_Digest(bytes, bytes.count, &out, nil, EVP_sha256(), nil) == 1 ? out : nil
  }

  /// For tests of handlers.
  public init(_ method: String, _ path: String, body: [UInt8] = [], client: String = "") {
    self.init(
      method: method, path: path, query: "", host: "localhost", origin: nil, authorization: nil, client: client, body: body,
      peer: .loopback)
  }
}
