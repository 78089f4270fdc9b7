import Bytes
import CWebSockets
import Platform

/// One HTTP request on its way to its answer.
final class Exchange {
  let number: UInt64
  let wsi: OpaquePointer
  var request: HTTPRequest
  /// Waits for the rest of the body.
  var isReading = false
  var response: HTTPResponse?
  /// Bytes of the body sent; nil before the headers.
  var sent: Int?

  init(number: UInt64, wsi: OpaquePointer, request: HTTPRequest) {
    (self.number, self.wsi, self.request) = (number, wsi, request)
  }
}

extension LWSServer {
  static let methods: [(name: String, token: lws_token_indexes)] = [
    ("GET", WSI_TOKEN_GET_URI), ("HEAD", WSI_TOKEN_HEAD_URI), ("POST", WSI_TOKEN_POST_URI), ("PUT", WSI_TOKEN_PUT_URI),
    ("DELETE", WSI_TOKEN_DELETE_URI), ("PATCH", WSI_TOKEN_PATCH_URI), ("OPTIONS", WSI_TOKEN_OPTIONS_URI),
  ]

  /// libwebsockets keeps a query in pieces, which it would join with commas.
  private func query(_ wsi: OpaquePointer) -> String {
    var pieces: [String] = []
    var buffer = [CChar](repeating: 0, count: Limits.headerTextBytes + 1)
    while pieces.count < Limits.queryFields {
      let count = Int(lws_hdr_copy_fragment(wsi, &buffer, Int32(buffer.count), WSI_TOKEN_HTTP_URI_ARGS, Int32(pieces.count)))
      guard count > 0, count < buffer.count else { break }
      pieces.append(String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }
    return pieces.joined(separator: "&")
  }

  /// Headers are in; `path` is the URI without its query.
  func requested(_ wsi: OpaquePointer, _ path: UnsafeRawBufferPointer) -> Int32 {
    dropExchange(wsi)
    guard let peer = peers[wsi], let method = Self.methods.first(where: { lws_hdr_total_length(wsi, $0.token) > 0 })?.name
    else {
      return -1
    }
    lastNumber += 1
    let request = HTTPRequest(
      method: method, path: String(decoding: path, as: UTF8.self), query: query(wsi),
      host: header(wsi, WSI_TOKEN_HOST) ?? "", origin: header(wsi, WSI_TOKEN_ORIGIN),
      authorization: header(wsi, WSI_TOKEN_HTTP_AUTHORIZATION).map { Redacted($0) }, body: [], peer: peer)
    let exchange = Exchange(number: lastNumber, wsi: wsi, request: request)
    exchanges[wsi] = exchange
    exchangeOfNumber[exchange.number] = exchange
    clws_timeout_content(wsi, Limits.answerSeconds)
    let length = header(wsi, WSI_TOKEN_HTTP_CONTENT_LENGTH).map { Int($0) ?? .max } ?? 0
    if length > Limits.bodyBytes || lws_hdr_total_length(wsi, WSI_TOKEN_HTTP_TRANSFER_ENCODING) > 0 {
      answer(exchange, .text(413, "at most \(Limits.bodyBytes) bytes, with content-length"))
    } else if length > 0, method != "GET", method != "HEAD" {
      exchange.isReading = true
    } else {
      dispatch(exchange)
    }
    return 0
  }

  func bodyReceived(_ wsi: OpaquePointer, _ piece: UnsafeRawBufferPointer) -> Int32 {
    guard let exchange = exchanges[wsi], exchange.isReading else { return 0 }
    guard exchange.request.body.count + piece.count <= Limits.bodyBytes else { return -1 }
    exchange.request.body.append(contentsOf: piece)
    return 0
  }

  func bodyEnded(_ wsi: OpaquePointer) {
    guard let exchange = exchanges[wsi], exchange.isReading else { return }
    exchange.isReading = false
    dispatch(exchange)
  }

  private func dispatch(_ exchange: Exchange) {
    let number = exchange.number
    delegate.requestReceived(exchange.request) { [self] response in
      shared.withLock { $0.answers.append((number, response)) }
      wake()
    }
  }

  func answer(_ exchange: Exchange, _ response: HTTPResponse) {
    guard exchange.response == nil else { return }
    exchange.response = response
    metrics.requests.counter(String(response.status)).increment()
    lws_callback_on_writable(exchange.wsi)
  }

  func dropExchange(_ wsi: OpaquePointer) {
    if let exchange = exchanges.removeValue(forKey: wsi) { exchangeOfNumber[exchange.number] = nil }
  }

  func writeable(_ exchange: Exchange) -> Int32 {
    guard let response = exchange.response else { return 0 }
    let wsi = exchange.wsi
    let isHead = exchange.request.method == "HEAD"
    guard let sent = exchange.sent else {
      guard writeHeaders(response, to: wsi) else { return -1 }
      exchange.sent = 0
      if isHead || response.body.isEmpty { return completed(wsi) }
      lws_callback_on_writable(wsi)
      return 0
    }
    let end = min(sent + Limits.writeBytes, response.body.count)
    let isLast = end == response.body.count
    guard write(response.body[sent..<end], isLast ? LWS_WRITE_HTTP_FINAL : LWS_WRITE_HTTP, to: wsi) else { return -1 }
    exchange.sent = end
    if isLast { return completed(wsi) }
    lws_callback_on_writable(wsi)
    return 0
  }

  private func completed(_ wsi: OpaquePointer) -> Int32 {
    dropExchange(wsi)
    return lws_http_transaction_completed(wsi) != 0 ? -1 : 0
  }

  private func writeHeaders(_ response: HTTPResponse, to wsi: OpaquePointer) -> Bool {
    let room = clws_pre()
    var buffer = [UInt8](repeating: 0, count: room + 4_096)
    let common: [(name: String, value: String)] = [
      ("content-type", response.contentType), ("x-content-type-options", "nosniff"), ("referrer-policy", "no-referrer"),
    ]
    return buffer.withUnsafeMutableBufferPointer { buffer in
      guard let base = buffer.baseAddress else { return false }
      let start = base + room
      let end = base + buffer.count - 1
      var cursor: UnsafeMutablePointer<UInt8>? = start
      guard lws_add_http_header_status(wsi, UInt32(response.status), &cursor, end) == 0,
        lws_add_http_header_content_length(wsi, UInt64(response.body.count), &cursor, end) == 0
      else { return false }
      for (name, value) in common + response.headers {
        let bytes = Array(value.utf8)
        guard lws_add_http_header_by_name(wsi, name + ":", bytes, Int32(clamping: bytes.count), &cursor, end) == 0 else {
          return false
        }
      }
      return lws_finalize_write_http_header(wsi, start, &cursor, end) == 0
    }
  }
}
