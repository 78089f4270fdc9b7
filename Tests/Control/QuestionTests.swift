import AppSessions
import CallFlow
import Cluster
import Control
import Devices
import Glibc
import Logging
import Synchronization
import Testing
import TrunklineBytes
import TrunklinePlatform

/// The seam between control and its askers: values both ways.
@Suite struct QuestionTests {
  private let alice = DeviceKey(user: "alice", device: "phone")

  @Test func `operations are answered under their number, whatever comes of them`() throws {
    let surroundings = try Surroundings()
    surroundings.inbox.post(.app(.connected(alice, SessionID("s"), DeviceInfo(), resumed: false)))
    let unknown = Identifier(high: 1, low: 1)
    guard case .operation(.refused(let failure))? = surroundings.ask(.operation(.command(unknown, .hangUp(nil))), 1) else {
      Issue.record("a call that is not there was hung up")
      return
    }
    #expect(failure.code == .gone)
    let others: [(ControlOperation, OperationAnswer)] = [
      (.allow(alice), .deviceRefused(.unknown)), (.revoke(user: "nobody", device: nil), .deviceRefused(.unknown)),
      (.revoke(user: "alice", device: "phone"), .done), (.allow(alice), .done),
      (.forget(user: "nobody"), .forgotten(devices: 0, grants: 0)), (.setTrunk("carrier", isDisabled: true), .done),
      (.forgetNode("none"), .done), (.restoreGrants, .restored(users: 0)),
    ]
    for (index, (operation, expected)) in others.enumerated() {
      guard case .operation(let answer)? = surroundings.ask(.operation(operation), 2 + UInt64(index)) else {
        Issue.record("no answer to \(operation)")
        continue
      }
      #expect(answer == expected, "\(operation)")
    }
    guard case .trunk(let trunk)? = surroundings.ask(.trunk("carrier"), 90) else {
      Issue.record("no answer")
      return
    }
    #expect(trunk?.why == .disabled, "what is asked behind an operation sees it")
    surroundings.stop()
  }

  @Test func `a question about something unknown is answered, and a node alone has no cluster`() throws {
    let surroundings = try Surroundings()
    let none = Identifier(high: 1, low: 1)
    let questions: [ControlQuestion] = [.call(none), .over(none), .trunk("none"), .cluster(.nodes), .cluster(.entry(none))]
    for (index, question) in questions.enumerated() {
      switch surroundings.ask(question, UInt64(index)) {
      case .call(nil), .over(nil), .trunk(nil), .cluster(nil): break
      case let other: Issue.record("\(String(describing: other))")
      }
    }
    surroundings.stop()
  }

  @Test func `questions beyond the room are refused at once, and calls come first`() throws {
    let inbox = try Inbox()
    var taken = 0
    while inbox.ask(.calls(after: nil), QuestionID(UInt64(taken))), taken < 100_000 { taken += 1 }
    #expect(taken < 100_000 && inbox.post(.hangUp(Identifier(high: 1, low: 1))), "a full box of questions takes no input's place")
  }

  /// Twice the questions of one second: the second half waits, but inputs of calls do not.
  @Test func `a flood of questions is answered, and a call that comes meanwhile is not held up`() throws {
    let surroundings = try Surroundings()
    for number in 0..<4_000 as Range<UInt64> {
      while !surroundings.inbox.ask(.trunk("carrier"), QuestionID(number)) { sched_yield() }
    }
    surroundings.receive(Surroundings.invite(to: "+19990000000"))
    #expect(surroundings.eventually { $0.records.count == 1 })
    #expect(surroundings.eventually(within: .seconds(60)) { $0.answers.count == 4_000 })
    surroundings.stop()
    #expect(EventLoop.stuckTimers.counter("test", "questions").value == 0)
  }

  @Test func `a client has a share of requests, which comes back; others have theirs`() throws {
    let asker = try Asker(inbox: Inbox())
    var shares: [Asker.Share] = []
    while let share = asker.begin(for: "loud"), shares.count < 1_000 { shares.append(share) }
    #expect(shares.count == 16 && asker.begin(for: "quiet") != nil)
    shares.removeLast()
    #expect(asker.begin(for: "loud") != nil)
  }

  @Test func `steps of clients take turns on the asker's thread, and an answer reaches its asker`() throws {
    let inbox = try Inbox()
    let asker = try Asker(inbox: inbox)
    let order = Mutex<[String]>([])
    for number in 0..<3 { asker.run(for: "loud") { order.withLock { $0.append("loud \(number)") } } }
    let done = try EventDescriptor()
    asker.ask(.calls(after: nil), for: "quiet") { answer in
      order.withLock { $0.append(answer == nil ? "refused" : "answered") }
    }
    asker.answered(QuestionID(1), .calls(CallPage()))
    asker.answered(QuestionID(1), .calls(CallPage()))
    asker.run(for: "last") { done.signal() }
    try asker.start(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    #expect(done.wait(milliseconds: 10_000))
    asker.stop()
    #expect(order.withLock { $0.prefix(2) } == ["loud 0", "answered"], "one step each, and one answer to one question")
  }
}
