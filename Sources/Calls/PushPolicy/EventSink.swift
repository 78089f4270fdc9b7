public import TrunklineBytes

/// A receiver of events by HTTP: its address, the signing keys and the kinds of events.
public struct EventWebhook: Sendable, Hashable {
  public var url: String
  /// Every request is signed with each of them: while a receiver changes its secret both are valid.
  public var keys: [Redacted<[UInt8]>]
  /// Nil: all.
  public var kinds: Set<String>?
  public init(url: String, keys: [Redacted<[UInt8]>], kinds: Set<String>? = nil) {
    (self.url, self.keys, self.kinds) = (url, keys, kinds)
  }

  /// The form for logs and messages: user information, path and query contain the tokens of many receivers, so that only the
  /// first word of the path is shown.
  ///
  ///     https://me:pass@hooks.example:8443/services/T0/B0/x?token=y → https://hooks.example:8443/services/…
  public var shown: String { Self.shown(url) }

  public static func shown(_ url: String) -> String {
    guard let mark = url.firstRange(of: "://") else { return "…" }
    let rest = url[mark.upperBound...]
    let end = rest.firstIndex { "/?#".contains($0) } ?? rest.endIndex
    let host = rest[..<end].split(separator: "@", omittingEmptySubsequences: false).last ?? ""
    let path = rest[end...].prefix { $0 != "?" && $0 != "#" }
    let words = path.split(separator: "/")
    let begin = url[..<mark.upperBound] + host
    let isWhole = end == rest.endIndex || rest[end...] == "/"
    if isWhole { return String(begin + rest[end...]) }
    // A single word may be the token itself.
    return begin + (words.count > 1 ? "/\(words[0])" : "") + "/…"
  }
}

/// The events still to be sent to one webhook, and when: at least once, in order for each subject, however its server behaves.
///
/// Belongs to the thread that sends; no clock. A subject whose event fails waits without delaying others. After a failure of the
/// server itself, one request at a time probes whether it works again.
///
///     sink.append(item)                             // while sink.hasRoom, in order of position
///     while let position = sink.next(at: now) { … } // send it
///     sink.ended(position, .accepted, at: now, wallNow: unixMilliseconds) // or .failed
public struct EventSink: Sendable {
  public struct Item: Sendable, Equatable {
    public var position: UInt64
    public var subject: String
    /// Milliseconds since 1970, for `Limits.eventAge`.
    public var at: Int64
    public init(position: UInt64, subject: String, at: Int64) {
      (self.position, self.subject, self.at) = (position, subject, at)
    }
  }
  public enum Outcome: Sendable, Equatable {
    /// 2xx.
    case accepted
    /// `isServer`: 5xx, 429, no connection, no answer in time: others would fail as well. Else the status concerns only this
    /// event.
    case failed(isServer: Bool, retryAfter: Duration?)
  }

  /// The state that outlives the process: all positions up to `read` are sent, except `open`.
  public struct State: Sendable, Codable, Equatable {
    public var read: UInt64
    public var open: [UInt64]
    public init(read: UInt64 = 0, open: [UInt64] = []) { (self.read, self.open) = (read, open) }
  }

  private struct Waiting {
    var item: Item
    var attempts = 0
    var due = Instant.zero
    var isUnderWay = false
  }

  private let random: RandomSource
  /// By position.
  private var waiting: [UInt64: Waiting] = [:]
  /// Positions of each waiting subject, the oldest first.
  private var subjects: [String: [UInt64]] = [:]
  /// The first of each subject, in the order in which they are tried.
  private var heads: [UInt64] = []
  /// All events up to here were read from the journal.
  public private(set) var read: UInt64
  /// Grows with each change of `state`.
  public private(set) var changes = 0
  private var underWay = 0
  /// Failures of the server since its last answer, and until when no request is sent to it.
  public private(set) var failures = 0
  private var leftAloneUntil = Instant.zero

  public init(_ state: State, random: RandomSource) {
    (read, self.random) = (state.read, random)
  }

  public var count: Int { waiting.count }
  public var hasRoom: Bool { waiting.count < Limits.eventsOpen }
  public var state: State { State(read: read, open: waiting.keys.sorted()) }

  /// Everything up to `position` was checked, whether it is for this sink or not.
  public mutating func skip(to position: UInt64) {
    read = max(read, position)
    changes += 1
  }

  public mutating func append(_ item: Item) {
    guard waiting[item.position] == nil else { return }
    read = max(read, item.position)
    changes += 1
    waiting[item.position] = Waiting(item: item)
    subjects[item.subject, default: []].append(item.position)
    if subjects[item.subject]?.count == 1 { heads.append(item.position) }
  }

  /// The next event to send now; it counts as under way until `ended`.
  public mutating func next(at now: Instant) -> UInt64? {
    let most = failures == 0 ? Limits.eventsUnderWay : 1
    guard underWay < most, now >= leftAloneUntil else { return nil }
    guard
      let index = heads.firstIndex(where: { position in
        waiting[position].map { !$0.isUnderWay && $0.due <= now } ?? false
      })
    else { return nil }
    let position = heads[index]
    waiting[position]?.isUnderWay = true
    underWay += 1
    return position
  }

  /// When `next` may have an event that it does not have now; nil: not before another ends or is added.
  public func nextDue(after now: Instant) -> Instant? {
    guard underWay < (failures == 0 ? Limits.eventsUnderWay : 1) else { return nil }
    let due = heads.compactMap { waiting[$0] }.filter { !$0.isUnderWay }.map(\.due).min()
    return due.map { max($0, leftAloneUntil) }
  }

  /// Returns true if the event is dropped: it is older than `Limits.eventAge`.
  @discardableResult
  public mutating func ended(_ position: UInt64, _ outcome: Outcome, at now: Instant, wallNow: Int64) -> Bool {
    guard var entry = waiting[position], entry.isUnderWay else { return false }
    underWay -= 1
    switch outcome {
    case .accepted:
      if failures > 0 { serverIsBack(now) }
      remove(position)
      return false
    case .failed(let isServer, let retryAfter):
      entry.isUnderWay = false
      entry.attempts += 1
      entry.due = now + max(backoff(entry.attempts, most: Limits.eventRetry), retryAfter ?? .zero)
      waiting[position] = entry
      if isServer {
        failures += 1
        leftAloneUntil = now + max(backoff(failures, most: Limits.sinkRetry), retryAfter ?? .zero)
        // Another event becomes the next probe.
        if let index = heads.firstIndex(of: position) { heads.append(heads.remove(at: index)) }
      } else if failures > 0 {
        serverIsBack(now)
      }
      guard wallNow - entry.item.at > Limits.eventAge.milliseconds else { return false }
      remove(position)
      return true
    }
  }

  /// Events that waited for an unreachable server are due at once. After fewer failures it was not unreachable: a single event
  /// may be the cause, and that one has its own pauses.
  private mutating func serverIsBack(_ now: Instant) {
    let wasAway = failures >= Limits.failuresAway
    failures = 0
    leftAloneUntil = now
    guard wasAway else { return }
    for position in heads where waiting[position]?.isUnderWay == false { waiting[position]?.due = now }
    heads.sort()
  }

  private mutating func remove(_ position: UInt64) {
    guard let entry = waiting.removeValue(forKey: position) else { return }
    changes += 1
    heads.removeAll { $0 == position }
    let subject = entry.item.subject
    subjects[subject]?.removeAll { $0 == position }
    if let next = subjects[subject]?.first { heads.append(next) } else { subjects[subject] = nil }
  }

  /// 1 s, doubled with each failure, and between half and all of that.
  private func backoff(_ failures: Int, most: Duration) -> Duration {
    let doubled: Int64 = 1_000 << Int64(min(failures - 1, 20))
    let half = max(0, min(most.milliseconds, doubled)) / 2
    return .milliseconds(half + Int64(random.next() % UInt64(half + 1)))
  }
}
