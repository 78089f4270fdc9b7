import AppSessions
import CallFlow
import Control
import Glibc
import Logging
import Synchronization
import Trunking
import TrunklineBytes
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineSIPDialogs

/// Control on its own loop, with everything around it scripted; its outputs are kept under a lock.
final class Surroundings: @unchecked Sendable {
  struct Seen: Sendable {
    var sip: [String] = []
    var app: [SessionCommand] = []
    var media: [MediaCommand] = []
    var lines: [StartLine] = []
    var records: [CallRecord] = []
    var pressureChecks = 0
    var lookUps = 0
    var answers: [QuestionID: ControlAnswer] = [:]
    var drained = 0
  }
  struct NoPorts: Error {}

  let seen = Mutex(Seen())
  let inbox: Inbox
  let metrics: ControlMetrics
  private let loop: EventLoop
  private let control: Control
  private var thread: NamedThread?
  static let flow = Flow(transport: .udp, local: SocketAddress(.loopback, 5060), remote: SocketAddress(.loopback, 5080))

  init(
    hasPorts: Bool = true, losesMedia: Bool = false, shortage: @escaping () -> MediaShortage? = { nil },
    overloaded: @escaping (RefusalReason?) -> Void = { _ in },
    logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, masksNumbers: Bool = true,
    unlocated: TrunkSettings? = nil, calls: Int = 7
  ) throws {
    loop = try EventLoop(name: "test")
    inbox = try Inbox()
    metrics = ControlMetrics(steps: loop.steps)
    var routing = Routing(
      trunks: [
        .init(name: "carrier", peer: TrunkPeer(name: "carrier", domain: "127.0.0.1:5080", flow: Self.flow), maximumCalls: calls)
      ],
      users: [.init(id: "alice", numbers: ["+15551230001"])], inbound: [.init(trunk: "carrier", target: .users)])
    if let unlocated {
      var trunk = Routing.Trunk(name: unlocated.name)
      trunk.settings = unlocated
      routing.trunks.append(trunk)
    }
    let door = Door()
    var outputs = ControlOutputs(
      sendSIP: { message in door.owner?.note { $0.sip.append(String(decoding: message.bytes, as: UTF8.self)) } },
      sendApp: { command in door.owner?.note { $0.app.append(command) } },
      sendMedia: { command in
        door.owner?.note { $0.media.append(command) }
        return !losesMedia
      },
      reserveMedia: { request in
        guard hasPorts else { throw NoPorts() }
        return MediaReservation(
          session: request.session, trunkAddress: SocketAddress(.loopback, 41000),
          appCandidates: [SocketAddress(.loopback, 40000)],
          fingerprint: Array(repeating: 7, count: 32))
      },
      journal: { line, confirm in
        door.owner?.note { $0.lines.append(line) }
        confirm(line.call)
      },
      record: { record in door.owner?.note { $0.records.append(record) } })
    (outputs.mediaShortage, outputs.overloaded) = (shortage, overloaded)
    outputs.memory = {
      door.owner?.note { $0.pressureChecks += 1 }
      return (0, 0)
    }
    outputs.answered = { id, answer in door.owner?.note { $0.answers[id] = answer } }
    outputs.drained = { door.owner?.note { $0.drained += 1 } }
    // every look-up fails
    outputs.lookUp = { [loop] question in
      loop.post {
        door.owner?.note { $0.lookUps += 1 }
        door.owner?.control.resolved(question, .failed)
      }
    }
    var configuration = CallFlow.Configuration()
    configuration.bounds.callsPerUser = max(configuration.bounds.callsPerUser, calls)
    let network = TrunkMachine.Network(transports: [.udp], families: [.v4]) { _, _ in Self.flow }
    control = try Control(
      loop: loop, userAgent: UserAgent(random: .seeded(1)),
      machine: CallMachine(
        configuration: configuration, routing: routing, random: .seeded(2), network: unlocated == nil ? nil : network),
      outputs: outputs,
      metrics: metrics, inbox: inbox, logger: logger, masksNumbers: masksNumbers)
    door.owner = self
    let loop = loop
    thread = try NamedThread.start(name: "test") { loop.run() }
  }

  /// Ends the loop; earlier posts are handled.
  func stop() {
    loop.stop()
    thread?.join()
    thread = nil
  }

  func note(_ change: (inout Seen) -> Void) { seen.withLock { change(&$0) } }

  /// A message of the trunk.
  func receive(_ text: String) {
    let bytes = Array(text.replacing("\n", with: "\r\n").utf8)
    loop.post { [control] in control.handle(.received(bytes, Self.flow, trunk: "carrier")) }
  }

  /// Makes calls follow the machine's addresses; `then` is called in the step in which that began.
  func moveCalls(_ successor: @escaping @Sendable (Flow, Bool) -> Flow?, then: @escaping @Sendable () -> Void) {
    loop.post { [control] in
      control.moveCalls(successor)
      then()
    }
  }

  /// Control's answer to a question; nil: no answer came.
  func ask(_ question: ControlQuestion, _ number: UInt64) -> ControlAnswer? {
    guard inbox.ask(question, QuestionID(number)) else { return nil }
    _ = eventually { $0.answers[QuestionID(number)] != nil }
    return seen.withLock { $0.answers[QuestionID(number)] }
  }

  /// Waits on the real clock until control's outputs satisfy `condition`; false after `time`.
  func eventually(within time: Duration = .seconds(5), _ condition: (Seen) -> Bool) -> Bool {
    let end = MonotonicClock.now() + time
    while MonotonicClock.now() < end {
      let now = seen.withLock { $0 }
      if condition(now) { return true }
      sched_yield()
    }
    return false
  }

  static func invite(to number: String, call: String = "a") -> String {
    let sdp = "v=0\no=- 1 1 IN IP4 127.0.0.1\ns=-\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 6000 RTP/AVP 0\n"
    return """
      INVITE sip:\(number)@127.0.0.1:5060 SIP/2.0
      Via: SIP/2.0/UDP 127.0.0.1:5080;branch=z9hG4bK\(call)
      From: <sip:+15550001111@127.0.0.1>;tag=f\(call)
      To: <sip:\(number)@127.0.0.1>
      Call-ID: \(call)@127.0.0.1
      CSeq: 1 INVITE
      Contact: <sip:carrier@127.0.0.1:5080>
      Max-Forwards: 70
      Content-Type: application/sdp
      Content-Length: \(sdp.utf8.count + sdp.count { $0 == "\n" })

      \(sdp)
      """.replacing("      ", with: "")
  }
}

private final class Door: @unchecked Sendable { weak var owner: Surroundings? }
