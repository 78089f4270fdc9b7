import Cluster
import SharedStore
import Store
import Synchronization

/// Requests to the shared store that do not belong to the control thread: the store's thread appends records, an operator
/// searches for a user. Their answers are distinguished from control's by number.
///
///     let questions = SharedStoreQuestions()
///     let sharedStore = try RedisSharedStore(…) { event in if !questions.accepts(event) { inbox.post(.sharedStore(event)) } }
///     questions.ask(.locate(user: "alice", entering: nil), of: sharedStore) { result in … }
///     questions.stop()     // before the shared store
final class SharedStoreQuestions: Sendable {
  typealias Answer = @Sendable (Result<SharedStoreReply, SharedStoreFailure>) -> Void
  /// Sends one request; the answer is delivered once, on any thread.
  typealias Ask = @Sendable (SharedStoreRequest, @escaping Answer) -> Void
  private struct Waiting {
    var number = SharedStoreQuestions.numbers
    /// At most as many as the shared store's thread accepts: a refused request is answered at once.
    var answers: [UInt64: Answer] = [:]
    var isOver = false
  }
  /// Control counts from 0.
  private static let numbers: UInt64 = 1 << 63
  private let waiting = Mutex(Waiting())

  /// Any thread; `answer` is called once, on the shared store's thread or at once.
  func ask(_ request: SharedStoreRequest, of sharedStore: RedisSharedStore, _ answer: @escaping Answer) {
    let number = waiting.withLock { waiting -> UInt64? in
      guard !waiting.isOver else { return nil }
      waiting.number += 1
      waiting.answers[waiting.number] = answer
      return waiting.number
    }
    guard let number else { return answer(.failure(.away)) }
    if !sharedStore.post(SharedStoreRequestID(number), request) { finish(number, .failure(.full)) }
  }

  /// Called on the shared store's thread. True: the event is an answer to `ask`.
  func accepts(_ event: SharedStoreEvent) -> Bool {
    guard case .reply(let id, let result) = event, id.number >= Self.numbers else { return false }
    finish(id.number, result)
    return true
  }

  /// Call it before the shared store's thread ends: it fails all requests that are still waiting.
  func stop() {
    let left = waiting.withLock { waiting in
      defer { waiting.answers = [:] }
      waiting.isOver = true
      return waiting.answers.values.map(\.self)
    }
    for answer in left { answer(.failure(.away)) }
  }

  private func finish(_ number: UInt64, _ result: Result<SharedStoreReply, SharedStoreFailure>) {
    waiting.withLock { $0.answers.removeValue(forKey: number) }?(result)
  }
}

extension RecordAnswer {
  /// The shared store's answer to an appended record.
  init(_ result: Result<SharedStoreReply, SharedStoreFailure>) {
    guard case .success(.granted(let isNew, _)) = result else {
      self = .failed
      return
    }
    self = isNew ? .added : .superseded
  }
}
