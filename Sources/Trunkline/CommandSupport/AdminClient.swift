import CTrunklineCurl
import Foundation
package import TrunklineBytes
import TrunklinePlatform

/// One HTTP request to the admin endpoint; blocks, for the command line only.
package struct AdminClient {
  package struct Answer {
    package var status: Int
    package var bytes: [UInt8]
    package init(status: Int, bytes: [UInt8]) { (self.status, self.bytes) = (status, bytes) }
    package var body: String { String(decoding: bytes, as: UTF8.self) }
    /// The reason of a refusal: the detail of its problem (RFC 9457), or its text.
    package var reason: String {
      struct Problem: Decodable { var detail: String }
      let problem = try? JSONDecoder().decode(Problem.self, from: Data(bytes))
      return problem?.detail ?? body.trimmingCharacters(in: .whitespacesAndNewlines)
    }
  }
  package struct Failure: Error, CustomStringConvertible {
    package var description: String
    package init(description: String) { self.description = description }
  }

  package static let timeoutSeconds = 5
  private static let connectSeconds = 5
  private static let keepAliveIdleSeconds = 15
  private static let keepAliveIntervalSeconds = 5
  /// The largest answer, or line of a followed one: all devices that a gateway may have are some 100 MiB.
  static let answerBytes = 256 << 20

  let address: SocketAddress
  let token: String?
  /// The port's own certificate where it uses TLS: the server must present this one, whatever name it is for.
  var certificate: String?
  /// Seconds without an octet; a long list may take longer while it arrives.
  package var timeout: Int

  package init(address: SocketAddress, token: String?, certificate: String? = nil, timeout: Int = Self.timeoutSeconds) {
    (self.address, self.token, self.certificate, self.timeout) = (address, token, certificate, timeout)
  }

  package func request(_ method: String, path: String, body text: String = "", type: String = "application/json") throws
    -> Answer
  {
    let body = Body { $0.count <= AdminClient.answerBytes }
    return Answer(
      status: try perform(method, path: path, text: text, type: type, fields: [], timeout: timeout, body), bytes: body.bytes)
  }

  /// Reads an answer without a stated end: `line` gets each of its lines until it returns false or the connection ends. Blocks.
  /// Returns the status; the lines of an answer other than 200 are passed, too.
  package func follow(_ path: String, fields: [String], line: @escaping (String) -> Bool) throws -> Int {
    let body = Body { bytes in
      while let end = bytes.firstIndex(of: 0x0a) {
        let text = String(decoding: bytes[..<end], as: UTF8.self)
        bytes.removeSubrange(...end)
        guard line(text) else { return false }
      }
      return bytes.count <= AdminClient.answerBytes
    }
    return try perform("GET", path: path, text: "", type: "application/json", fields: fields, timeout: 0, body)
  }

  private func perform(
    _ method: String, path: String, text: String, type: String, fields extra: [String], timeout: Int, _ body: Body
  ) throws -> Int {
    guard let easy = curl_easy_init() else { throw Failure(description: "libcurl cannot be started") }
    defer { curl_easy_cleanup(easy) }
    var fields = curl_slist_append(nil, "Content-Type: \(type)")
    for field in extra { fields = curl_slist_append(fields, field) }
    if let token { fields = curl_slist_append(fields, "Authorization: Bearer \(token)") }
    defer { curl_slist_free_all(fields) }
    _ = ccurl_set_text(easy, CURLOPT_URL, "\(certificate == nil ? "http" : "https")://\(address)\(path)")
    _ = ccurl_set_text(easy, CURLOPT_PROTOCOLS_STR, "http,https")
    _ = ccurl_set_text(easy, CURLOPT_PROXY, "")
    _ = ccurl_set_list(easy, CURLOPT_HTTPHEADER, fields)
    _ = ccurl_set_long(easy, CURLOPT_NOSIGNAL, 1)
    // a stream has no time-out: TCP checks whether the gateway still exists
    _ = ccurl_set_long(easy, CURLOPT_CONNECTTIMEOUT, timeout == 0 ? Self.connectSeconds : timeout)
    _ = ccurl_set_long(easy, CURLOPT_TCP_KEEPALIVE, 1)
    _ = ccurl_set_long(easy, CURLOPT_TCP_KEEPIDLE, Self.keepAliveIdleSeconds)
    _ = ccurl_set_long(easy, CURLOPT_TCP_KEEPINTVL, Self.keepAliveIntervalSeconds)
    // a long answer may take as long as data arrives
    _ = ccurl_set_long(easy, CURLOPT_LOW_SPEED_LIMIT, timeout == 0 ? 0 : 1)
    _ = ccurl_set_long(easy, CURLOPT_LOW_SPEED_TIME, timeout)
    if method != "GET" {
      _ = ccurl_set_long(easy, CURLOPT_POSTFIELDSIZE, text.utf8.count)
      _ = ccurl_set_text(easy, CURLOPT_COPYPOSTFIELDS, text)
      _ = ccurl_set_text(easy, CURLOPT_CUSTOMREQUEST, method)
    }
    if let certificate {
      _ = ccurl_set_text(easy, CURLOPT_CAINFO, certificate)
      _ = ccurl_set_long(easy, CURLOPT_SSL_VERIFYHOST, 0)
    }
    _ = ccurl_set_pointer(easy, CURLOPT_WRITEDATA, Unmanaged.passUnretained(body).toOpaque())
    _ = ccurl_set_write(easy) { bytes, size, count, user in
      guard let bytes, let user else { return 0 }
      let body = Unmanaged<Body>.fromOpaque(user).takeUnretainedValue()
      body.bytes += UnsafeRawBufferPointer(start: bytes, count: size * count)
      guard body.handle(&body.bytes) else { return 0 }
      return size * count
    }
    let result = withExtendedLifetime(body) { curl_easy_perform(easy) }
    var status = 0
    _ = ccurl_get_long(easy, CURLINFO_RESPONSE_CODE, &status)
    // a stream ends only with its connection
    guard result == CURLE_OK || timeout == 0 && status != 0 else {
      throw Failure(
        description: "cannot reach the gateway's admin endpoint at \(address): \(String(cString: curl_easy_strerror(result)))")
    }
    return status
  }

  private final class Body {
    var bytes: [UInt8] = []
    /// Called after each piece: false ends the transfer.
    let handle: (inout [UInt8]) -> Bool
    init(_ handle: @escaping (inout [UInt8]) -> Bool) { self.handle = handle }
  }
}
