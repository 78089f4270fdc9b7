#if os(Linux) && !APPLE_SURFACE
  import TrunklineBytes
  import CTrunklineCurl
  import TrunklineClientMachines
  import Foundation
  import Synchronization

  /// The phone's WebSockets on Linux, over libwebsockets; its one POST uses libcurl.
  public final class WebSockets: SocketConnector {
    private let sockets = SocketNumbers()
    /// Sockets over other interfaces, on their own thread: a name look-up on a dead network blocks the thread of the first ones.
    private let alternates = SocketNumbers()
    /// Number of connections to TURN servers that have not ended.
    private let relayCount = Mutex(0)
    /// Limit of simultaneous threads for them: two paths of two calls, and connections being opened.
    private static let relays = 24
    private let isInsecure: Bool
    private let authorities: String?

    /// - Parameters:
    ///   - isInsecure: accepts self-signed certificates: for tests.
    ///   - authorities: a file of certificates (PEM) that TURN servers are checked with, instead of the system's.
    public init(isInsecure: Bool = false, authorities: String? = nil) {
      (self.isInsecure, self.authorities) = (isInsecure, authorities)
    }

    public func open(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> any Socket {
      do {
        let endpoint = try WebSocketPool.Endpoint(url: url, isInsecure: isInsecure)
        return try sockets.open(endpoint, over: nil, events)
      } catch {
        events(.closed(1006, "\(error)"))
        return NoSocket()
      }
    }

    public func openAlternate(_ url: String, events: @escaping @Sendable (SocketEvent) -> Void) -> (any Socket)? {
      guard let endpoint = try? WebSocketPool.Endpoint(url: url, isInsecure: isInsecure) else { return nil }
      let known = IPAddress(endpoint.host) ?? sockets.address(of: endpoint) ?? alternates.address(of: endpoint)
      let others = alternateAddresses(to: known)
      guard !others.isEmpty else { return nil }
      // each attempt uses the next interface: a machine may have more than two, and more than one may be dead
      let local = others[alternates.count % others.count]
      return try? alternates.open(endpoint, over: .init(local: local, remote: known), events)
    }

    private struct NoSocket: Socket {
      func send(_ text: [UInt8]) {}
      func close(_ code: UInt16) {}
    }

    public func openRelay(_ address: RelayAddress, events: @escaping @Sendable (RelayEvent) -> Void) -> (any RelaySocket)? {
      let isRoom = relayCount.withLock { count -> Bool in
        guard count < Self.relays else { return false }
        count += 1
        return true
      }
      guard isRoom else { return nil }
      let trust = TLSTrust(authorities: authorities, isInsecure: isInsecure)
      let made = RelayConnection(address, trust: trust, events: events) { [weak self] in self?.relayCount.withLock { $0 -= 1 } }
      if made == nil { relayCount.withLock { $0 -= 1 } }
      return made
    }

    // MARK: POST

    private static let postSeconds = 10
    /// 307s that one POST follows (docs/reference/protocol.md, Many nodes).
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
          // by hand: libcurl would also follow a 302, with another method, and send the token to the first host only
          guard let next = Self.redirection(easy, from: url) else { return }
          _ = ccurl_set_text(easy, CURLOPT_URL, next)
        }
      }
      thread.start()
    }

    /// The target of a 307; nil: the answer has another status, or the target would take the token off TLS.
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
#endif
