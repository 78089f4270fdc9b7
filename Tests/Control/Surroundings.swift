import AppSessions
import CallFlow
import CallModel
import Control
import Glibc
import Logging
import Synchronization
import Trunking
import TrunklineBytes
import TrunklineMediaSession
import TrunklinePlatform
import TrunklineSIPDialogs

/// Control on its own loop, with everything around it scripted.
final class Surroundings: @unchecked Sendable {
  typealias Seen = RecordingOutputs.Seen

  let outputs: RecordingOutputs
  let inbox: Inbox
  let metrics: ControlMetrics
  private let loop: EventLoop
  private let control: LoopBound<Control>
  private var thread: NamedThread?
  static let flow = Flow(transport: .udp, local: SocketAddress(.loopback, 5060), remote: SocketAddress(.loopback, 5080))

  init(
    hasPorts: Bool = true, losesMedia: Bool = false, shortage: @escaping @Sendable () -> MediaShortage? = { nil },
    overloaded: @escaping @Sendable (RefusalReason?) -> Void = { _ in },
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
    outputs = RecordingOutputs(hasPorts: hasPorts, losesMedia: losesMedia, shortage: shortage, overloaded: overloaded) {
      [loop] question in loop.post { door.owner?.control.value.resolved(question, .failed) }
    }
    var configuration = CallConfiguration()
    configuration.bounds.callsPerUser = max(configuration.bounds.callsPerUser, calls)
    let network = TrunkMachine.Network(transports: [.udp], families: [.v4]) { _, _ in Self.flow }
    let made = try Control(
      loop: loop, userAgent: UserAgent(random: .seeded(1)),
      machine: CallMachine(
        configuration: configuration, routing: routing, random: .seeded(2), network: unlocated == nil ? nil : network),
      outputs: outputs.all,
      metrics: metrics, inbox: inbox, logger: logger, masksNumbers: masksNumbers)
    control = LoopBound(made, to: loop)
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

  var seen: Seen { outputs.seen.withLock { $0 } }

  /// A message of the trunk.
  func receive(_ text: String) {
    let bytes = Array(text.replacing("\n", with: "\r\n").utf8)
    control.post { $0.handle(.received(bytes, Self.flow, trunk: "carrier")) }
  }

  /// Makes calls follow the machine's addresses; `then` is called in the step in which that began.
  func moveCalls(_ successor: @escaping @Sendable (Flow, Bool) -> Flow?, then: @escaping @Sendable () -> Void) {
    control.post { control in
      control.moveCalls(successor)
      then()
    }
  }

  /// Control's answer to a question; nil: no answer came.
  func ask(_ question: ControlQuestion, _ number: UInt64) -> ControlAnswer? {
    guard inbox.ask(question, QuestionID(number)) else { return nil }
    _ = eventually { $0.answers[QuestionID(number)] != nil }
    return seen.answers[QuestionID(number)]
  }

  /// Waits on the real clock until control's outputs satisfy `condition`; false after `time`.
  func eventually(within time: Duration = .seconds(5), _ condition: (Seen) -> Bool) -> Bool {
    let end = MonotonicClock.now() + time
    while MonotonicClock.now() < end {
      if condition(seen) { return true }
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
