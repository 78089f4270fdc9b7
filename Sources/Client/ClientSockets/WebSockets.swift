import CCurl
import ClientMachines
import Foundation
import Synchronization
public import TrunklineClient

/// The phone's WebSockets on Linux, over libwebsockets; its one POST goes by libcurl.
public final class WebSockets: SocketConnector {
  private struct State {
    var pool: WebSocketPool?
    var next = 0
    /// Of the sockets that have not closed.
    var handlers: [Int: @Sendable (SocketEvent) -> Void] = [:]
    /// Connections to TURN servers that have not ended.
    var relays = 0

    /// One that is free, else the one that has waited longest for its turn.
    mutating func number() -> Int {
      let order = (0..<WebSockets.sockets).map { (next + $0) % WebSockets.sockets }
      let number = order.first { handlers[$0] == nil } ?? next
      next = (number + 1) % WebSockets.sockets
      return number
    }
  }
  /// The phone's own, one for each further node, and what a replaced one needs to end before its number comes round again.
  private static let sockets = 32
  private let state = Mutex(State())
  /// Threads at once for them: two paths of two calls, and what is on its way.
  private static let relays = 24
  private let isInsecure: Bool
  private let authorities: String?

  /// - Parameters:
  ///   - isInsecure: takes self-signed certificates: for tests.
  ///   - authorities: a file of certificates (PEM) that TURN servers are trusted by, in place of the system's.
  public init(isInsecure: Bool = false, authorities: String? = nil) {
    (self.isInsecure, self.authorities) = (isInsecure, authorities)
  }

  deinit { state.withLock { $0.pool }?.stop() }

  public func open(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> any Socket {
    do {
      let endpoint = try WebSocketPool.Endpoint(url: url, isInsecure: isInsecure)
      let pool = try pool(endpoint)
      let number = state.withLock { state -> Int in
        let number = state.number()
        state.handlers[number] = events
        return number
      }
      pool.connect(number, to: endpoint)
      return PooledSocket(pool: pool, number: number)
    } catch {
      events(.closed(1006, "\(error)"))
      return NoSocket()
    }
  }

  private func pool(_ endpoint: WebSocketPool.Endpoint) throws -> WebSocketPool {
    if let pool = state.withLock({ $0.pool }) { return pool }
    let made = try WebSocketPool(endpoint: endpoint, count: Self.sockets) { [weak self] number, event in
      let handler = self?.state.withLock { state in
        if case .closed = event { return state.handlers.removeValue(forKey: number) }
        return state.handlers[number]
      }
      switch event {
      case .opened: handler?(.opened)
      case .received(let text): handler?(.received(text))
      case .closed(let code, let why): handler?(.closed(code, why))
      }
    }
    state.withLock { $0.pool = made }
    return made
  }

  private struct PooledSocket: Socket {
    let pool: WebSocketPool
    let number: Int
    func send(_ text: [UInt8]) { pool.send(number, text) }
    func close(_ code: UInt16) { pool.close(number, code) }
  }

  private struct NoSocket: Socket {
    func send(_ text: [UInt8]) {}
    func close(_ code: UInt16) {}
  }

  public func openRelay(_ address: RelayAddress, events: @escaping @Sendable (RelayEvent) -> Void) -> (any RelaySocket)? {
    let isRoom = state.withLock { state -> Bool in
      guard state.relays < Self.relays else { return false }
      state.relays += 1
      return true
    }
    guard isRoom else { return nil }
    let trust = TLSTrust(authorities: authorities, isInsecure: isInsecure)
    let made = RelayConnection(address, trust: trust, events: events) { [weak self] in self?.state.withLock { $0.relays -= 1 } }
    if made == nil { state.withLock { $0.relays -= 1 } }
    return made
  }

  // MARK: POST

  private static let postSeconds = 10
  /// 307s that one POST follows (docs/protocol.md, Many nodes).
  private static let redirects = 3

  public func post(_ url: String, bearer: String, body: [UInt8]) {
    let isInsecure = isInsecure
    let thread = Thread {
      guard let easy = curl_easy_init() else { return }
      defer { curl_easy_cleanup(easy) }
      var fields: UnsafeMutablePointer<curl_slist>?
      for field in ["Authorization: Bearer \(bearer)", "Content-Type: application/json"] {
        fields = curl_slist_append(fields, field)
      }
      defer { curl_slist_free_all(fields) }
      _ = ccurl_set_text(easy, CURLOPT_URL, url)
      _ = ccurl_set_text(easy, CURLOPT_PROTOCOLS_STR, "http,https")
      _ = ccurl_set_list(easy, CURLOPT_HTTPHEADER, fields)
      _ = ccurl_set_long(easy, CURLOPT_NOSIGNAL, 1)
      _ = ccurl_set_long(easy, CURLOPT_TIMEOUT, Self.postSeconds)
      _ = ccurl_set_long(easy, CURLOPT_POSTFIELDSIZE, body.count)
      if isInsecure {
        _ = ccurl_set_long(easy, CURLOPT_SSL_VERIFYPEER, 0)
        _ = ccurl_set_long(easy, CURLOPT_SSL_VERIFYHOST, 0)
      }
      _ = ccurl_set_text(easy, CURLOPT_COPYPOSTFIELDS, String(decoding: body, as: UTF8.self))
      _ = ccurl_set_write(easy) { _, size, count, _ in size * count }
      for _ in 0...Self.redirects {
        curl_easy_perform(easy)
        // by hand: libcurl would follow a 302 too, with another method, and keep the token to the first host
        guard let next = Self.redirection(easy, from: url) else { return }
        _ = ccurl_set_text(easy, CURLOPT_URL, next)
      }
    }
    thread.start()
  }

  /// Where a 307 sends this request; nil: the answer is another, or would take the token off TLS.
  private static func redirection(_ easy: UnsafeMutableRawPointer, from url: String) -> String? {
    var status = 0
    var text: UnsafeMutablePointer<CChar>?
    guard ccurl_get_long(easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK, status == 307,
      ccurl_get_text(easy, CURLINFO_REDIRECT_URL, &text) == CURLE_OK, let text
    else { return nil }
    let next = String(cString: text)
    return next.hasPrefix("https:") || url.hasPrefix("http:") ? next : nil
  }
}
