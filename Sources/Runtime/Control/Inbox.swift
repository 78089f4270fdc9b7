public import CallFlow
public import Cluster
public import Platform

/// Control's door for other threads. Inputs of one thread arrive in order.
///
/// A post to a full box is refused (false) and counted: the app thread then closes the session, media repeats itself, a confirmation that is
/// lost makes control go on after its 100 ms.
public final class Inbox: Sendable {
  let mailbox: Mailbox<Inbound>

  public init() throws(SystemError) { mailbox = try Mailbox(capacity: Limits.inbox) }

  @discardableResult public func post(_ input: CallMachine.Input) -> Bool { mailbox.post(.input(input)) }

  /// What the engine or an operator says of other nodes. Lost, the cluster machine goes on without the answer.
  @discardableResult public func post(_ input: ClusterMachine.Input) -> Bool {
    mailbox.post(.cluster(input), input.isAwaited ? .now : .gathered)
  }

  /// `look` runs on the control thread with the cluster machine, nil where there is none; it must not wait.
  @discardableResult public func cluster(_ look: @escaping @Sendable (ClusterMachine?) -> Void) -> Bool {
    mailbox.post(.lookAtCluster(look))
  }

  /// `answer` runs on the control thread with the live calls, oldest first.
  @discardableResult public func calls(_ answer: @escaping @Sendable ([CallSummary]) -> Void) -> Bool {
    mailbox.post(.calls(answer))
  }

  /// `look` runs on the control thread; it must not wait.
  @discardableResult public func machine(_ look: @escaping @Sendable (CallMachine) -> Void) -> Bool { mailbox.post(.look(look)) }

  /// No new calls from now on; `whenDone` runs once, on the control thread, when the last call is over.
  @discardableResult public func drain(_ whenDone: @escaping @Sendable () -> Void) -> Bool { mailbox.post(.drain(whenDone)) }

  /// Tells registrars that the gateway is gone; `whenDone` runs once, on the control thread, when they have answered.
  @discardableResult public func leave(_ whenDone: @escaping @Sendable () -> Void) -> Bool { mailbox.post(.leave(whenDone)) }

  /// Ends every call.
  @discardableResult public func hangUpAll() -> Bool { mailbox.post(.hangUpAll) }

  public var queue: MailboxReading { mailbox.reading("control") }
}

extension ClusterMachine.Input {
  /// False: a write is done, for which nobody waits. Control hears of it in its next turn, which comes within a second: waking it for each of a
  /// call's writes would cost more than the cluster machine does.
  fileprivate var isAwaited: Bool {
    if case .engine(.reply(_, .success(.done))) = self { return false }
    return true
  }
}

enum Inbound: Sendable {
  case input(CallMachine.Input)
  case cluster(ClusterMachine.Input)
  case lookAtCluster(@Sendable (ClusterMachine?) -> Void)
  case calls(@Sendable ([CallSummary]) -> Void)
  case look(@Sendable (CallMachine) -> Void)
  case drain(@Sendable () -> Void)
  case leave(@Sendable () -> Void)
  case hangUpAll
}
