import TrunklineAppProtocol

/// Cache of the last answers to `dir.get`: the devices of one user or account request the same contacts. A key holds the versions
/// of all directories of an answer, so that an outdated one is never returned.
struct DirectoryAnswers {
  struct Key: Hashable {
    /// Ids and versions of the directories.
    var scopes: [Int64]
    /// The view's version, which may belong to one device only.
    var version: Int
    var mark: String?
    var after: Int64
    var page: Int?
  }
  private var answers: [Key: DirectoryFile.Answer] = [:]
  /// The oldest first.
  private var order: [Key] = []
  /// Requests answered from the cache.
  private(set) var hits = 0

  mutating func known(_ key: Key) -> DirectoryFile.Answer? {
    guard let known = answers[key] else { return nil }
    hits += 1
    return known
  }

  /// An answer that was not known.
  mutating func keep(_ answer: DirectoryFile.Answer, for key: Key) {
    if order.count >= Limits.directoryAnswers { answers[order.removeFirst()] = nil }
    answers[key] = answer
    order.append(key)
  }
}
