import Glibc
import Synchronization
import TrunklineAppProtocol
public import TrunklineBytes
import TrunklineClient
import TrunklineClientMachines
import TrunklinePlatform

/// Many app sessions at once and no calls: how quickly they are welcome, how long it takes until all come back after they were
/// cut at the same time, and whether one of them (`SessionProbe`) is answered meanwhile. One thread for the sockets, one for the
/// timers.
public final class SessionLoad: Sendable {
  public struct Options: Sendable {
    public var url = "ws://127.0.0.1:8080/v1/connect"
    public var clients: [LoadOptions.Client] = []
    public var perSecond = 1_000.0
    /// How long all sessions stay before they are cut, and the time over which they are cut.
    public var hold = Duration.seconds(10)
    public var reconnectWithin = Duration.seconds(10)
    public init() {}
  }

  /// Durations in milliseconds.
  public struct Times: Codable, Sendable {
    public var count = 0
    public var p50 = 0.0, p99 = 0.0, most = 0.0
    init(_ values: [Double] = []) {
      let sorted = values.sorted()
      guard let last = sorted.last else { return }
      (count, most) = (sorted.count, last)
      p50 = sorted[sorted.count / 2]
      p99 = sorted[min(sorted.count - 1, sorted.count * 99 / 100)]
    }
  }

  public struct Result: Codable, Sendable {
    public var asked = 0
    /// Sessions that were online after all had been started, and at the end.
    public var online = 0, onlineAtEnd = 0
    /// From the attempt to connect to `welcome` at the first time; from the cut, including the client's own wait, at the second.
    public var welcome = Times(), welcomeBack = Times()
    /// From `call.end` of one session to its answer: at rest, and while the others come back.
    public var answerAtRest = Times(), answerInStorm = Times()
    public var problems: [String] = []
  }

  private struct State {
    var sessions: [ClientSession]
    var began: [Instant]
    var isStorm = false
    var welcome: [Double] = [], welcomeBack: [Double] = []
    var problems: [String] = []
  }

  /// How long the last session may take to be online: the longest spread of a node, and a margin.
  private static let timeout = Duration.seconds(90)
  private let options: Options
  private let random: RandomSource
  private let state: Mutex<State>
  private let progress: @Sendable (String) -> Void
  /// Called when all are online and idle, before the storm: the time to measure the gateway's memory.
  private let atRest: @Sendable () -> Void
  private let isStopping = Atomic<Bool>(false)

  public init(
    _ options: Options, random: RandomSource = .system, progress: @escaping @Sendable (String) -> Void,
    atRest: @escaping @Sendable () -> Void
  ) {
    (self.options, self.random, self.progress, self.atRest) = (options, random, progress, atRest)
    state = Mutex(
      State(
        sessions: options.clients.dropFirst().map { $0.session(random) },
        began: Array(repeating: .zero, count: max(0, options.clients.count - 1))))
  }

  /// Any thread. `run` then skips its waits and returns.
  public func stop() { isStopping.store(true, ordering: .relaxed) }

  /// Blocks until the sessions have connected, been cut, reconnected and been closed.
  public func run() throws -> Result {
    let endpoint = try WebSocketPool.Endpoint(url: options.url, isInsecure: true)
    guard let first = options.clients.first else { return Result() }
    let probe = try SessionProbe(first.session(random), endpoint: endpoint, random: random)
    let room = Mutex<WebSocketPool?>(nil)
    let pool = try WebSocketPool(endpoint: endpoint, count: options.clients.count - 1) { [self] number, event in
      if let pool = room.withLock({ $0 }) { give(number, event.input, pool) }
    }
    room.withLock { $0 = pool }
    defer {
      room.withLock { $0 = nil }
      pool.stop()
    }
    var result = Result()
    result.asked = options.clients.count
    progress("\(result.asked) sessions, \(Int(options.perSecond)) a second")
    spread(over: .nanoseconds(Int64(Double(result.asked) / options.perSecond * 1e9)), pool) { number in
      give(number, .start, pool) { $0.began[number] = MonotonicClock.now() }
    }
    wait(pool, Self.timeout) { $0.sessions.allSatisfy(\.isOnline) && probe.isOnline }
    result.online = online + (probe.isOnline ? 1 : 0)
    progress("\(result.online) online; at rest for \(Int(options.hold.inSeconds)) s")
    wait(pool, options.hold) { _ in false }
    atRest()
    if options.reconnectWithin > .zero, result.asked > 1, !isStopping.load(ordering: .relaxed) {
      progress("all but one are cut within \(Int(options.reconnectWithin.inSeconds)) s and come back")
      state.withLock { $0.isStorm = true }
      probe.isStorm = true
      spread(over: options.reconnectWithin, pool) { number in
        state.withLock { $0.began[number] = MonotonicClock.now() }
        // Not 1000, which would end the session: this simulates a lost network.
        pool.close(number, 1001)
      }
      wait(pool, Self.timeout) { $0.welcomeBack.count >= result.asked - 1 }
    }
    result.onlineAtEnd = online + (probe.isOnline ? 1 : 0)
    let (answersAtRest, answersInStorm, problems) = probe.stop()
    result.answerAtRest = Times(answersAtRest)
    result.answerInStorm = Times(answersInStorm)
    state.withLock { state in
      result.welcome = Times(state.welcome)
      result.welcomeBack = Times(state.welcomeBack)
      result.problems = state.problems + problems
    }
    for number in state.withLock({ $0.sessions.indices }) { give(number, .finish, pool) }
    return result
  }

  private var online: Int { state.withLock { $0.sessions.count(where: \.isOnline) } }

  /// Calls `body` with every number, evenly over a time, and runs the sessions' timers meanwhile.
  private func spread(over time: Duration, _ pool: WebSocketPool, _ body: (Int) -> Void) {
    let (start, count) = (MonotonicClock.now(), state.withLock { $0.sessions.count })
    var next = 0
    while next < count, !isStopping.load(ordering: .relaxed) {
      let share = time > .zero ? (MonotonicClock.now() - start).inSeconds / time.inSeconds : 1
      let due = min(count, Int(share * Double(count)) + 1)
      while next < due {
        body(next)
        next += 1
      }
      keepTime(pool)
    }
  }

  private func wait(_ pool: WebSocketPool, _ most: Duration, _ isOver: (State) -> Bool) {
    let end = MonotonicClock.now() + most
    while MonotonicClock.now() < end, !isStopping.load(ordering: .relaxed), !state.withLock({ isOver($0) }) { keepTime(pool) }
  }

  /// One step: timers that are due, and a short sleep.
  private func keepTime(_ pool: WebSocketPool) {
    let now = MonotonicClock.now()
    let due = state.withLock { state in
      state.sessions.indices.filter { index in state.sessions[index].nextDeadline.map { $0 <= now } ?? false }
    }
    for number in due { give(number, .timer, pool) }
    usleep(20_000)
  }

  private func give(
    _ number: Int, _ input: ClientSession.Input, _ pool: WebSocketPool, _ before: (inout State) -> Void = { _ in }
  ) {
    let (actions, gateway) = state.withLock { state -> ([ClientSession.Action], String?) in
      before(&state)
      var actions: [ClientSession.Action] = []
      state.sessions[number].handle(input, at: MonotonicClock.now(), into: &actions)
      return (actions, state.sessions[number].gateway)
    }
    pool.perform(actions, number, gateway: gateway) { handle(number, $0) }
  }

  private func handle(_ number: Int, _ event: ClientSession.Event) {
    let now = MonotonicClock.now()
    state.withLock { state in
      switch event {
      case .online:
        let elapsed = (now - state.began[number]).inSeconds * 1_000
        if state.isStorm { state.welcomeBack.append(elapsed) } else { state.welcome.append(elapsed) }
      case .refused(let code): state.problems.append("session \(number) was refused with \(code)")
      case .offline, .message, .mediaAnswer, .answered: break
      }
    }
  }
}
