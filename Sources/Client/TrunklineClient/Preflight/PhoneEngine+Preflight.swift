import AppProtocol
import Bytes
import ClientMachines
import Dispatch
import TURN

/// The one preflight test that runs, and who waits for it.
struct RunningPreflight {
  var machine: PreflightMachine
  var relays: [Int: any RelaySocket] = [:]
  var waiting: [@Sendable (Preflight) -> Void]
  let number: Int
}

extension PhoneEngine {
  /// A second one at the same time has the first one's result.
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
      case .disconnect(let relay): preflight?.relays.removeValue(forKey: relay)?.close()
      case .finished(let result): return finish(result)
      }
    }
    wait(number)
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
    logger.note(
      result.isReady ? .info : .warning, .preflightFinished,
      [
        .init("network", result.network.isGood ? "good" : "bad"), .init("microphone", result.microphone.isGood ? "good" : "bad"),
        .init("servers", "\(result.servers.count(where: \.isGood))/\(result.servers.count)"),
      ])
    for done in ended.waiting { done(result) }
  }
}

extension RelayAddress {
  /// Where the server is, or the address that it has named; its certificate is of its name either way.
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
