public import CallFlow
import CallModel
public import Logging
import Synchronization
public import TrunklinePlatform

/// The thread `pages`: processes control's answers, and the other work of external requests. Clients (the names of tokens) share
/// it by steps in rotation, so that a long answer to one delays no other; a step should last some milliseconds.
///
///     let asker = try Asker(inbox: inbox)
///     let outputs = ControlOutputs(…, answers: asker, …)
///     try asker.start(logger: logger)
///     guard let share = asker.begin(for: client) else { … }          // the client has too many open requests
///     asker.run(for: client) { asker.ask(.call(id), for: client) { answer in … } }
///     asker.stop()
public final class Asker: AnswerOutput, Sendable {
  public typealias Work = @Sendable () -> Void
  /// Nil: control has no room for the question.
  public typealias Then = @Sendable (ControlAnswer?) -> Void

  /// An open request of a client, until it is released.
  public final class Share: Sendable {
    private let asker: Asker
    private let client: String
    fileprivate init(_ asker: Asker, _ client: String) { (self.asker, self.client) = (asker, client) }
    deinit { asker.end(client) }
  }

  private struct Waiting {
    var last: UInt64 = 0
    var questions: [QuestionID: (client: String, then: Then)] = [:]
    var requests: [String: Int] = [:]
  }
  private let inbox: Inbox
  private let work: FairMailbox<String, Work?>
  private let waiting = Mutex(Waiting())
  private let thread = Mutex<NamedThread?>(nil)

  public init(inbox: Inbox) throws(SystemError) {
    self.inbox = inbox
    work = try FairMailbox(capacity: Limits.askerWork, share: Limits.askerWork)
  }

  public func start(logger: Logger) throws(SystemError) {
    let work = work
    let running = try NamedThread.start(name: "pages", logger: logger) {
      let heartbeat = Heartbeat()
      defer { heartbeat.end() }
      while true {
        guard let step = work.wait(heartbeat: heartbeat) else { continue }
        guard let step else { return }
        step()
      }
    }
    thread.withLock { $0 = running }
  }

  /// Ends the thread; waiting steps are not run.
  public func stop() {
    work.post(nil, of: "", isExempt: true)
    thread.withLock { thread in
      defer { thread = nil }
      return thread
    }?.join()
  }

  // MARK: any thread

  /// Begins another request of a client; nil: it has `Limits.requestsPerClient` (16) open ones.
  public func begin(for client: String) -> Share? {
    let isQueued = waiting.withLock { waiting in
      guard waiting.requests[client, default: 0] < Limits.requestsPerClient else { return false }
      waiting.requests[client, default: 0] += 1
      return true
    }
    return isQueued ? Share(self, client) : nil
  }

  private func end(_ client: String) {
    waiting.withLock { waiting in
      let left = waiting.requests[client, default: 1] - 1
      waiting.requests[client] = left > 0 ? left : nil
    }
  }

  /// A step of an open request. Exempt from the bound: there are no more steps than open requests.
  public func run(for client: String, _ step: @escaping Work) { work.post(step, of: client, isExempt: true) }

  /// `then` runs on this thread, once, in the client's next step.
  public func ask(_ question: ControlQuestion, for client: String, _ then: @escaping Then) {
    let id = waiting.withLock { waiting -> QuestionID? in
      guard waiting.questions.count < Limits.asked else { return nil }
      waiting.last += 1
      let id = QuestionID(waiting.last)
      waiting.questions[id] = (client, then)
      return id
    }
    guard let id else { return run(for: client) { then(nil) } }
    if !inbox.ask(question, id) { finish(id, nil) }
  }

  /// Control's answer: it is queued for the thread; nothing is processed here.
  public func answered(_ id: QuestionID, _ answer: ControlAnswer) { finish(id, answer) }

  private func finish(_ id: QuestionID, _ answer: ControlAnswer?) {
    guard let (client, then) = waiting.withLock({ $0.questions.removeValue(forKey: id) }) else { return }
    run(for: client) { then(answer) }
  }

  public var queue: MailboxReading { work.reading("pages") }
}
