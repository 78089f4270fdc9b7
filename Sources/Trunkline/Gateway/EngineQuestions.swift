import Cluster
import Engine
import Store
import Synchronization

/// What others than control ask of the engine: the store's thread appends records, an operator asks who is where. Control has no part in it: an
/// answer is told from one to control by its number.
///
///     let questions = EngineQuestions()
///     let engine = try RedisEngine(…) { event in if !questions.takes(event) { inbox.post(.engine(event)) } }
///     questions.ask(.locate(user: "alice", entering: nil), of: engine) { result in … }
///     questions.stop()     // before the engine
final class EngineQuestions: Sendable {
  typealias Answer = @Sendable (Result<EngineReply, EngineFailure>) -> Void
  /// One question; the answer comes once, on any thread.
  typealias Ask = @Sendable (EngineRequest, @escaping Answer) -> Void
  private struct Waiting {
    var number = EngineQuestions.numbers
    /// No more than the engine's thread takes: whatever it does not take is answered at once.
    var answers: [UInt64: Answer] = [:]
    var isOver = false
  }
  /// Control counts from 0.
  private static let numbers: UInt64 = 1 << 63
  private let waiting = Mutex(Waiting())

  /// Any thread; `answer` is called once, on the engine's thread or at once.
  func ask(_ request: EngineRequest, of engine: RedisEngine, _ answer: @escaping Answer) {
    let number = waiting.withLock { waiting -> UInt64? in
      guard !waiting.isOver else { return nil }
      waiting.number += 1
      waiting.answers[waiting.number] = answer
      return waiting.number
    }
    guard let number else { return answer(.failure(.away)) }
    if !engine.post(EngineRequestID(number), request) { finish(number, .failure(.full)) }
  }

  /// The engine's thread. True: the event is an answer to `ask`.
  func accepts(_ event: EngineEvent) -> Bool {
    guard case .reply(let id, let result) = event, id.number >= Self.numbers else { return false }
    finish(id.number, result)
    return true
  }

  /// Before the engine's thread ends: nobody waits for an answer that will not come.
  func stop() {
    let left = waiting.withLock { waiting in
      defer { waiting.answers = [:] }
      waiting.isOver = true
      return waiting.answers.values.map(\.self)
    }
    for answer in left { answer(.failure(.away)) }
  }

  private func finish(_ number: UInt64, _ result: Result<EngineReply, EngineFailure>) {
    waiting.withLock { $0.answers.removeValue(forKey: number) }?(result)
  }
}

extension RecordAnswer {
  /// What the engine said of a record that was to be appended.
  init(_ result: Result<EngineReply, EngineFailure>) {
    guard case .success(.granted(let isNew, _)) = result else {
      self = .failed
      return
    }
    self = isNew ? .added : .superseded
  }
}
