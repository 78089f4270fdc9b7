import CTrunklineCurl
import Glibc
import HTTP
import TrunklineBytes
import TrunklinePlatform

/// One `CURL`: a request and its answer so far. Lives until the answer is complete; one thread.
final class Transfer {
  let easy: UnsafeMutableRawPointer
  var key: OpaquePointer { OpaquePointer(easy) }
  private var headers: UnsafeMutablePointer<curl_slist>?
  private let body: [UInt8]
  private var answer: [UInt8] = []
  /// libcurl's error text; libcurl writes here while the handle lives.
  private let details: UnsafeMutablePointer<CChar>
  private let completion: (Ended) -> Void
  private let showsCertificate: Bool
  /// The longest accepted answer; nil: the bytes beyond `Limits.answerBytes` are dropped.
  private let answerBytes: Int?
  private var isTooLong = false
  /// How often libcurl began the request on a connection: it repeats it on a new one if a kept connection proves to be broken.
  private var beginnings = 0

  /// The result, and the state of the connection that it shows.
  struct Ended {
    var result: Result<HTTPClientResponse, HTTPFailure>
    /// The request opened a new connection.
    var isOnNew: Bool
    /// The time ran out before the answer.
    var isTimeout = false
    /// A connection broke without an answer, and libcurl used another.
    var wentAgain: Bool
  }

  /// Nil if memory is short or a header holds a line break or a zero.
  init?(_ request: HTTPClientRequest, tls: TLSFiles, completion: @escaping (Ended) -> Void) {
    guard let easy = curl_easy_init() else { return nil }
    (self.easy, body, self.completion, showsCertificate) = (easy, request.body, completion, tls.certificate != nil)
    answerBytes = request.answerBytes
    details = .allocate(capacity: Int(CURL_ERROR_SIZE))
    details.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    // Without these, libcurl adds both to a POST, and waits for a 100 with bodies above 1 MB.
    for line in request.headers.map({ "\($0.name): \($0.value)" }) + ["expect:", "accept:"] {
      guard !line.utf8.contains(where: { $0 == 13 || $0 == 10 || $0 == 0 }) else { return nil }
      headers = curl_slist_append(headers, line)
    }
    _ = ccurl_set_pointer(easy, CURLOPT_ERRORBUFFER, details)
    _ = ccurl_set_text(easy, CURLOPT_URL, request.url)
    _ = ccurl_set_text(easy, CURLOPT_PROTOCOLS_STR, request.protocols)
    _ = ccurl_set_long(easy, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
    // Wait until the first connection shows whether it allows many streams, instead of opening a second one.
    _ = ccurl_set_long(easy, CURLOPT_PIPEWAIT, 1)
    _ = ccurl_set_long(easy, CURLOPT_NOSIGNAL, 1)
    limitPatience(request.unacknowledged)
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
      // libcurl copies the body: an array's storage has no lasting address.
      _ = body.withUnsafeBytes { ccurl_set_pointer(easy, CURLOPT_COPYPOSTFIELDS, $0.baseAddress) }
    }
    _ = ccurl_set_pointer(easy, CURLOPT_WRITEDATA, Unmanaged.passUnretained(self).toOpaque())
    _ = ccurl_set_write(easy) { bytes, size, count, user in
      guard let user, let bytes else { return 0 }
      let isAccepted = Unmanaged<Transfer>.fromOpaque(user).takeUnretainedValue().received(
        UnsafeRawBufferPointer(start: bytes, count: size * count))
      return isAccepted ? size * count : 0
    }
  }

  /// The kernel breaks a connection whose bytes the server's system does not acknowledge for this long, keep-alives included. The
  /// keep-alives also prevent that most firewalls drop the connection.
  private func limitPatience(_ unacknowledged: Duration) {
    _ = ccurl_set_long(easy, CURLOPT_TCP_KEEPALIVE, 1)
    _ = ccurl_set_long(easy, CURLOPT_TCP_KEEPIDLE, Limits.keepAliveIdleSeconds)
    _ = ccurl_set_long(easy, CURLOPT_TCP_KEEPINTVL, Limits.keepAliveIntervalSeconds)
    _ = ccurl_set_pointer(easy, CURLOPT_SOCKOPTDATA, UnsafeRawPointer(bitPattern: max(1, Int(unacknowledged.milliseconds))))
    _ = ccurl_set_sockopt(easy) { user, socket, _ in
      var milliseconds = Int32(clamping: Int(bitPattern: user))
      setsockopt(socket, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &milliseconds, socklen_t(MemoryLayout<Int32>.size))
      return CURL_SOCKOPT_OK
    }
    _ = ccurl_set_pointer(easy, CURLOPT_PREREQDATA, Unmanaged.passUnretained(self).toOpaque())
    _ = ccurl_set_prerequest(easy) { user, _, _, _, _ in
      if let user { Unmanaged<Transfer>.fromOpaque(user).takeUnretainedValue().beginnings += 1 }
      return CURL_PREREQFUNC_OK
    }
  }

  deinit {
    curl_easy_cleanup(easy)
    details.deallocate()
    curl_slist_free_all(headers)
  }

  /// True if a new connection that showed our certificate broke in its handshake or before any answer. In TLS 1.3 a server
  /// refuses a certificate only after the handshake (RFC 8446 §4.4.2.4), and its alert is lost when our request crosses it.
  private func brokeAtCertificate(_ result: CURLcode) -> Bool {
    var (connects, status) = (0, 0)
    var handshake: curl_off_t = 0
    _ = ccurl_get_long(easy, CURLINFO_NUM_CONNECTS, &connects)
    _ = ccurl_get_long(easy, CURLINFO_RESPONSE_CODE, &status)
    _ = ccurl_get_offset(easy, CURLINFO_APPCONNECT_TIME_T, &handshake)
    let isNew = connects > 0 && handshake > 0 && status == 0
    return showsCertificate && (result == CURLE_SSL_CONNECT_ERROR || (isNew && result != CURLE_OPERATION_TIMEDOUT))
  }

  /// `certificate expired` of OpenSSL's `…:SSL routines::sslv3 alert certificate expired, errno 0` (RFC 8446 §6.2).
  static func alert(in text: String) -> String? {
    guard let start = text.firstRange(of: " alert ")?.upperBound else { return nil }
    let words = text[start...].prefix { $0.isLetter || $0 == " " }
    return words.isEmpty || words.utf8.count > 40 ? nil : String(words)
  }

  /// Bytes beyond `Limits.answerBytes` are read and dropped: closing a shared connection would break its other streams. A request
  /// with a limit of its own requires the whole answer and shares no connection: returning false ends its transfer.
  private func received(_ bytes: UnsafeRawBufferPointer) -> Bool {
    if let answerBytes, answer.count + bytes.count > answerBytes {
      isTooLong = true
      return false
    }
    answer.append(contentsOf: bytes.prefix(max(0, (answerBytes ?? Limits.answerBytes) - answer.count)))
    return true
  }

  /// A header of the final answer; nil: the answer has none of this name.
  private func header(_ name: String) -> String? {
    var found: UnsafeMutablePointer<curl_header>?
    guard curl_easy_header(easy, name, 0, UInt32(CURLH_HEADER), -1, &found) == CURLHE_OK, let found else { return nil }
    return String(cString: found.pointee.value)
  }

  func finish(_ code: CURLcode) {
    var connects = 0
    _ = ccurl_get_long(easy, CURLINFO_NUM_CONNECTS, &connects)
    completion(
      Ended(
        result: result(code), isOnNew: connects > 0, isTimeout: code == CURLE_OPERATION_TIMEDOUT, wentAgain: beginnings > 1))
  }

  private func result(_ result: CURLcode) -> Result<HTTPClientResponse, HTTPFailure> {
    if isTooLong { return .failure(HTTPFailure(text: "the answer has more than \(answerBytes ?? 0) bytes")) }
    guard result == CURLE_OK else {
      // The details hold times and ports; only the peer's alert has few enough values for a metric.
      let alert = Self.alert(in: String(cString: details)).map { " (TLS alert: \($0))" } ?? ""
      let shown = brokeAtCertificate(result) ? ", after our certificate was shown" : ""
      return .failure(HTTPFailure(text: String(cString: curl_easy_strerror(result)) + shown + alert))
    }
    var status = 0
    _ = ccurl_get_long(easy, CURLINFO_RESPONSE_CODE, &status)
    var seconds: curl_off_t = 0
    _ = ccurl_get_offset(easy, CURLINFO_RETRY_AFTER, &seconds)
    return .success(
      HTTPClientResponse(
        status: status, retryAfter: seconds > 0 ? Int(min(seconds, 86_400)) : nil,
        freshSeconds: CacheLifetime.seconds(cacheControl: header("Cache-Control"), age: header("Age")), body: answer))
  }
}
