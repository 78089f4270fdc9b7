import CNGHTTP2

/// One received request; header names are lower case, `:path` and `:method` among them.
struct ReceivedRequest {
  var stream: Int32
  var headers: [String: String] = [:]
  var body: [UInt8] = []
  var headerBytes = 0
  var isTooLarge = false
}

/// The server's end of one HTTP/2 connection (RFC 9113) over nghttp2: received bytes become requests, answers become bytes to
/// send. One thread.
final class HTTP2Server {
  private var session: OpaquePointer?
  private var requests: [Int32: ReceivedRequest] = [:]
  private var bodies: [Int32: (bytes: [UInt8], sent: Int)] = [:]
  /// Complete requests, in the order of their ends.
  private(set) var complete: [ReceivedRequest] = []

  init?() {
    var callbacks: OpaquePointer?
    guard nghttp2_session_callbacks_new(&callbacks) == 0, let callbacks else { return nil }
    defer { nghttp2_session_callbacks_del(callbacks) }
    Self.set(callbacks)
    var option: OpaquePointer?
    guard nghttp2_option_new(&option) == 0, let option else { return nil }
    defer { nghttp2_option_del(option) }
    // libcurl 7.88 resets every ended stream, which nghttp2 treats as an attack after the thousandth.
    nghttp2_option_set_stream_reset_rate_limit(option, Limits.resets, Limits.resets)
    guard nghttp2_session_server_new2(&session, callbacks, Unmanaged.passUnretained(self).toOpaque(), option) == 0 else {
      return nil
    }
    var setting = nghttp2_settings_entry(
      settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue), value: Limits.streams)
    nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), &setting, 1)
  }

  deinit { nghttp2_session_del(session) }

  /// False if the peer broke the protocol.
  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
    nghttp2_session_mem_recv(session, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count) == bytes.count
  }

  func drainComplete() -> [ReceivedRequest] {
    defer { complete.removeAll(keepingCapacity: true) }
    return complete
  }

  func answer(_ stream: Int32, status: Int, headers: [(String, String)], body: [UInt8]) {
    bodies[stream] = (body, 0)
    var provider = nghttp2_data_provider()
    provider.read_callback = { _, stream, buffer, length, flags, _, user in
      guard let user, let buffer, let flags else { return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue) }
      return Unmanaged<HTTP2Server>.fromOpaque(user).takeUnretainedValue().read(stream, buffer, length, flags)
    }
    let all = [(":status", "\(status)")] + headers
    // nghttp2 copies names and values before it returns.
    withNames(all) { list in _ = nghttp2_submit_response(session, stream, list.baseAddress, list.count, &provider) }
  }

  func goAway(_ reason: String) {
    let text = Array(reason.utf8)
    nghttp2_submit_goaway(
      session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nghttp2_session_get_last_proc_stream_id(session),
      UInt32(NGHTTP2_NO_ERROR.rawValue), text,
      text.count)
  }

  func reset(_ stream: Int32) {
    nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, UInt32(NGHTTP2_INTERNAL_ERROR.rawValue))
  }

  /// Passes the bytes that the connection must write now to `write`.
  func drain(_ write: (UnsafeRawBufferPointer) -> Void) {
    var bytes: UnsafePointer<UInt8>?
    while true {
      let count = nghttp2_session_mem_send(session, &bytes)
      guard count > 0, let bytes else { return }
      write(UnsafeRawBufferPointer(start: bytes, count: count))
    }
  }

  private func read(_ stream: Int32, _ buffer: UnsafeMutablePointer<UInt8>, _ length: Int, _ flags: UnsafeMutablePointer<UInt32>)
    -> Int
  {
    guard let body = bodies[stream] else { return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue) }
    let count = min(length, body.bytes.count - body.sent)
    for index in 0..<count { buffer[index] = body.bytes[body.sent + index] }
    bodies[stream]?.sent += count
    if body.sent + count == body.bytes.count {
      flags.pointee |= UInt32(NGHTTP2_DATA_FLAG_EOF.rawValue)
      bodies[stream] = nil
    }
    return count
  }

  // MARK: callbacks of nghttp2

  private static func set(_ callbacks: OpaquePointer) {
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, user in
      guard let frame, frame.pointee.hd.type == UInt8(NGHTTP2_HEADERS.rawValue) else { return 0 }
      let stream = frame.pointee.hd.stream_id
      me(user)?.requests[stream] = ReceivedRequest(stream: stream)
      return 0
    }
    nghttp2_session_callbacks_set_on_header_callback(callbacks) { _, frame, name, nameLength, value, valueLength, _, user in
      guard let frame, let name, let value, let server = me(user) else { return 0 }
      server.header(
        frame.pointee.hd.stream_id, String(decoding: UnsafeBufferPointer(start: name, count: nameLength), as: UTF8.self),
        String(decoding: UnsafeBufferPointer(start: value, count: valueLength), as: UTF8.self))
      return 0
    }
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, _, stream, bytes, length, user in
      guard let bytes else { return 0 }
      me(user)?.data(stream, UnsafeBufferPointer(start: bytes, count: length))
      return 0
    }
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
      guard let frame, frame.pointee.hd.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0, let server = me(user) else {
        return 0
      }
      if let request = server.requests.removeValue(forKey: frame.pointee.hd.stream_id) { server.complete.append(request) }
      return 0
    }
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, stream, _, user in
      guard let server = me(user) else { return 0 }
      server.requests[stream] = nil
      server.bodies[stream] = nil
      return 0
    }
  }

  fileprivate func header(_ stream: Int32, _ name: String, _ value: String) {
    guard var request = requests[stream] else { return }
    request.headerBytes += name.utf8.count + value.utf8.count
    if request.headerBytes > Limits.headerBytes { request.isTooLarge = true } else { request.headers[name] = value }
    requests[stream] = request
  }

  fileprivate func data(_ stream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
    guard let count = requests[stream]?.body.count else { return }
    if count + bytes.count > Limits.bodyBytes {
      requests[stream]?.isTooLarge = true
    } else {
      requests[stream]?.body.append(contentsOf: bytes)
    }
  }
}

private func me(_ user: UnsafeMutableRawPointer?) -> HTTP2Server? {
  user.map { Unmanaged<HTTP2Server>.fromOpaque($0).takeUnretainedValue() }
}

/// Name and value pairs in the form of nghttp2, valid during `body`.
private func withNames(_ headers: [(String, String)], _ body: (UnsafeMutableBufferPointer<nghttp2_nv>) -> Void) {
  var bytes: [UInt8] = []
  var spans: [(name: Range<Int>, value: Range<Int>)] = []
  for (name, value) in headers {
    let start = bytes.count
    bytes.append(contentsOf: name.utf8)
    let middle = bytes.count
    bytes.append(contentsOf: value.utf8)
    spans.append((start..<middle, middle..<bytes.count))
  }
  bytes.withUnsafeMutableBufferPointer { bytes in
    guard let base = bytes.baseAddress else { return }
    var list = spans.map {
      nghttp2_nv(
        name: base + $0.name.lowerBound, value: base + $0.value.lowerBound, namelen: $0.name.count, valuelen: $0.value.count,
        flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue))
    }
    list.withUnsafeMutableBufferPointer { body($0) }
  }
}
