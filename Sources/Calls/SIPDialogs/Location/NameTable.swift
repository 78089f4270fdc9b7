public import TrunklineBytes

/// The answers of the name servers: queried again when their time to live ends; the last good one is kept while that fails.
public struct NameTable: Sendable {
  private struct Entry: Sendable {
    /// nil until the first answer.
    var answer: DNSAnswer?
    /// When it is queried again; while a query is open, when that is given up.
    var due: Instant
    var isAsking = true
    var pause = LocationLimits.failedLookUp.lowerBound
    var negativePause = LocationLimits.negativeTime.lowerBound
    /// Until then callers wait for the first answer; nil afterwards, and once that has failed.
    var patience: Instant?
  }

  private var entries: [DNSQuestion: Entry] = [:]

  public init() {}

  public var count: Int { entries.count }
  /// When `due` or `expire` has something to do; nil without an entry.
  public var nextDeadline: Instant? {
    entries.values.reduce(nil) { .earliest($0, .earliest($1.due, $1.patience)) }
  }

  /// The last good answer, however old; `failed` if one round of tries brought none, so that no caller waits for it; nil while
  /// one may still arrive.
  public func answer(_ question: DNSQuestion) -> DNSAnswer? {
    entries[question].flatMap { $0.answer ?? ($0.patience == nil ? .failed : nil) }
  }

  /// Ends the waits that have lasted long enough; the queries continue.
  public mutating func expire(at now: Instant) {
    for (question, entry) in entries where entry.patience.map({ $0 <= now }) ?? false { entries[question]?.patience = nil }
  }

  /// The queries among these to send now; they count as open.
  public mutating func due(_ questions: Set<DNSQuestion>, at now: Instant) -> [DNSQuestion] {
    var out: [DNSQuestion] = []
    for question in questions {
      if let entry = entries[question] {
        guard entry.due <= now else { continue }
        if entry.isAsking { answered(question, .failed, at: now) }
        guard entries[question].map({ $0.due <= now }) ?? false else { continue }
        entries[question]?.isAsking = true
        entries[question]?.due = now + LocationLimits.lookUpTime
      } else {
        entries[question] = Entry(due: now + LocationLimits.lookUpTime, patience: now + LocationLimits.patience)
      }
      out.append(question)
    }
    return out.sorted { ($0.name, $0.kind.rawValue) < ($1.name, $1.kind.rawValue) }
  }

  /// False if no caller waits for it.
  @discardableResult public mutating func answered(_ question: DNSQuestion, _ answer: DNSAnswer, at now: Instant) -> Bool {
    guard var entry = entries[question], entry.isAsking else { return false }
    entry.isAsking = false
    entry.patience = nil
    switch answer {
    case .failed:
      entry.due = now + entry.pause
      entry.pause = min(entry.pause * 2, LocationLimits.failedLookUp.upperBound)
    case .none:
      let last = entry.answer == DNSAnswer.none ? entry.negativePause : nil
      entry.negativePause =
        last.map { min($0 * 2, LocationLimits.negativeTime.upperBound) } ?? LocationLimits.negativeTime.lowerBound
      entry.answer = answer
      entry.due = now + entry.negativePause
      entry.pause = LocationLimits.failedLookUp.lowerBound
    case .naptr(_, let time), .srv(_, let time), .addresses(_, let time):
      entry.answer = answer
      entry.due = now + min(max(time, LocationLimits.timeToLive.lowerBound), LocationLimits.timeToLive.upperBound)
      entry.pause = LocationLimits.failedLookUp.lowerBound
    }
    entries[question] = entry
    return true
  }

  /// The network has changed: failed queries are sent again at once.
  public mutating func retryFailed(at now: Instant) {
    for (question, entry) in entries where !entry.isAsking && entry.pause > LocationLimits.failedLookUp.lowerBound {
      entries[question]?.due = now
      entries[question]?.pause = LocationLimits.failedLookUp.lowerBound
    }
  }

  /// Forgets names that no caller needs, but not before they could be queried again: a name that comes and goes with the answers
  /// to others would be queried each time it comes back, even while its query is open.
  public mutating func keep(only questions: Set<DNSQuestion>, at now: Instant) {
    guard entries.count != questions.count || !entries.keys.allSatisfy(questions.contains) else { return }
    var unused = entries.filter { !questions.contains($0.key) }
    for (question, entry) in unused where entry.due <= now { (unused[question], entries[question]) = (nil, nil) }
    guard unused.count > LocationLimits.unusedQuestions else { return }
    for question in unused.keys { entries[question] = nil }
  }
}
