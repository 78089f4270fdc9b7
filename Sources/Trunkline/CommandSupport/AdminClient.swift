package import Bytes
import CCurl
import Foundation
import Platform

/// One HTTP request to the admin endpoint; blocks, for the command line only.
package struct AdminClient {
  package struct Answer {
    package var status: Int
    package var bytes: [UInt8]
    package var body: String { String(decoding: bytes, as: UTF8.self) }
    /// Of a refusal: the message of its JSON, or its text.
    package var reason: String {
      struct Refusal: Decodable {
        struct Words: Decodable { var message: String }
        var error: Words
      }
      let refusal = try? JSONDecoder().decode(Refusal.self, from: Data(bytes))
      return refusal?.error.message ?? body.trimmingCharacters(in: .whitespacesAndNewlines)
    }
  }
  package struct Failure: Error, CustomStringConvertible {
    package var description: String
    package init(description: String) { self.description = description }
  }

  package static let timeoutSeconds = 5
  static let answerBytes = 16 << 20

  let address: SocketAddress
  let token: String?
  /// The port's own certificate where it speaks TLS: it must be this one, whatever name it is for.
  var certificate: String?
  /// Seconds.
  package var timeout: Int

  package init(address: SocketAddress, token: String?, certificate: String? = nil, timeout: Int = Self.timeoutSeconds) {
    (self.address, self.token, self.certificate, self.timeout) = (address, token, certificate, timeout)
  }

  package func request(_ method: String, _ path: String, body text: String = "") throws -> Answer {
    guard let easy = curl_easy_init() else { throw Failure(description: "libcurl cannot be started") }
    defer { curl_easy_cleanup(easy) }
    var fields = curl_slist_append(nil, "Content-Type: application/json")
    if let token { fields = curl_slist_append(fields, "Authorization: Bearer \(token)") }
    defer { curl_slist_free_all(fields) }
    _ = ccurl_set_text(easy, CURLOPT_URL, "\(certificate == nil ? "http" : "https")://\(address)\(path)")
    _ = ccurl_set_text(easy, CURLOPT_PROTOCOLS_STR, "http,https")
    _ = ccurl_set_text(easy, CURLOPT_PROXY, "")
    _ = ccurl_set_list(easy, CURLOPT_HTTPHEADER, fields)
    _ = ccurl_set_long(easy, CURLOPT_NOSIGNAL, 1)
    _ = ccurl_set_long(easy, CURLOPT_TIMEOUT, timeout)
    if method != "GET" {
      _ = ccurl_set_long(easy, CURLOPT_POSTFIELDSIZE, text.utf8.count)
      _ = ccurl_set_text(easy, CURLOPT_COPYPOSTFIELDS, text)
      _ = ccurl_set_text(easy, CURLOPT_CUSTOMREQUEST, method)
    }
    if let certificate {
      _ = ccurl_set_text(easy, CURLOPT_CAINFO, certificate)
      _ = ccurl_set_long(easy, CURLOPT_SSL_VERIFYHOST, 0)
    }
    let body = Body()
    _ = ccurl_set_pointer(easy, CURLOPT_WRITEDATA, Unmanaged.passUnretained(body).toOpaque())
    _ = ccurl_set_write(easy) { bytes, size, count, user in
      guard let bytes, let user else { return 0 }
      let body = Unmanaged<Body>.fromOpaque(user).takeUnretainedValue()
      guard body.bytes.count + size * count <= AdminClient.answerBytes else { return 0 }
      body.bytes += UnsafeRawBufferPointer(start: bytes, count: size * count)
      return size * count
    }
    let result = withExtendedLifetime(body) { curl_easy_perform(easy) }
    guard result == CURLE_OK else {
      throw Failure(
        description: "cannot reach the gateway's admin endpoint at \(address): \(String(cString: curl_easy_strerror(result)))")
    }
    var status = 0
    _ = ccurl_get_long(easy, CURLINFO_RESPONSE_CODE, &status)
    return Answer(status: status, bytes: body.bytes)
  }

  private final class Body { var bytes: [UInt8] = [] }
}
