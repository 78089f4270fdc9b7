import TrunklineBytes

/// The answers to one device's requests, so that a repeat has no second effect. Outlives the device's sessions.
struct AnswerStore {
  enum Lookup: Equatable {
    /// The request is new: it is now pending.
    case new
    /// Received before, without an answer yet; the answer will go to the latest arrival.
    case pending
    case answered(RequestAnswer)
    /// The store is full of requests without an answer.
    case full
  }
  struct Waiter: Equatable {
    var session: SessionID
    var connection: ConnectionID
  }
  private struct Entry {
    var serial: Int
    var at: Instant
    var waiter: Waiter
    var call: Identifier?
    var answer: RequestAnswer?
  }
  private var entries: [Identifier: Entry] = [:]
  private var order: [Identifier] = []
  private var head = 0
  private var serial = 0

  var count: Int { entries.count }
  /// Identifiers in memory, including those of forgotten answers whose memory is not yet freed.
  var orderCount: Int { order.count }

  mutating func arrived(_ request: Identifier, of call: Identifier?, from waiter: Waiter, at now: Instant) -> Lookup {
    if let entry = entries[request] {
      entries[request]?.waiter = waiter
      return entry.answer.map(Lookup.answered) ?? .pending
    }
    forgetOld(now)
    guard entries.count < Limits.answersPerDevice || forgetOneEarly() else { return .full }
    serial += 1
    entries[request] = Entry(serial: serial, at: now, waiter: waiter, call: call, answer: nil)
    order.append(request)
    return .new
  }

  /// Stores the answer; returns the latest arrival of the request, or nil if it is unknown or already answered.
  mutating func answered(_ request: Identifier, _ answer: RequestAnswer) -> Waiter? {
    guard let entry = entries[request], entry.answer == nil else { return nil }
    entries[request]?.answer = answer
    return entry.waiter
  }

  /// The call that the request named.
  func call(_ request: Identifier) -> Identifier? { entries[request]?.call }

  /// A device with many requests must not be locked out: the oldest answer is forgotten early, because a repeat of its request is
  /// the least likely.
  private mutating func forgetOneEarly() -> Bool {
    for index in head..<order.count {
      guard let entry = entries[order[index]], serial - entry.serial >= Limits.answerLaterRequests else { return false }
      guard entry.answer != nil else { continue }
      // Removed from `order` too: behind one that waits for control for minutes it would grow without end.
      entries[order.remove(at: index)] = nil
      return true
    }
    return false
  }

  private mutating func forgetOld(_ now: Instant) {
    while head < order.count, let entry = entries[order[head]], serial - entry.serial >= Limits.answerLaterRequests,
      now - entry.at >= Limits.answerAge
    {
      entries[order[head]] = nil
      head += 1
    }
    if head > Limits.answersPerDevice {
      order.removeFirst(head)
      head = 0
    }
  }
}
