public import CallFlow
import CallModel
public import Cluster
public import TrunklinePlatform

/// Control's entry point for other threads, which accepts only values: inputs, and questions. Those of one thread arrive in
/// order, each kind by itself.
///
/// A post to a full box is refused (false) and counted: the app thread then closes the session, media sends again, and after a
/// lost confirmation control continues after its 100 ms.
public final class Inbox: Sendable {
  let mailbox: Mailbox<Inbound>
  /// In their own mailbox: a flood of them delays no event of a call.
  let questions: Mailbox<AskedQuestion>

  public init() throws(SystemError) {
    mailbox = try Mailbox(capacity: Limits.inbox)
    questions = try Mailbox(capacity: Limits.questions)
  }

  @discardableResult public func post(_ input: CallMachine.Input) -> Bool { mailbox.post(.input(input)) }

  /// An answer of the shared store or an operator's statement on other nodes. If it is lost, the cluster machine continues
  /// without it.
  @discardableResult public func post(_ input: ClusterMachine.Input) -> Bool {
    mailbox.post(.cluster(input), input.isAwaited ? .now : .gathered)
  }

  /// The answer arrives through `AnswerOutput.answered`, once, under this number. False: too many wait, and no answer follows.
  @discardableResult public func ask(_ question: ControlQuestion, _ id: QuestionID) -> Bool {
    questions.post(AskedQuestion(id: id, question: question))
  }

  /// No new calls from now on; `StateOutput.drained` follows when the last call is over.
  @discardableResult public func drain() -> Bool { mailbox.post(.drain) }

  /// Unregisters at the registrars; `StateOutput.left` follows when they have answered.
  @discardableResult public func leave() -> Bool { mailbox.post(.leave) }

  /// Ends every call.
  @discardableResult public func hangUpAll() -> Bool { mailbox.post(.hangUpAll) }

  public var queues: [MailboxReading] { [mailbox.reading("control"), questions.reading("questions")] }
}

extension ClusterMachine.Input {
  /// False: a completed write, for which nothing waits. Control reads it in its next step, which comes within a second: waking it
  /// for each of a call's writes would cost more than the cluster machine does.
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
