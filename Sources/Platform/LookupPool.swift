import Logging
import Synchronization
import TrunklineBytes

/// Queries to the system's resolver, by `Limits.lookupThreads` threads at most, which end when no query waits. A name that
/// several callers query is looked up once.
///
/// | state of a name | event | next |
/// |---|---|---|
/// | – | `ask` | waiting; a thread is started if there may be one more |
/// | waiting | a thread is free, and a caller still waits | queried |
/// | waiting | a thread is free, and the deadlines of all callers have passed | –, answered with no address |
/// | waiting, queried | `ask` | the same; one more caller gets the answer |
/// | queried | the resolver answers | –, all callers get the answer |
final class LookupPool: Sendable {
  typealias Answer = @Sendable ([SocketAddress]) -> Void
  private struct Question: Hashable {
    var host: String
    var port: UInt16
  }
  private struct Waiter {
    var deadline: Instant
    var answer: Answer
  }
  private struct State {
    var waiters: [Question: [Waiter]] = [:]
    /// Waiters of all names.
    var count = 0
    /// Names that no thread has dequeued, oldest first.
    var queue: [Question] = []
    var threads = 0
  }

  private let thread: String
  private let resolve: @Sendable (String, UInt16) -> [SocketAddress]
  private let state = Mutex(State())

  /// - Parameter thread: the threads' name.
  init(thread: String, resolve: @escaping @Sendable (String, UInt16) -> [SocketAddress]) {
    (self.thread, self.resolve) = (thread, resolve)
  }

  /// Threads that run now.
  var threads: Int { state.withLock(\.threads) }

  /// Any thread. `answer` is called once, on a thread of the pool. Returns false if too many wait or no thread can be
  /// started: `answer` is not called then.
  func ask(_ host: String, _ port: UInt16, by deadline: Instant, logger: Logger?, answer: @escaping Answer) -> Bool {
    let question = Question(host: host, port: port)
    let starts: Bool? = state.withLock { state in
      guard state.count < Limits.lookups else { return nil }
      if state.waiters[question] == nil { state.queue.append(question) }
      state.waiters[question, default: []].append(Waiter(deadline: deadline, answer: answer))
      state.count += 1
      guard !state.queue.isEmpty, state.threads < Limits.lookupThreads else { return false }
      state.threads += 1
      return true
    }
    guard let starts else { return false }
    guard starts else { return true }
    do throws(SystemError) {
      _ = try NamedThread.start(name: thread, logger: logger) { [self] in run() }
      return true
    } catch {
      return keeps(question)
    }
  }

  /// No thread could be started: running threads handle the queue; without any, the new question is removed, and the result
  /// is false.
  private func keeps(_ question: Question) -> Bool {
    state.withLock { state in
      state.threads -= 1
      guard state.threads == 0, let last = state.queue.firstIndex(of: question) else { return true }
      state.queue.remove(at: last)
      state.count -= state.waiters.removeValue(forKey: question)?.count ?? 0
      return false
    }
  }

  private func run() {
    while let (question, isWanted) = next() {
      let found = isWanted ? resolve(question.host, question.port) : []
      let waiters = state.withLock { state in
        let waiters = state.waiters.removeValue(forKey: question) ?? []
        state.count -= waiters.count
        return waiters
      }
      for waiter in waiters { waiter.answer(found) }
    }
  }

  private func next() -> (Question, isWanted: Bool)? {
    let now = MonotonicClock.now()
    return state.withLock { state in
      guard !state.queue.isEmpty else {
        state.threads -= 1
        return nil
      }
      let question = state.queue.removeFirst()
      return (question, state.waiters[question]?.contains { $0.deadline > now } ?? false)
    }
  }
}
