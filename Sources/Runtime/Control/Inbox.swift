public import CallFlow
public import Cluster
public import Platform

/// Control's door for other threads, which only values pass: inputs, and questions. Those of one thread arrive in order, each kind for itself.
///
/// A post to a full box is refused (false) and counted: the app thread then closes the session, media repeats itself, a confirmation that is
/// lost makes control continue after its 100 ms.
public final class Inbox: Sendable {
  let mailbox: Mailbox<Inbound>
  /// Of their own: a flood of them delays no event of a call.
  let questions: Mailbox<AskedQuestion>

  public init() throws(SystemError) {
    mailbox = try Mailbox(capacity: Limits.inbox)
    questions = try Mailbox(capacity: Limits.questions)
  }

  @discardableResult public func post(_ input: CallMachine.Input) -> Bool { mailbox.post(.input(input)) }

  /// What the shared store or an operator says of other nodes. Lost, the cluster machine continues without the answer.
  @discardableResult public func post(_ input: ClusterMachine.Input) -> Bool {
    mailbox.post(.cluster(input), input.isAwaited ? .now : .gathered)
  }

  /// The answer comes through `ControlOutputs.answered`, once, under this number. False: too many wait, and there is none.
  @discardableResult public func ask(_ question: ControlQuestion, _ id: QuestionID) -> Bool {
    questions.post(AskedQuestion(id: id, question: question))
  }

  /// No new calls from now on; `ControlOutputs.drained` follows when the last call is over.
  @discardableResult public func drain() -> Bool { mailbox.post(.drain) }

  /// Tells registrars that the gateway is gone; `ControlOutputs.left` follows when they have answered.
  @discardableResult public func leave() -> Bool { mailbox.post(.leave) }

  /// Ends every call.
  @discardableResult public func hangUpAll() -> Bool { mailbox.post(.hangUpAll) }

  public var queues: [MailboxReading] { [mailbox.reading("control"), questions.reading("questions")] }
}

extension ClusterMachine.Input {
  /// False: a write is done, which is not awaited. Control hears of it in its next turn, which comes within a second: waking it for each of a
  /// call's writes would cost more than the cluster machine does.
  fileprivate var isAwaited: Bool {
    if case .sharedStore(.reply(_, .success(.done))) = self { return false }
    return true
  }
}

enum Inbound: Sendable {
  case input(CallMachine.Input)
  case cluster(ClusterMachine.Input)
  case drain
  case leave
  case hangUpAll
}

struct AskedQuestion: Sendable {
  let id: QuestionID
  let question: ControlQuestion
}
