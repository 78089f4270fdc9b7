import AppSessions
import AppleStandIn
import CallFlow
import CallModel
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

/// What the SDK's machine wants done.
extension Handset {
  func perform(_ action: PhoneMachine.Action) {
    switch action {
    case .report(let call, let caller, _):
      reports[call, default: 0] += 1
      callers.append(caller)
      let report: () -> Void = { [self] in give(system: .report(call, .init(caller.h, name: caller.n))) }
      if snippet == .reportInTask { world.after(.zero, report) } else { report() }
    case .updated(let call, let caller, _):
      updates[call, default: []].append(caller)
      give(system: .update(call, .init(caller.h, name: caller.n)))
    case .reportEnded(let call, let reason):
      steps.append("phone   ended \(reason.rawValue)")
      ends[call, default: []].append(reason)
      give(system: .reportEnded(call, Self.reason(reason)))
    case .reportConnecting(let call):
      outgoing.append("connecting")
      give(system: .reportConnecting(call))
    case .reportConnected(let call, let at):
      outgoing.append("connected at \((at ?? 0) - World.epoch * 1_000 > 0)")
      give(system: .reportConnected(call))
    case .request(let request):
      let id = SystemMachine.TransactionID(transactions.count + 1)
      transactions[id] = request
      give(system: .request(id, [Self.request(request)]))
    case .complete(let id, let isDone):
      completed.append((id, isDone))
      steps.append("phone   \(isDone ? "fulfil" : "fail")")
      if isDone { fulfilled(id) }
      if snippet == .fulfilAtOnce, case .answer? = actions[id] { return }
      give(system: .complete(.init(id.raw), isDone ? .fulfilled : .failed))
    case .socket(let action): perform(action)
    case .media(let call, .answer(_, let generation)): describe(call, generation, setup: "active")
    case .media(let call, .offer(let generation)):
      if generation > 1 { restarts += 1 }
      describe(call, generation, setup: "actpass")
    case .media(let call, .close): closedMedia.insert(call)
    case .media(let call, let request): lookAt(request, of: call)
    case .audio(let request): perform(request)
    case .needsToken: askBackend()
    case .tokenStale: hasTokenFault = true
    case .post(let reject, let call, let wake, _): post(reject, call, wake.exposed)
    case .listen(let call):
      if listening == nil, call != nil { heardAt = world.now }
      listening = call
    case .mix(let others): mixing = others
    case .state(let next): state = next
    case .changed(let info): infos[info.id] = info
    case .presentInApp(let call): presented.append(call)
    case .further, .relays, .digit, .transferred, .loggedOut, .registered, .directory, .read, .historyChanged, .tested:
      break
    }
  }

  private func perform(_ request: AudioRequest) {
    audio.append(request)
    steps.append("device  \(request)")
    if isAudioBroken, request == .configure { give(.audioFailed(.configure)) }
    if request == .start { lookAtStart() }
    guard request == .start || request == .stop else { return }
    isAudioRunning = request == .start
    // the unit takes a moment
    let runs = isAudioRunning
    world.after(.milliseconds(15)) { [self] in if isAudioRunning == runs { give(.audioRuns(runs ? .running : .idle)) } }
  }

  func perform(_ action: ClientSession.Action) {
    switch action {
    case .connect:
      traffic?.note(.connection, world.now)
      let id = world.newConnection(self)
      connection = id
      whenLinked(id) { [self] in
        world.tell(.opened(id, IPAddress(192, 0, 2, 7)))
        world.after(world.appDelay) { [self] in whenLinked(id) { [self] in give(.socket(.socketOpened)) } }
      }
    case .connectAlternate: break
    case .write(let bytes):
      traffic?.note(.sent, world.now)
      guard let id = connection else { return }
      world.after(world.appDelay) { [self] in if connection == id { world.tell(.frame(id, bytes)) } }
    case .close(let code): if let id = connection { closed(id, CloseCode(rawValue: code)) }
    case .event: break
    }
  }

  func time(for request: SystemMachine.Request) -> Duration {
    switch request {
    case .answer: system.rules.answerTime
    case .start: system.rules.startTime
    default: system.rules.actionTime
    }
  }

  func post(_ reject: CallReject, _ call: CallID, _ wake: String) {
    posts += 1
    traffic?.note(.post, world.now)
    let id = HTTPRequestID(posts)
    world.after(world.appDelay) { [self] in
      world.tell(.httpReject(id, call: call, bearer: wake, body: reject.json))
    }
  }

  func describe(_ call: CallID, _ generation: Int, setup: String) {
    if closedMedia.contains(call) { violations.append("INV: media of \(call) behind its end") }
    described[call] = generation
    let sdp = App(world, device: device).sdp(setup: setup)
    world.after(.milliseconds(2)) { [self] in give(.media(call, .described(sdp: sdp, generation: generation))) }
  }
}
