import Glibc
import Synchronization
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClient
import TrunklineClientMachines
import TrunklinePlatform

/// One app session that repeatedly requests the end of a call that does not exist. Control handles the request and answers `ok`,
/// so the time is what a running call would notice of the load. The probe has its own socket and two threads, with priority over
/// the load's where real-time scheduling is permitted.
final class SessionProbe: Sendable {
  private struct State {
    var session: ClientSession
    var isStorm = false
    var asked: (id: Identifier, at: Instant)?
    var answerAtRest: [Double] = [], answerInStorm: [Double] = []
    var problems: [String] = []
    var isOver = false
  }

  /// From an answer to the next request, and the longest time of a request.
  private static let pause = Duration.milliseconds(20)
  private static let timeout = Duration.seconds(5)
  private let random: RandomSource
  private let state: Mutex<State>
  private let pool = Mutex<WebSocketPool?>(nil)
  private let thread = Mutex<NamedThread?>(nil)

  init(_ session: ClientSession, endpoint: WebSocketPool.Endpoint, random: RandomSource) throws {
    self.random = random
    state = Mutex(State(session: session))
    let started = try NamedThread.start(name: "probe", scheduling: .realtime) { [self] in run(endpoint) }
    thread.withLock { $0 = started }
  }

  var isOnline: Bool { state.withLock { $0.session.isOnline } }
  var isStorm: Bool {
    get { state.withLock { $0.isStorm } }
    set { state.withLock { $0.isStorm = newValue } }
  }

  /// Milliseconds from request to answer, at rest and in the storm, and the problems. The session is closed.
  func stop() -> (atRest: [Double], inStorm: [Double], problems: [String]) {
    state.withLock { $0.isOver = true }
    thread.withLock { $0 }?.join()
    return state.withLock { ($0.answerAtRest, $0.answerInStorm, $0.problems) }
  }

  private func run(_ endpoint: WebSocketPool.Endpoint) {
    do {
      let made = try WebSocketPool(
        endpoint: endpoint, count: 1,
        start: { body in
          let thread = try NamedThread.start(name: "ws-probe", scheduling: .realtime, body: body)
          return { thread.join() }
        }
      ) { [self] _, event in give(event.input) }
      pool.withLock { $0 = made }
    } catch {
      return state.withLock { $0.problems.append("no probe: \(error)") }
    }
    give(.start)
    while !state.withLock({ $0.isOver }) {
      let now = MonotonicClock.now()
      if let due = state.withLock({ $0.session.nextDeadline }), due <= now { give(.timer) }
      ask(now)
      usleep(useconds_t(Self.pause.nanoseconds / 1_000))
    }
    give(.finish)
    pool.withLock { pool in
      defer { pool = nil }
      return pool
    }?.stop()
  }

  private func ask(_ now: Instant) {
    let actions = state.withLock { state -> [ClientSession.Action] in
      guard state.session.isOnline, state.asked.map({ now - $0.at > Self.timeout }) ?? true else { return [] }
      if state.asked != nil { state.problems.append("call.end was not answered within \(Self.timeout)") }
      var actions: [ClientSession.Action] = []
      let id = state.session.request(.callEnd(CallEnd()), call: Identifier(random: random), at: now, into: &actions)
      state.asked = (id, now)
      return actions
    }
    perform(actions)
  }

  private func give(_ input: ClientSession.Input) {
    let now = MonotonicClock.now()
    let actions = state.withLock { state -> [ClientSession.Action] in
      var actions: [ClientSession.Action] = []
      state.session.handle(input, at: now, into: &actions)
      for case .event(let event) in actions { Self.note(event, now, &state) }
      return actions
    }
    perform(actions)
  }

  private static func note(_ event: ClientSession.Event, _ now: Instant, _ state: inout State) {
    switch event {
    case .answered(let id, _, _):
      guard let asked = state.asked, asked.id == id else { return }
      let elapsed = (now - asked.at).inSeconds * 1_000
      if state.isStorm { state.answerInStorm.append(elapsed) } else { state.answerAtRest.append(elapsed) }
      state.asked = nil
    case .refused(let code): state.problems.append("the probe's session was refused with \(code)")
    case .offline:
      // The request is repeated on the new socket; its time would include the reconnection.
      if !state.isOver { state.problems.append("the probe lost its socket") }
      state.asked = nil
    case .online, .message, .mediaAnswer: break
    }
  }

  private func perform(_ actions: [ClientSession.Action]) {
    let gateway = state.withLock { $0.session.gateway }
    pool.withLock { $0 }?.perform(actions, 0, gateway: gateway)
  }
}
