import TrunklineBytes
import TrunklinePlatform

/// One client of the stand-in: socket, TLS and HTTP/2. One thread.
final class SandboxConnection {
  private let socket: TCPSocket
  private let loop: EventLoop
  private let tls: TLSSession
  private let http: HTTP2Server
  private let requested: (SandboxConnection, ReceivedRequest) -> Void
  private let closed: (Int32) -> Void
  /// Called with the reason when the handshake has failed.
  private let refused: (String) -> Void
  private var outgoing: [UInt8] = []
  private var isClosing = false
  private var isClosed = false

  init?(
    _ socket: TCPSocket, _ context: TLSContext, loop: EventLoop,
    requested: @escaping (SandboxConnection, ReceivedRequest) -> Void,
    closed: @escaping (Int32) -> Void, refused: @escaping (String) -> Void
  ) {
    guard let tls = TLSSession(context, isServer: true), let http = HTTP2Server() else { return nil }
    (self.socket, self.loop, self.tls, self.http, self.requested, self.closed) = (socket, loop, tls, http, requested, closed)
    self.refused = refused
    guard (try? loop.register(socket.fd, .readable, handler: { [unowned self] in ready($0) })) != nil else { return nil }
  }

  func answer(_ stream: Int32, _ outcome: SandboxRules.Outcome) {
    guard !isClosed else { return }
    http.answer(stream, status: outcome.status, headers: outcome.headers, body: outcome.body)
    flush()
  }

  func reset(_ stream: Int32) {
    guard !isClosed else { return }
    http.reset(stream)
    flush()
  }

  func goAway() {
    guard !isClosed else { return }
    http.goAway(#"{"reason":"Shutdown"}"#)
    isClosing = true
    flush()
  }

  private func ready(_ events: IOEvents) {
    if events.contains(.writable) { flush() }
    guard events.contains(.readable) || events.hasFailure, !isClosed else { return }
    withUnsafeTemporaryAllocation(byteCount: 32_768, alignment: 8) { buffer in
      switch try? socket.read(into: buffer) {
      case .bytes(let count): receive(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      case .wait: break
      case .closed, nil: close()
      }
    }
  }

  private func receive(_ bytes: UnsafeRawBufferPointer) {
    var isFine = true
    let wasOpen = tls.state == .open
    withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 8) { buffer in
      tls.received(bytes, plain: { isFine = isFine && http.receive($0) }, into: buffer)
    }
    for request in http.drainComplete() where !isClosed { requested(self, request) }
    flush()
    if !wasOpen, let failure = tls.failure { refused(failure) }
    if tls.state == .closed || tls.state == .failed || !isFine { close() }
  }

  private func flush() {
    guard !isClosed else { return }
    if tls.state == .open { http.drain { _ = tls.write(Array($0)) } }
    tls.drainUnsent(into: &outgoing)
    var written = 0
    while written < outgoing.count {
      let count = outgoing.withUnsafeBytes { try? socket.write(UnsafeRawBufferPointer(rebasing: $0[written...])) }
      guard let count else { return close() }
      if count == 0 { break }
      written += count
    }
    outgoing.removeFirst(written)
    if outgoing.isEmpty && isClosing || outgoing.count > Limits.waitingBytes { return close() }
    try? loop.modify(socket.fd, outgoing.isEmpty ? .readable : [.readable, .writable])
  }

  private func close() {
    guard !isClosed else { return }
    isClosed = true
    loop.unregister(socket.fd)
    closed(socket.fd)
  }
}

/// An app on the plain port: one line with its token, then a line for each push.
final class WaitingApp {
  private let socket: TCPSocket
  private let loop: EventLoop
  private let closed: (Int32) -> Void
  private var line: [UInt8] = []
  private(set) var token: String?

  init(_ socket: TCPSocket, loop: EventLoop, closed: @escaping (Int32) -> Void) {
    (self.socket, self.loop, self.closed) = (socket, loop, closed)
    try? loop.register(socket.fd, .readable) { [unowned self] _ in read() }
  }

  /// False if the app does not read: its connection is closed.
  func send(_ push: SandboxPush) -> Bool {
    let head = #"{"service":"\#(push.service.rawValue)","id":"\#(push.id)","payload":"#
    let bytes = Array(head.utf8) + push.payload.filter { $0 != 10 && $0 != 13 } + Array("}\n".utf8)
    let count = bytes.withUnsafeBytes { try? socket.write($0) }
    if count == bytes.count { return true }
    close()
    return false
  }

  private func read() {
    withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 8) { buffer in
      switch try? socket.read(into: buffer) {
      case .bytes(let count): line.append(contentsOf: buffer[..<count])
      case .wait: break
      case .closed, nil: return close()
      }
    }
    guard line.count <= Limits.lineBytes else { return close() }
    guard let end = line.firstIndex(of: 10) else { return }
    guard let token = Self.token(line[..<end]) else { return close() }
    self.token = token
    line.removeSubrange(...end)
  }

  /// `{"token":"…"}`, read without a full JSON parser: the token is hex or URL-safe text.
  private static func token(_ line: ArraySlice<UInt8>) -> String? {
    let parts = String(decoding: line, as: UTF8.self).split(separator: "\"")
    guard parts.count >= 4, parts[1] == "token" else { return nil }
    return String(parts[3])
  }

  private func close() {
    loop.unregister(socket.fd)
    closed(socket.fd)
  }
}
