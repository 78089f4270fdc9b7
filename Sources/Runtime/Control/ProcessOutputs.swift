public import CallFlow
public import CallModel
public import Cluster
public import Devices
public import Trunking
public import TrunklineSIPDialogs

/// The store's thread.
public protocol StoreOutput: AnyObject {
  /// Writes a journal entry; `confirm` is called from any thread once it is on disk.
  func start(_ line: JournalEntry, confirm: @escaping @Sendable (CallID) -> Void)
  func end(_ record: CallRecord)
  /// A call whose record another node has written: nothing about it is kept here.
  func disown(_ call: CallID)
  func change(_ devices: [DeviceChange])
  /// Changes of login tokens' grants.
  func change(_ grants: [UserGrants.Change])
  /// An event for receivers outside the gateway; before the journal entry or record of the same step.
  func append(_ event: GatewayEvent)
  /// The step is over: the thread is woken if it got a journal entry.
  func wake()
}

/// The threads that asked control.
public protocol AnswerOutput: AnyObject {
  /// The answer to a question of `Inbox.ask`.
  func answered(_ id: QuestionID, _ answer: ControlAnswer)
}

/// The process around control: its readiness, its trunks as others see them, and its end.
public protocol StateOutput: AnyObject {
  /// Memory in use and its limit in bytes; a limit of 0 is none. Called ten times a second.
  func memory() -> (used: Int64, limit: Int64)
  /// New calls are refused from now on for this reason, or accepted again; for `/readyz`.
  func overloaded(_ reason: RefusalReason?)
  func trunkNews(_ news: TrunkNews)
  /// The trunks, once a second; for `/readyz`.
  func trunkStatuses(_ statuses: [TrunkStatus])
  /// After `Inbox.drain`, once: the last call is over.
  func drained()
  /// After `Inbox.leave`: registrars have answered.
  func left()
}

/// The shared store, and what other nodes state about this one.
public protocol ClusterOutput: AnyObject {
  /// A request to the shared store; the answer arrives as `Inbound.cluster`.
  func post(_ id: SharedStoreRequestID, _ request: SharedStoreRequest)
  /// The step is over: the shared store's thread is woken if it got a request.
  func wake()
  /// All known nodes, once a second; for sessions and for the sources that SIP is accepted from.
  func nodesSeen(_ nodes: [SeenNode])
  func stateChanged(_ state: SharedStoreState)
  func leads(_ task: SingleTask, isOurs: Bool)
  func forgot(node: String, _ outcome: ForgetOutcome)
  /// A message of another node about directories and histories.
  func received(_ message: ClusterMessage)
  /// Another live process has this node's name: this process ends.
  func nameInUse(by lease: NodeLease, atStart: Bool)
  /// A node of a version that shares nothing with this one: this process ends.
  func incompatible(with lease: NodeLease)
}
