import CallModel
import PushPolicy
import TrunklineBytes
import TrunklineSIPDialogs

/// Queries to the operator's server, until when their answers are valid, and the inputs that wait for one. The directory
/// (`UserGrants`) contains the answers.
///
/// | input | effect |
/// |---|---|
/// | `wait` | `ask`: the first input that waits for this answer; `wait`: a further one; `full`: too many wait, and it does not |
/// | `expect` | true: a query without an input begins; false: it is pending, or too many are |
/// | `hold` | the answer, or that there was none, is valid until this time; also without a query |
/// | `removeWaiting` | the inputs that waited, in their order, once |
/// | `removeInvite` | the INVITE of this leg, once; the query stays; another leg: nil |
/// | `mayWait` | false: the user's calls waited too often of late |
/// | `removeAnswers` | no answer is valid; queries stay |
struct UserCache {
  private var holds: [UserQuestion: Held] = [:]
  private struct Held {
    var until: Instant
    var isAnswered: Bool
  }
  /// Inputs that are dispatched again after the answer, in their order.
  private var waiting: [UserQuestion: [CallMachine.Input]] = [:]
  private(set) var waitingCount = 0
  /// How often calls of a user may still wait for an answer.
  private var allowances: [String: TokenBucket] = [:]

  func isFresh(_ question: UserQuestion, at now: Instant) -> Bool { holds[question].map { $0.until > now } ?? false }

  /// The query had no answer.
  func isUnanswered(_ question: UserQuestion) -> Bool { holds[question]?.isAnswered == false }

  enum Wait { case ask, wait, full }

  /// Full: too many wait, so the known data is used.
  mutating func wait(_ input: CallMachine.Input, for question: UserQuestion) -> Wait {
    guard waitingCount < Limits.userQuestionsWaiting else { return .full }
    waitingCount += 1
    let isAsked = waiting[question] != nil
    waiting[question, default: []].append(input)
    return isAsked ? .wait : .ask
  }

  /// Whether a further call of this user may wait. False: its calls did so too often of late.
  mutating func mayWait(_ user: String, at now: Instant) -> Bool {
    if allowances[user] == nil, allowances.count >= Limits.userQuestionRates {
      allowances = allowances.filter { !$0.value.isFull(at: now) }
      if allowances.count >= Limits.userQuestionRates { return false }
    }
    let full = TokenBucket(perSecond: Limits.userQuestionsPerSecond, burst: Limits.userQuestionBurst, at: now)
    return allowances[user, default: full].consume(at: now)
  }

  /// Begins a query for which no input waits. False: it is pending already, or too many are.
  mutating func expect(_ question: UserQuestion) -> Bool {
    guard waiting[question] == nil, waitingCount + waiting.count < Limits.userQuestionsWaiting else { return false }
    waiting[question] = []
    return true
  }

  mutating func hold(_ question: UserQuestion, until: Instant, isAnswered: Bool = true, at now: Instant) {
    if holds.count >= Limits.userAnswersHeld { holds = holds.filter { $0.value.until > now } }
    if holds.count >= Limits.userAnswersHeld { holds.removeAll() }
    holds[question] = Held(until: until, isAnswered: isAnswered)
  }

  mutating func removeWaiting(_ question: UserQuestion) -> [CallMachine.Input] {
    let removed = waiting.removeValue(forKey: question) ?? []
    waitingCount -= removed.count
    return removed
  }

  /// Removes the waiting INVITE of a caller who gave up.
  mutating func removeInvite(_ leg: LegID) -> InboundInvite? {
    guard waitingCount > 0 else { return nil }
    for (question, inputs) in waiting {
      for (index, input) in inputs.enumerated() {
        guard case .sip(.inviteReceived(leg, let invite)) = input else { continue }
        waiting[question]?.remove(at: index)
        waitingCount -= 1
        return invite
      }
    }
    return nil
  }

  mutating func removeAnswers() { holds.removeAll() }
}
