import Dispatch
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineRTP
import TrunklineTURN

/// The active preflight test, and the callbacks that wait for it.
struct RunningPreflight {
  var machine: PreflightMachine
  var relays: [Int: any RelaySocket] = [:]
  var waiting: [@Sendable (Preflight) -> Void]
  let number: Int
  var call: RunningTestCall?
}

/// The test call of a preflight: how it ended, and its media's counters.
struct RunningTestCall {
  let id: Identifier
  var outcome: TestCallOutcome?
  /// The highest received level, in dBov: the last level is that of silence if the call ended in a gap.
  var loudest = -127.0
}

extension PhoneEngine {
  /// Runs a test. A second test at the same time gets the first one's result.
  func preflight(_ done: @escaping @Sendable (Preflight) -> Void) {
    if preflight != nil { return preflight?.waiting.append(done) ?? () }
    preflightNumber += 1
    var actions: [PreflightMachine.Action] = []
    let situation = PreflightMachine.Situation(
      networkError: state == .online ? nil : stateError ?? .notConnected, microphone: microphone, routes: routes,
      servers: relayServers)
    let machine = PreflightMachine(situation, random: .client, at: MonotonicTime.now(), into: &actions)
    preflight = RunningPreflight(machine: machine, waiting: [done], number: preflightNumber)
    logger.note(.info, .preflightStarted, [.init("servers", "\(situation.servers.count)")])
    run(actions)
  }

  private func give(_ input: PreflightMachine.Input, _ number: Int) {
    guard preflight?.number == number else { return }
    var actions: [PreflightMachine.Action] = []
    preflight?.machine.handle(input, at: MonotonicTime.now(), into: &actions)
    run(actions)
  }

  private func run(_ actions: [PreflightMachine.Action]) {
    guard let number = preflight?.number else { return }
    for action in actions {
      switch action {
      case .echo:
        let state: AppState = isForeground ? .fg : .bg
        read(.deviceState(DeviceState(state: state))) { [weak self] answer in
          self?.enqueue { $0.give(.echoed(answer != nil), number) }
        }
      case .connect(let relay, let server):
        let made = parts.sockets.openRelay(RelayAddress(server)) { [weak self] event in
          self?.enqueue { engine in
            switch event {
            case .opened: engine.give(.opened(relay), number)
            case .received(let bytes): engine.give(.received(relay, bytes), number)
            case .closed(let why): engine.give(.closed(relay, why), number)
            }
          }
        }
        preflight?.relays[relay] = made
        if made == nil { enqueue { $0.give(.closed(relay, "no connection to be had"), number) } }
      case .send(let relay, let bytes): preflight?.relays[relay]?.send(bytes)
      case .call: startTestCall()
      case .disconnect(let relay): preflight?.relays.removeValue(forKey: relay)?.close()
      case .finished(let result): return finish(result)
      }
    }
    wait(number)
  }

  // MARK: the test call

  private func startTestCall() {
    let id = Identifier(random: .client)
    preflight?.call = RunningTestCall(id: id)
    guard media != nil else { return tested(id, .unavailable) }
    media?.give(.test(id))
    give(.testCall(id))
  }

  /// Reported by the machine.
  func tested(_ id: Identifier, _ outcome: TestCallOutcome) {
    guard preflight?.call?.id == id else { return }
    media?.give(.test(nil))
    preflight?.call?.outcome = outcome
    // without a call there is no media whose end would be reported
    if case .unavailable = outcome { finishTestCall(nil) }
  }

  /// Reported by the media thread.
  /// - Returns: false: the call is not the test call.
  func measured(_ id: Identifier, _ statistics: ClientMedia.Statistics, isLast: Bool) -> Bool {
    guard let call = preflight?.call, call.id == id else { return false }
    let loudest = max(call.loudest, statistics.speakerLevel)
    preflight?.call?.loudest = loudest
    if isLast, let outcome = call.outcome { finishTestCall(Preflight.TestCall(outcome, statistics, loudest: loudest)) }
    return true
  }

  private func finishTestCall(_ call: Preflight.TestCall?) {
    guard let number = preflight?.number else { return }
    preflight?.call = nil
    // after the present input
    enqueue { $0.give(.called(call), number) }
  }

  private func wait(_ number: Int) {
    guard let due = preflight?.machine.nextDeadline else { return }
    let wait = max(0, (due - MonotonicTime.now()).nanoseconds)
    executor.queue.asyncAfter(deadline: .now() + .nanoseconds(Int(clamping: wait))) { [weak self] in
      self?.assumeIsolated { $0.give(.timer, number) }
    }
  }

  private func finish(_ result: Preflight) {
    guard let ended = preflight else { return }
    preflight = nil
    for relay in ended.relays.values { relay.close() }
    if ended.call != nil { media?.give(.test(nil)) }
    logger.note(
      result.isReady ? .info : .warning, .preflightFinished,
      [
        .init("network", result.network.isGood ? "good" : "bad"), .init("microphone", result.microphone.isGood ? "good" : "bad"),
        .init("servers", "\(result.servers.count(where: \.isGood))/\(result.servers.count)"),
        .init("call", result.call.map { $0.isGood.map { $0 ? "good" : "bad" } ?? "refused" } ?? "none"),
      ])
    for done in ended.waiting { done(result) }
  }
}

extension Preflight.TestCall {
  /// Limit of G.109's low quality: a lower score is poor.
  private static let poor = 3.1
  /// A lower received level is silence; the tone is sent at −23 dBov.
  private static let silence = -60.0

  /// - Parameter loudest: the highest received level in dBov.
  init?(_ outcome: TestCallOutcome, _ statistics: ClientMedia.Statistics, loudest: Double) {
    switch outcome {
    case .unavailable: return nil
    case .refused(let code): self.init(isGood: nil, error: .gateway(code))
    case .ended(let reason, let codec, let stats):
      let received = Direction(statistics, codec: codec, isHeard: loudest > Self.silence)
      let sent = stats.map {
        Direction(score: $0.mos, lossFraction: $0.loss, jitterMilliseconds: $0.jitterMs, isHeard: $0.audio == true)
      }
      let scores = [sent?.score, received.score].compactMap(\.self)
      let score = scores.count == 2 ? scores.min() : nil
      self.init(
        isGood: sent?.isHeard == true && received.isHeard && (score ?? 0) >= Self.poor, score: score,
        roundTripMilliseconds: statistics.roundTripMilliseconds, sent: sent, received: received,
        error: sent == nil ? .noMedia(reason) : nil)
    }
  }
}

extension Preflight.TestCall.Direction {
  /// Scored by the E-model as in the gateway: unrepaired loss, half the round trip, the jitter buffer, a frame and the codec.
  fileprivate init(_ statistics: ClientMedia.Statistics, codec: String?, isHeard: Bool) {
    let expected = statistics.receivedPackets + statistics.lostPackets
    self.init(score: nil, lossFraction: nil, jitterMilliseconds: nil, isHeard: isHeard)
    guard statistics.receivedPackets > 0 else { return }
    lossFraction = Double(statistics.lostPackets) / Double(expected)
    jitterMilliseconds = statistics.jitterMilliseconds
    let row = codec.flatMap(AudioEncoding.init(named:))?.row
    let missing = max(Double(statistics.concealedMilliseconds) / 20 / Double(expected), lossFraction ?? 0)
    let delay =
      (statistics.roundTripMilliseconds ?? 0) / 2 + statistics.bufferDelayMilliseconds + 20
      + (row?.algorithmicDelayMilliseconds ?? 0)
    score =
      OpinionScore(codec: row?.impairment ?? .opus, lossFraction: missing, oneWayDelayMilliseconds: delay).mean
  }
}

extension RelayAddress {
  /// The server's address, or the address that it was redirected to; its certificate must name the server either way.
  init(_ server: TURNServer) {
    let transport: Transport =
      switch server.transport {
      case .udp: .udp
      case .tcp: .tcp
      case .tls: .tls
      }
    self.init(
      host: server.alternate.map { "\($0.ip)" } ?? server.host, port: server.alternate?.port ?? server.port, transport: transport,
      certificateHost: server.host)
  }
}
