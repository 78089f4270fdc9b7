import AppSessions
import CallModel
import Devices
import TrunklineBytes

/// The questions of calls and hellos that wait for parts of their answers.
///
/// | input | gives |
/// |---|---|
/// | `new` | a question with a number of its own; it waits only once it is `put` |
/// | `put` | its deadline, `wait` after it was put first |
/// | `remove` | the question, once: it was answered, or its time is over; nil: it is answered already |
/// | `settle` | – ; the deadline ends, unless the question waits again |
/// | `waitForLeases`, `dequeueLeaseWaiters` | the questions that the next reading of the leases lets continue, each once |
struct QuestionTable: Sendable {
  private let wait: Duration
  private var questions: [UInt64: ClusterMachine.Question] = [:]
  private var last: UInt64 = 0
  private var leaseWaiters: [UInt64] = []

  /// - Parameter wait: a question is answered after this time, with what is known.
  init(wait: Duration) { self.wait = wait }

  mutating func new(_ subject: ClusterMachine.Question.Subject) -> ClusterMachine.Question {
    last += 1
    return ClusterMachine.Question(subject, number: last)
  }

  mutating func put(_ question: ClusterMachine.Question, _ step: inout Step) {
    questions[question.number] = question
    step.timers.schedule(.question(question.number), notLaterThan: step.now + wait)
  }

  /// Removed from the table, so that it is changed without a copy. It keeps its deadline.
  mutating func remove(_ number: UInt64) -> ClusterMachine.Question? { questions.removeValue(forKey: number) }

  /// Stores a question again that was removed.
  mutating func putBack(_ question: ClusterMachine.Question) { questions[question.number] = question }

  mutating func settle(_ number: UInt64, _ step: inout Step) {
    if questions[number] == nil { step.timers.cancel(.question(number)) }
  }

  mutating func waitForLeases(_ question: ClusterMachine.Question) {
    putBack(question)
    leaseWaiters.append(question.number)
  }

  mutating func dequeueLeaseWaiters() -> [UInt64] {
    let waiters = leaseWaiters
    leaseWaiters = []
    return waiters
  }
}
