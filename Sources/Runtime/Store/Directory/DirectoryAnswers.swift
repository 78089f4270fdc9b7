import AppProtocol

/// Answers to `dir.get` as they were given last: a user's devices, and those of one account, ask for the same contacts. A key holds the versions of
/// all directories that an answer is made of, so that one of another version is never given.
struct DirectoryAnswers {
  struct Key: Hashable {
    /// Ids and versions.
    var scopes: [Int64]
    /// Of the view, which may be a device's own.
    var version: Int
    var mark: String?
    var after: Int64
    var page: Int?
  }
  private var answers: [Key: DirectoryFile.Answer] = [:]
  /// The oldest first.
  private var order: [Key] = []
  /// Answers that were found here.
  private(set) var hits = 0

  mutating func answer(_ key: Key, _ make: () throws -> DirectoryFile.Answer) rethrows -> DirectoryFile.Answer {
    if let known = answers[key] {
      hits += 1
      return known
    }
    let answer = try make()
    if order.count >= Limits.directoryAnswers { answers[order.removeFirst()] = nil }
    answers[key] = answer
    order.append(key)
    return answer
  }
}
