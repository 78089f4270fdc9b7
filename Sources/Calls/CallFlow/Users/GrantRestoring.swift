import CallModel

/// An operator's request to write back what the shared store has lost (`users restore`): a pass over the stale users in batches.
/// The cluster machine confirms a batch once the shared store has answered all of it, and while it applies no rows; only then the
/// next batch is read from the copy. So a batch has what the copy has at that time, and what a token or an erasure changes later
/// is queued after it.
///
/// | state | event | does |
/// |---|---|---|
/// | idle | `begin` | asks for the first confirmation with an empty batch |
/// | running | `begin` | refused: false |
/// | running | `confirmed` | counts the users; the next batch, or nil if no user is left: idle |
/// | running | `failed` | idle |
/// | running | `compared` | the pass begins again: users before its cursor may have become stale |
/// | idle | `confirmed`, `failed`, `compared` | nothing |
struct GrantRestoring {
  private var question: QuestionID?
  /// The last user of the last batch.
  private var last: String?
  /// Users whose grants were written.
  private(set) var users = 0

  var isRunning: Bool { question != nil }

  mutating func begin(_ question: QuestionID) -> Bool {
    guard !isRunning else { return false }
    self.question = question
    last = nil
    users = 0
    return true
  }

  /// - Returns: the next batch, or the question to answer.
  mutating func confirmed(_ written: Int, _ grants: UserGrants) -> (batch: [SharedGrant], answered: QuestionID?) {
    guard isRunning else { return ([], nil) }
    users += written
    let batch = grants.lost(after: last, most: CallModel.Limits.grantsPerStep, octets: CallModel.Limits.grantOctetsPerStep)
    guard let end = batch.last?.user else { return ([], finish()) }
    last = end
    return (batch, nil)
  }

  /// - Returns: the question to answer.
  mutating func failed(_ written: Int) -> QuestionID? {
    if isRunning { users += written }
    return finish()
  }

  mutating func compared() { last = nil }

  private mutating func finish() -> QuestionID? {
    defer { question = nil }
    return question
  }
}
