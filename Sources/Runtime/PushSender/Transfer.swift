import Bytes
import CCurl

/// One `CURL`: a request, and what has come of its answer. Lives until its answer; one thread.
final class Transfer {
  let easy: UnsafeMutableRawPointer
  var key: OpaquePointer { OpaquePointer(easy) }
  private var headers: UnsafeMutablePointer<curl_slist>?
  private let body: [UInt8]
  private var answer: [UInt8] = []
  private let completion: HTTPTransfers.Completion

  /// Nil if memory is short or a header holds a line break.
  init?(_ request: HTTPRequest, tls: TLSFiles, completion: @escaping HTTPTransfers.Completion) {
    guard let easy = curl_easy_init() else { return nil }
    (self.easy, body, self.completion) = (easy, request.body, completion)
    // libcurl would add both to a POST, and wait for a 100 with bodies above 1 MB.
    for line in request.headers.map({ "\($0.name): \($0.value)" }) + ["expect:", "accept:"] {
      guard !line.utf8.contains(where: { $0 == 13 || $0 == 10 || $0 == 0 }) else { return nil }
      headers = curl_slist_append(headers, line)
    }
    _ = ccurl_set_text(easy, CURLOPT_URL, request.url)
    _ = ccurl_set_text(easy, CURLOPT_PROTOCOLS_STR, request.protocols)
    _ = ccurl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
    // Wait for the first connection to tell whether it takes many streams, in place of opening a second.
    _ = ccurl_set_long(easy, CURLOPT_PIPEWAIT, 1)
    _ = ccurl_set_long(easy, CURLOPT_NOSIGNAL, 1)
    _ = ccurl_set_long(easy, CURLOPT_TCP_KEEPALIVE, 1)
    _ = ccurl_set_long(easy, CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    _ = ccurl_set_long(easy, CURLOPT_TIMEOUT_MS, Int(request.timeout.milliseconds))
    _ = ccurl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, Int(min(Limits.connectTime, request.timeout).milliseconds))
    _ = ccurl_set_list(easy, CURLOPT_HTTPHEADER, headers)
    if let file = tls.authorities { _ = ccurl_set_text(easy, CURLOPT_CAINFO, file) }
    if let file = tls.certificate { _ = ccurl_set_text(easy, CURLOPT_SSLCERT, file) }
    if let file = tls.key { _ = ccurl_set_text(easy, CURLOPT_SSLKEY, file) }
    if request.method == "POST" {
      _ = ccurl_set_long(easy, CURLOPT_POST, 1)
      _ = ccurl_set_long(easy, CURLOPT_POSTFIELDSIZE, body.count)
      // Copied by libcurl: an array's storage has no address to keep.
      _ = body.withUnsafeBytes { ccurl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, $0.baseAddress) }
    }
    _ = ccurl_set_pointer(easy, CURLOPT_WRITEDATA, Unmanaged.passUnretained(self).toOpaque())
    _ = ccurl_set_write(easy) { bytes, size, count, user in
      guard let user, let bytes else { return 0 }
      Unmanaged<Transfer>.fromOpaque(user).takeUnretainedValue().received(
        UnsafeRawBufferPointer(start: bytes, count: size * count))
      return size * count
    }
  }

  deinit {
    curl_easy_cleanup(easy)
    curl_slist_free_all(headers)
  }

  /// What is beyond the limit is read and forgotten: closing a shared connection would break its other streams.
  private func received(_ bytes: UnsafeRawBufferPointer) {
    answer.append(contentsOf: bytes.prefix(max(0, Limits.answerBytes - answer.count)))
  }

  func finish(_ result: CURLcode) {
    guard result == CURLE_OK else {
      return completion(.failure(HTTPFailure(text: String(cString: curl_easy_strerror(result)))))
    }
    var status = 0
    _ = ccurl_get_long(easy, CURLINFO_RESPONSE_CODE, &status)
    var seconds: curl_off_t = 0
    _ = ccurl_get_offset(easy, CURLINFO_RETRY_AFTER, &seconds)
    completion(.success(HTTPAnswer(status: status, retryAfter: seconds > 0 ? Int(min(seconds, 86_400)) : nil, body: answer)))
  }
}
