import TrunklineBytes

/// The clients with a stream, and which stream is closed for another: slots are counted by client, and the stream read longest ago
/// is closed first.
///
/// | a stream begins | closed for it |
/// |---|---|
/// | its client has `perClient` | the idlest of that client |
/// | all `most` slots are in use | the idlest of the client that has the most |
/// | else | none |
///
/// | unread octets | then |
/// |---|---|
/// | none, or fewer than before | it is read |
/// | as many as before, or more, for `unreadTime` | it is closed |
struct StreamSlots {
  struct Slot: Equatable {
    let client: String
    let began: Instant
    /// When the peer last read something, or had nothing to read.
    fileprivate(set) var read: Instant
    /// Octets that it had read then.
    fileprivate var acknowledged: UInt64 = 0
  }
  private(set) var slots: [UInt64: Slot] = [:]
  private let most: Int
  private let perClient: Int

  init(most: Int = Limits.streams, perClient: Int = Limits.streamsPerClient) { (self.most, self.perClient) = (most, perClient) }

  var isEmpty: Bool { slots.isEmpty }
  var numbers: [UInt64] { slots.keys.sorted() }

  /// - Parameter client: its name; empty without one.
  /// - Returns: the stream that must end to make room.
  mutating func begin(_ number: UInt64, of client: String, at now: Instant) -> UInt64? {
    let counts = Dictionary(grouping: slots.values, by: \.client).mapValues(\.count)
    var leaving: UInt64?
    if counts[client, default: 0] >= perClient {
      leaving = idlest(of: client)
    } else if slots.count >= most, let busiest = counts.max(by: { ($0.value, $1.key) < ($1.value, $0.key) })?.key {
      leaving = idlest(of: busiest)
    }
    if let leaving { slots[leaving] = nil }
    slots[number] = Slot(client: client, began: now, read: now)
    return leaving
  }

  mutating func end(_ number: UInt64) { slots[number] = nil }

  /// False: its client has read nothing for too long.
  mutating func look(_ number: UInt64, sent: UInt64, unread: Int, at now: Instant) -> Bool {
    guard let slot = slots[number] else { return true }
    let acknowledged = sent - min(sent, UInt64(max(0, unread)))
    if unread <= 0 || acknowledged > slot.acknowledged {
      slots[number]?.read = now
      slots[number]?.acknowledged = max(acknowledged, slot.acknowledged)
      return true
    }
    return now - slot.read < Limits.unreadTime
  }

  private func idlest(of client: String) -> UInt64? {
    slots.filter { $0.value.client == client }.min { a, b in
      (a.value.read, a.value.began, a.key) < (b.value.read, b.value.began, b.key)
    }?.key
  }
}
