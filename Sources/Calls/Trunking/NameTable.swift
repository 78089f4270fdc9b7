import Bytes

/// The answers of the name servers: asked for again as their time to live ends, the last good one kept while that fails.
struct NameTable {
  private struct Entry {
    /// nil until the first answer.
    var answer: DNSAnswer?
    /// When it is asked for again; while a question is under way, when that is given up.
    var due: Instant
    var isAsking = true
    var pause = Limits.failedLookUp.lowerBound
    var negativePause = Limits.negativeTime.lowerBound
    /// Until then requests wait for the first answer; nil afterwards, and once that has failed.
    var patience: Instant?
  }

  private var entries: [DNSQuestion: Entry] = [:]

  var count: Int { entries.count }
  var nextDeadline: Instant? {
    entries.values.reduce(nil) { .earliest($0, .earliest($1.due, $1.patience)) }
  }

  /// The last good answer, however old; `failed` where there was none in one round of tries, so that nothing else waits for it; nil while it
  /// may still come.
  func answer(_ question: DNSQuestion) -> DNSAnswer? {
    entries[question].flatMap { $0.answer ?? ($0.patience == nil ? .failed : nil) }
  }

  /// Ends what has been waited for long enough; the questions continue.
  mutating func expire(at now: Instant) {
    for (question, entry) in entries where entry.patience.map({ $0 <= now }) ?? false { entries[question]?.patience = nil }
  }

  /// The questions among these that are to be asked now; they count as under way.
  mutating func due(_ questions: Set<DNSQuestion>, at now: Instant) -> [DNSQuestion] {
    var out: [DNSQuestion] = []
    for question in questions {
      if let entry = entries[question] {
        guard entry.due <= now else { continue }
        if entry.isAsking { answered(question, .failed, at: now) }
        guard entries[question].map({ $0.due <= now }) ?? false else { continue }
        entries[question]?.isAsking = true
        entries[question]?.due = now + Limits.lookUpTime
      } else {
        entries[question] = Entry(due: now + Limits.lookUpTime, patience: now + Limits.patience)
      }
      out.append(question)
    }
    return out.sorted { ($0.name, $0.kind.rawValue) < ($1.name, $1.kind.rawValue) }
  }

  /// False if no request waits for it.
  @discardableResult mutating func answered(_ question: DNSQuestion, _ answer: DNSAnswer, at now: Instant) -> Bool {
    guard var entry = entries[question], entry.isAsking else { return false }
    (entry.isAsking, entry.patience) = (false, nil)
    switch answer {
    case .failed:
      entry.due = now + entry.pause
      entry.pause = min(entry.pause * 2, Limits.failedLookUp.upperBound)
    case .none:
      let last = entry.answer == DNSAnswer.none ? entry.negativePause : nil
      entry.negativePause = last.map { min($0 * 2, Limits.negativeTime.upperBound) } ?? Limits.negativeTime.lowerBound
      entry.answer = answer
      entry.due = now + entry.negativePause
      entry.pause = Limits.failedLookUp.lowerBound
    case .naptr(_, let time), .srv(_, let time), .addresses(_, let time):
      entry.answer = answer
      entry.due = now + min(max(time, Limits.timeToLive.lowerBound), Limits.timeToLive.upperBound)
      entry.pause = Limits.failedLookUp.lowerBound
    }
    entries[question] = entry
    return true
  }

  /// The network is another one: what failed is asked for again at once.
  mutating func retryFailed(at now: Instant) {
    for (question, entry) in entries where !entry.isAsking && entry.pause > Limits.failedLookUp.lowerBound {
      entries[question]?.due = now
      entries[question]?.pause = Limits.failedLookUp.lowerBound
    }
  }

  /// Forgets what no trunk needs any longer, but not before it might be asked again: a name that comes and goes with the answers to others would be
  /// asked each time it comes, also while it is asked.
  mutating func keep(only questions: Set<DNSQuestion>, at now: Instant) {
    guard entries.count != questions.count || !entries.keys.allSatisfy(questions.contains) else { return }
    var unused = entries.filter { !questions.contains($0.key) }
    for (question, entry) in unused where entry.due <= now { (unused[question], entries[question]) = (nil, nil) }
    guard unused.count > Limits.unusedQuestions else { return }
    for question in unused.keys { entries[question] = nil }
  }
}
