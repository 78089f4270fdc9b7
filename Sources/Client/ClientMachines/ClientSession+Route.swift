import TrunklineAppProtocol
import TrunklineBytes

extension ClientSession {
  /// The node that a session connects to, and when (docs/reference/protocol.md, Many nodes). Without nodes the session uses the
  /// general address and the usual back-off.
  struct Route: Sendable {
    /// The address of the socket; nil: the general address.
    private(set) var now: String?
    /// The node's own address.
    private(set) var home: String?
    /// The wait only spreads reconnects over time: a session with a reason may connect sooner.
    private(set) var isSpread = false
    private var spread = Duration.zero
    private var tries = 0
    private var triesUntil: Instant?
    private var pointer: (address: String?, wait: Duration, mayHurry: Bool)?
    private var pointers = 0

    mutating func welcomed(_ welcome: Welcome) {
      home = welcome.url.flatMap { Self.isAddress($0) ? $0 : nil }
      spread = min(.milliseconds(Int64(max(0, welcome.spreadMs ?? 0))), Limits.spreadLongest)
      pointer = nil
      broken()
    }

    /// The session was online for a while: the limit of redirects starts again.
    mutating func resetPointers() { pointers = 0 }

    /// A session that was online starts to look for its node.
    mutating func broken() { (tries, triesUntil) = (0, nil) }

    /// The gateway names another node, or only a time. A draining node uses the time to spread its sessions; for an overloaded
    /// node it is the least wait.
    mutating func point(to address: String?, after milliseconds: Int?, mayHurry: Bool) {
      let wait = min(.milliseconds(Int64(max(0, milliseconds ?? 0))), Limits.spreadLongest)
      let address = address.flatMap { Self.isAddress($0) ? $0 : nil }
      pointer = address != nil || wait > .zero ? (address, wait, mayHurry) : nil
      home = nil
    }

    /// How long to wait before following the gateway's redirect; nil: there was none, or there were too many.
    mutating func follow() -> Duration? {
      guard let next = pointer else { return nil }
      guard pointers < Limits.pointers else {
        pointer = nil
        return nil
      }
      pointers += 1
      isSpread = next.mayHurry
      return next.wait
    }

    /// A random part of the gateway's spread time; nil: it stated none.
    mutating func spread(_ random: RandomSource) -> Duration? {
      guard spread > .zero else { return nil }
      isSpread = true
      return .nanoseconds(Int64(random.next() % UInt64(spread.nanoseconds)))
    }

    /// Sets ``now``. Returns when to try another address if no socket opens.
    mutating func choose(at time: Instant, resumes: Bool) -> Instant? {
      isSpread = false
      now = nil
      if let pointer {
        now = pointer.address
        self.pointer = nil
        return nil
      }
      guard resumes, let home else { return nil }
      let end = triesUntil ?? time + Limits.homeTime
      triesUntil = end
      guard tries < Limits.homeTries, time < end else { return nil }
      tries += 1
      now = home
      return end
    }

    /// Any other text is ignored, and the general address remains.
    static func isAddress(_ text: String) -> Bool {
      guard text.utf8.count <= Limits.addressBytes else { return false }
      for scheme in ["ws://", "wss://"] where text.hasPrefix(scheme) {
        return text.utf8.dropFirst(scheme.utf8.count).first.map { $0 != UInt8(ascii: "/") } ?? false
      }
      return false
    }
  }
}
