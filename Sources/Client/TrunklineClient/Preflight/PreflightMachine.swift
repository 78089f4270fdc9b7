import TrunklineBytes
import TrunklineClientMachines
import TrunklineTURN

/// Tests the parts that a call needs. No clock, I/O or threads.
///
/// | part | event | effect |
/// |---|---|---|
/// | network | `start`, online | three echoes, one after the other; the best round trip counts |
/// | network | `start`, not online; an echo without an answer in 5 s | not good |
/// | server | `start` | connections to all at once, six at most |
/// | server | opened, received | an allocation is requested; 300 is followed once |
/// | server | allocated | good; it is released and the connection closed |
/// | server | closed, refused, 5 s | not good, with the reason |
/// | call | the other parts are done, online | the test call, so that it runs without other traffic |
/// | call | no result in 30 s | not good |
/// | all | the last part is done | `finished`, once |
struct PreflightMachine: Sendable {
  enum Input: Sendable {
    /// The answer to `Action.echo`; false: none can be received.
    case echoed(Bool)
    case opened(Int)
    case received(Int, [UInt8])
    case closed(Int, String)
    /// The test call has ended; nil: none could be made.
    case called(Preflight.TestCall?)
    case timer
  }
  enum Action: Sendable {
    /// A request that changes nothing.
    case echo
    case connect(Int, TURNServer)
    case send(Int, [UInt8])
    /// Waiting messages are sent first.
    case disconnect(Int)
    /// Makes the test call; `called` follows.
    case call
    case finished(Preflight)
  }
  /// The known state at the start.
  struct Situation: Sendable {
    /// Nil: online.
    var networkError: PhoneError?
    var microphone: MicrophonePermission
    /// Nil: the phone has no routes.
    var routes: AudioRouteList?
    var servers: [TURNServer]
  }

  private struct Attempt: Sendable {
    let number: Int
    let index: Int
    let server: TURNServer
    var client: TURNClient
    var framing: TURNFraming?
  }

  private static let time = Duration.seconds(5)
  /// The phone ends its test call after 20 s; only an unresponsive media thread takes longer.
  private static let callTime = Duration.seconds(30)
  private static let echoes = 3
  private static let mostServers = 6

  private var result: Preflight
  private let random: RandomSource
  private let startedAt: Instant
  private var echoedAt: Instant
  private var echoDue: Instant?
  private var echoesLeft = 0
  private var best: Duration?
  private var callDue: Instant?
  private var hasCalled = false
  private var attempts: [Attempt] = []
  private var nextNumber = 0
  private var isFinished = false
  private var output = TURNClient.Output()

  init(_ situation: Situation, random: RandomSource, at now: Instant, into actions: inout [Action]) {
    (startedAt, echoedAt, self.random) = (now, now, random)
    let isGranted = situation.microphone == .granted && situation.routes?.hasMicrophone ?? true
    result = Preflight(
      network: .init(isGood: false, roundTripMilliseconds: nil, error: situation.networkError),
      microphone: .init(isGood: isGranted, route: situation.routes?.current, error: isGranted ? nil : .noMicrophone),
      servers: situation.servers.prefix(Self.mostServers).map { .init(url: $0.url, isGood: false, failure: "no answer") })
    if situation.networkError == nil {
      echoesLeft = Self.echoes
      echo(now, &actions)
    }
    for (index, server) in situation.servers.prefix(Self.mostServers).enumerated() {
      connect(server, index, &actions)
    }
    finishIfDone(now, &actions)
  }

  var nextDeadline: Instant? {
    let dues = [echoDue, callDue, attempts.isEmpty ? nil : startedAt + Self.time] + attempts.map(\.client.nextDeadline)
    return dues.compactMap(\.self).min()
  }

  mutating func handle(_ input: Input, at now: Instant, into actions: inout [Action]) {
    guard !isFinished else { return }
    switch input {
    case .echoed(let isAnswered): echoed(isAnswered, now, &actions)
    case .opened(let number):
      guard let index = attempts.firstIndex(where: { $0.number == number }) else { return }
      attempts[index].client.start(at: now, into: &output)
      drain(number, now, &actions)
    case .received(let number, let bytes): received(number, bytes, now, &actions)
    case .closed(let number, let why): failed(number, why)
    case .called(let call):
      // a result after its deadline
      guard callDue != nil else { return }
      callDue = nil
      result.call = call
    case .timer: timers(now, &actions)
    }
    finishIfDone(now, &actions)
  }

  // MARK: the network

  private mutating func echo(_ now: Instant, _ actions: inout [Action]) {
    echoesLeft -= 1
    echoedAt = now
    echoDue = now + Self.time
    actions.append(.echo)
  }

  private mutating func echoed(_ isAnswered: Bool, _ now: Instant, _ actions: inout [Action]) {
    // an answer after its deadline
    guard echoDue != nil else { return }
    echoDue = nil
    guard isAnswered else { return networkFailed() }
    let trip = now - echoedAt
    best = best.map { min($0, trip) } ?? trip
    if echoesLeft > 0 { return echo(now, &actions) }
    result.network = .init(isGood: true, roundTripMilliseconds: best.map { Double($0.nanoseconds) / 1e6 })
  }

  private mutating func networkFailed() {
    echoDue = nil
    echoesLeft = 0
    result.network = .init(isGood: false, roundTripMilliseconds: nil, error: .notConnected)
  }

  // MARK: TURN servers

  private mutating func connect(_ server: TURNServer, _ index: Int, _ actions: inout [Action]) {
    let isStream = server.transport != .udp
    let client = TURNClient(username: server.username, password: server.password, isStream: isStream, random: random)
    attempts.append(
      Attempt(number: nextNumber, index: index, server: server, client: client, framing: isStream ? TURNFraming() : nil))
    actions.append(.connect(nextNumber, server))
    nextNumber += 1
  }

  private mutating func received(_ number: Int, _ bytes: [UInt8], _ now: Instant, _ actions: inout [Action]) {
    guard let index = attempts.firstIndex(where: { $0.number == number }) else { return }
    do throws(TURNFailure) {
      guard attempts[index].framing != nil else { return handle(number, bytes, now, &actions) }
      try attempts[index].framing?.append(bytes)
      while let index = attempts.firstIndex(where: { $0.number == number }), let message = try attempts[index].framing?.next() {
        handle(number, message, now, &actions)
      }
    } catch {
      actions.append(.disconnect(number))
      failed(number, "\(error)")
    }
  }

  private mutating func handle(_ number: Int, _ message: [UInt8], _ now: Instant, _ actions: inout [Action]) {
    guard let index = attempts.firstIndex(where: { $0.number == number }) else { return }
    // no peer has a permission, so no peer's data is received
    _ = message.withUnsafeBytes { attempts[index].client.receive($0, at: now, into: &output) }
    drain(number, now, &actions)
  }

  private mutating func drain(_ number: Int, _ now: Instant, _ actions: inout [Action]) {
    for message in output.messages { actions.append(.send(number, message)) }
    let events = output.events
    output = TURNClient.Output()
    guard let index = attempts.firstIndex(where: { $0.number == number }) else { return }
    let attempt = attempts[index]
    for event in events {
      switch event {
      case .allocated:
        result.servers[attempt.index].isGood = true
        result.servers[attempt.index].milliseconds = Double((now - startedAt).nanoseconds) / 1e6
        result.servers[attempt.index].failure = nil
        attempts[index].client.close(at: now, into: &output)
        for message in output.messages { actions.append(.send(number, message)) }
        output = TURNClient.Output()
        actions.append(.disconnect(number))
        attempts.removeAll { $0.number == number }
        return
      case .refused: break
      case .failed(let why):
        actions.append(.disconnect(number))
        if case .tryAlternate(let address?) = why, attempt.server.alternate == nil {
          attempts.removeAll { $0.number == number }
          return connect(attempt.server.at(address), attempt.index, &actions)
        }
        return failed(number, "\(why)")
      }
    }
  }

  private mutating func failed(_ number: Int, _ why: String) {
    guard let index = attempts.firstIndex(where: { $0.number == number }) else { return }
    result.servers[attempts[index].index].failure = why
    attempts.remove(at: index)
  }

  // MARK: time

  private mutating func timers(_ now: Instant, _ actions: inout [Action]) {
    if let due = echoDue, due <= now { networkFailed() }
    if let due = callDue, due <= now {
      callDue = nil
      result.call = Preflight.TestCall(isGood: false, error: .noResources)
    }
    for number in attempts.map(\.number) {
      guard let index = attempts.firstIndex(where: { $0.number == number }) else { continue }
      if startedAt + Self.time <= now {
        actions.append(.disconnect(number))
        failed(number, "no answer")
      } else {
        attempts[index].client.handleTimeout(at: now, into: &output)
        drain(number, now, &actions)
      }
    }
  }

  private mutating func finishIfDone(_ now: Instant, _ actions: inout [Action]) {
    guard !isFinished, echoDue == nil, attempts.isEmpty, callDue == nil else { return }
    if result.network.isGood, !hasCalled {
      hasCalled = true
      callDue = now + Self.callTime
      return actions.append(.call)
    }
    isFinished = true
    actions.append(.finished(result))
  }
}

extension TURNServer {
  /// The URL in the form of RFC 7065.
  var url: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return transport == .tls ? "turns:\(name):\(port)?transport=tcp" : "turn:\(name):\(port)?transport=\(transport.rawValue)"
  }
}
