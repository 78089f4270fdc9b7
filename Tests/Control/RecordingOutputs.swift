import AppSessions
import CallFlow
import CallModel
import Control
import Devices
import PushPolicy
import Synchronization
import Testing
import Trunking
import TrunklineBytes
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineSIPDialogs

/// Everything around control, scripted: keeps what it gets under a lock. An output that no test of control expects is an issue.
final class RecordingOutputs: Sendable {
  struct Seen: Sendable {
    var sip: [String] = []
    var app: [SessionCommand] = []
    var media: [MediaCommand] = []
    var lines: [JournalEntry] = []
    var records: [CallRecord] = []
    var pressureChecks = 0
    var lookUps = 0
    var answers: [QuestionID: ControlAnswer] = [:]
    var drained = 0
    /// Ends of steps, which wake other threads.
    var steps = 0
    var devices: [DeviceChange] = []
    var grants: [UserGrants.Change] = []
    var events: [GatewayEvent] = []
    var trunkNews: [TrunkNews] = []
    var callsOver: [CallID] = []
  }
  struct NoPorts: Error {}

  let seen = Mutex(Seen())
  let hasPorts: Bool
  let losesMedia: Bool
  let mediaShortage: @Sendable () -> MediaShortage?
  let onOverload: @Sendable (RefusalReason?) -> Void
  /// Fails a look-up in a later step.
  let failed: @Sendable (DNSQuestion) -> Void

  init(
    hasPorts: Bool, losesMedia: Bool, shortage: @escaping @Sendable () -> MediaShortage?,
    overloaded: @escaping @Sendable (RefusalReason?) -> Void, failed: @escaping @Sendable (DNSQuestion) -> Void
  ) {
    (self.hasPorts, self.losesMedia, mediaShortage) = (hasPorts, losesMedia, shortage)
    (onOverload, self.failed) = (overloaded, failed)
  }

  var all: ControlOutputs {
    ControlOutputs(
      sip: self, names: self, media: self, apps: self, push: self, webhooks: self, store: self, audio: self, answers: self,
      state: self, cluster: nil)
  }

  func note(_ change: (inout Seen) -> Void) { seen.withLock { change(&$0) } }

  private func unexpected(_ output: String) { Issue.record("control asked for \(output), which no test expects") }
}

extension RecordingOutputs: SIPOutput, NameOutput {
  func send(_ message: UserAgent.Output.Message) { note { $0.sip.append(String(decoding: message.bytes, as: UTF8.self)) } }
  func authenticated(_ flow: Flow) { unexpected("authenticated") }
  func wasSilent(_ flow: Flow, since: Instant) {}
  var backlog: Duration { .zero }
  func flow(_ transport: TransportProtocol, toward remote: SocketAddress) -> Flow? {
    unexpected("a flow")
    return nil
  }

  /// Every look-up fails.
  func ask(_ question: DNSQuestion) {
    note { $0.lookUps += 1 }
    failed(question)
  }
}

extension RecordingOutputs: MediaPlaneOutput {
  func send(_ command: MediaCommand) -> Bool {
    note { $0.media.append(command) }
    return !losesMedia
  }

  func reserve(_ request: MediaRequest) throws -> MediaReservation {
    guard hasPorts else { throw NoPorts() }
    return MediaReservation(
      session: request.session, trunkAddress: SocketAddress(.loopback, 41000),
      appCandidates: [SocketAddress(.loopback, 40000)],
      fingerprint: Array(repeating: 7, count: 32))
  }

  func move(_ request: MediaRequest) throws -> SocketAddress? { nil }
  var shortage: MediaShortage? { mediaShortage() }
  /// The media threads', and the store's.
  func wake() { note { $0.steps += 1 } }
}

extension RecordingOutputs: AppOutput, PushOutput, WebhookOutput, AudioOutput, AnswerOutput {
  func post(_ command: SessionCommand) { note { $0.app.append(command) } }
  var sessions: Int {
    unexpected("the number of sessions")
    return 0
  }

  func push(_ key: PushKey, _ target: PushTarget, _ content: CallPush, deadline: Instant, since: Instant?) {
    unexpected("a push")
  }
  func callOver(_ call: CallID) { note { $0.callsOver.append(call) } }
  func ask(_ question: RouteQuestion, _ hook: Webhook) { unexpected("a route") }
  func ask(_ question: UserQuestion, _ hook: Webhook) { unexpected("a user") }
  func verify(_ call: CallID, _ question: IdentityQuestion) { unexpected("a verification") }
  func perform(_ command: RecordingCommand) { unexpected("a recording") }
  func perform(_ command: StreamCommand) { unexpected("a stream") }
  func answered(_ id: QuestionID, _ answer: ControlAnswer) { note { $0.answers[id] = answer } }
}

extension RecordingOutputs: StoreOutput, StateOutput {
  func start(_ line: JournalEntry, confirm: @escaping @Sendable (CallID) -> Void) {
    note { $0.lines.append(line) }
    confirm(line.call)
  }

  func end(_ record: CallRecord) { note { $0.records.append(record) } }
  func disown(_ call: CallID) { unexpected("disown") }
  func change(_ devices: [DeviceChange]) { note { $0.devices += devices } }
  func change(_ grants: [UserGrants.Change]) { note { $0.grants += grants } }
  func append(_ event: GatewayEvent) { note { $0.events.append(event) } }

  func memory() -> (used: Int64, limit: Int64) {
    note { $0.pressureChecks += 1 }
    return (0, 0)
  }

  func overloaded(_ reason: RefusalReason?) { onOverload(reason) }
  func trunkNews(_ news: TrunkNews) { note { $0.trunkNews.append(news) } }
  func trunkStatuses(_ statuses: [TrunkStatus]) {}
  func drained() { note { $0.drained += 1 } }
  func left() { unexpected("left") }
}
