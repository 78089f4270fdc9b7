import CallFlow
import CallModel
import Cluster
import Foundation
import Logging
import SharedStore
import Store
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform

@testable import trunkline

@Suite struct SharedStoreQuestionsTests {
  private let call = CallID(high: 1, low: 2)

  /// The answers for records, in order.
  private final class Answers: Sendable {
    private let list = Mutex<[RecordAnswer]>([])
    var all: [RecordAnswer] { list.withLock { $0 } }
    func add(_ answer: RecordAnswer) { list.withLock { $0.append(answer) } }
  }

  @Test func `a shared store that is away, and one that has ended, answer each record once`() throws {
    let (questions, answers, others) = (SharedStoreQuestions(), Answers(), Counter())
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    // port 1 of this address has no listener
    let sharedStore = try RedisSharedStore(
      SharedStoreSettings(.redis(.init("127.0.0.1", 1)), prefix: "tl"), node: Incarnation(node: "n1", started: 1), logger: logger
    ) { event in
      if !questions.accepts(event) { others.increment() }
    }
    for _ in 0..<10 { questions.ask(.append(call, record: []), of: sharedStore) { answers.add(RecordAnswer($0)) } }
    while answers.all.count < 10 { sched_yield() }
    sharedStore.post(SharedStoreRequestID(7), .locate(user: "alice", entering: nil))
    while others.value == 0 { sched_yield() }
    #expect(answers.all == Array(repeating: .failed, count: 10), "control has its own answers")
    questions.stop()
    sharedStore.stop()
    questions.ask(.append(call, record: []), of: sharedStore) { answers.add(RecordAnswer($0)) }
    #expect(answers.all.count == 11 && answers.all.last == .failed)
  }

  @Test func `an answer says whether the stream had the call already, and comes once`() throws {
    let (questions, answers) = (SharedStoreQuestions(), Answers())
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    let ids = Mutex<[SharedStoreRequestID]>([])
    let sharedStore = try RedisSharedStore(
      SharedStoreSettings(.redis(.init("127.0.0.1", 1)), prefix: "tl"), node: Incarnation(node: "n1", started: 1), logger: logger
    ) { event in
      // the test answers it later
      if case .reply(let id, _) = event { ids.withLock { $0.append(id) } }
    }
    for _ in 0..<3 { questions.ask(.append(call, record: []), of: sharedStore) { answers.add(RecordAnswer($0)) } }
    while ids.withLock({ $0.count }) < 3 { sched_yield() }
    let all = ids.withLock { $0 }
    #expect(questions.accepts(.reply(all[1], .success(.granted(false)))))
    #expect(questions.accepts(.reply(all[0], .success(.granted(true)))))
    #expect(questions.accepts(.reply(all[0], .success(.granted(true)))), "a second answer is nobody's")
    #expect(answers.all == [.superseded, .added])
    questions.stop()
    #expect(answers.all == [.superseded, .added, .failed])
    sharedStore.stop()
  }
}
