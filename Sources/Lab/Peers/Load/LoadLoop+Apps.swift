import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClient
import TrunklineClientMachines
import TrunklinePlatform
import TrunklineRTP

extension LoadLoop {
  // MARK: session

  /// An event of the pool's socket with this number; the second half are those of sessions at further nodes.
  func received(_ event: WebSocketPool.Event, on number: Int) {
    if number < calls.count {
      handle(calls[number], event)
    } else {
      giveFurther(calls[number - calls.count], event.input)
    }
  }

  private func handle(_ call: LoadCall, _ event: WebSocketPool.Event) {
    if case .closed(let code, let why) = event, stage != .over {
      result.problems.append("app \(call.number): socket closed with \(code) \(why ?? "")")
    }
    give(call, event.input)
  }

  func give(_ call: LoadCall, _ input: ClientSession.Input) {
    var actions: [ClientSession.Action] = []
    call.app.session.hasCall = call.app.call.map { $0.state != .ended } ?? false
    call.app.session.handle(input, at: loop.now, into: &actions)
    perform(actions, call)
  }

  private func perform(_ actions: [ClientSession.Action], _ call: LoadCall) {
    webSockets?.perform(actions, call.number, gateway: call.app.session.gateway) { handle(call, $0) }
  }

  private func handle(_ call: LoadCall, _ event: ClientSession.Event) {
    switch event {
    case .online: call.app.isOnline = true
    case .offline: call.app.isOnline = false
    case .message(.callWake(let wake), _): woken(call, wake)
    default: received(call, event)
    }
  }

  // MARK: the session at another node

  private func woken(_ call: LoadCall, _ wake: CallWake) {
    guard call.app.further == nil, call.app.call == nil, !call.isOutgoing else { return }
    call.app.further = options.clients[call.number].session(random, wake: wake)
    giveFurther(call, .start)
  }

  func giveFurther(_ call: LoadCall, _ input: ClientSession.Input) {
    var actions: [ClientSession.Action] = []
    call.app.further?.hasCall = true
    call.app.further?.handle(input, at: loop.now, into: &actions)
    performFurther(actions, call)
  }

  private func performFurther(_ actions: [ClientSession.Action], _ call: LoadCall) {
    webSockets?.perform(actions, calls.count + call.number, gateway: call.app.further?.gateway) { event in
      if case .online(_, let snapshot) = event, let row = snapshot?.first(where: { $0.state == .ringing }), let sdp = row.sdp {
        ring(call, id: row.call, from: row.from, sdp: sdp, generation: row.gen)
      } else {
        received(call, event)
      }
    }
  }

  /// Closes the further session of an ended call, once its last messages have been sent.
  private func closeFurther(_ call: LoadCall) {
    guard call.app.further?.isQuiet == true, call.app.call?.state == .ended else { return }
    giveFurther(call, .finish)
    call.app.further = nil
  }

  private func ring(_ call: LoadCall, id: Identifier, from: Handle, sdp: String, generation: Int) {
    guard call.app.call == nil, !call.isOutgoing else { return }
    call.app.call = ClientCall(incoming: id, from: from, audio: .running)
    call.app.answerAt = loop.now + Self.answerAfter
    act(call, .offered(sdp: sdp, generation: generation))
  }

  private func received(_ call: LoadCall, _ event: ClientSession.Event) {
    switch event {
    case .online, .offline: break
    case .refused(let code): result.problems.append("app \(call.number): the session was refused with \(code)")
    case .message(.callOffer(let offer), let id?): ring(call, id: id, from: offer.from, sdp: offer.sdp, generation: offer.gen)
    case .message(let message, let id): if id != nil, id == call.app.call?.id { act(call, .message(message)) }
    case .answered(let id, _, let answer):
      if let tag = call.app.tags.removeValue(forKey: id) { act(call, .answered(tag, answer)) }
    case .mediaAnswer: break
    }
  }

  // MARK: call

  func dial(_ call: LoadCall) {
    var made = ClientCall(
      outgoing: Identifier(random: random), to: Handle(k: .phone, h: call.dialled),
      audio: .running)
    var actions: [ClientCall.Action] = []
    made.dial(into: &actions)
    call.app.call = made
    perform(actions, call)
  }

  func act(_ call: LoadCall, _ input: ClientCall.Input) {
    var actions: [ClientCall.Action] = []
    call.app.call?.handle(input, into: &actions)
    perform(actions, call)
  }

  private func perform(_ actions: [ClientCall.Action], _ call: LoadCall) {
    guard let id = call.app.call?.id else { return }
    var output = ClientMedia.Output()
    var toSession: [ClientSession.Action] = []
    for action in actions {
      switch action {
      case .request(let message, let tag):
        let asked =
          call.app.further?.request(message, call: id, at: loop.now, into: &toSession)
          ?? call.app.session.request(message, call: id, at: loop.now, into: &toSession)
        call.app.tags[asked] = tag
      case .notify(let message):
        if call.app.further != nil {
          call.app.further?.notify(message, call: id, at: loop.now, into: &toSession)
        } else {
          call.app.session.notify(message, call: id, at: loop.now, into: &toSession)
        }
      case .media(let order): call.app.media.handle(order, at: loop.now, into: &output)
      case .stateChanged(let state): changed(call, state)
      case .digit, .quality: break
      }
    }
    if call.app.further != nil { performFurther(toSession, call) } else { perform(toSession, call) }
    handle(output, call)
  }

  private func changed(_ call: LoadCall, _ state: ClientCall.State) {
    switch state {
    case .connected:
      call.app.isConnected = true
      checkUp(call)
    case .ended:
      let reason = call.app.call?.reason?.rawValue ?? "?"
      if reason == "overload", options.mayBeRefused { refuse(call) }
      if call.phase != .ending { fail(call, "ended for the app: \(reason)") }
      call.app.isConnected = false
      checkOver(call)
    default: break
    }
  }

  // MARK: both sides

  func checkUp(_ call: LoadCall) {
    guard call.phase == .settingUp, call.app.isConnected, call.trunk.isAnswered, call.trunk.media != nil else { return }
    (call.phase, call.setUp) = (.up, loop.now - call.startedAt)
  }

  /// Hangs up on the side that this call prescribes.
  func end(_ call: LoadCall) {
    guard call.phase == .up, let id = call.app.call?.id, let leg = call.trunk.leg else { return }
    call.phase = .ending
    call.endScoring()
    result.expectedEnds["\(id)"] = call.endedByTrunk ? "remoteHangup trunk" : "localEnd app"
    if call.endedByTrunk { userAgent.run(.bye(leg, nil)) } else { act(call, .hangUp()) }
  }

  func checkOver(_ call: LoadCall) {
    guard call.phase == .ending, call.trunk.isOver, call.app.call?.state == .ended else { return }
    call.phase = .over
    result.ended += 1
  }

  func fail(_ call: LoadCall, _ why: String) {
    guard call.phase != .over, call.phase != .ending else { return }
    call.phase = .over
    call.endScoring()
    if result.problems.count < 100 { result.problems.append("call \(call.number): \(why)") }
  }

  // MARK: media

  private func handle(_ output: ClientMedia.Output, _ call: LoadCall) {
    call.app.transmit(output)
    for frame in output.frames { received(frame, call) }
    for report in output.reports { act(call, .media(report)) }
  }

  private func received(_ frame: ClientMedia.Output.Frame, _ call: LoadCall) {
    let now = MonotonicClock.now()
    call.app.received.receive(
      sequence: frame.header.sequence.raw, timestamp: frame.header.timestamp.raw, at: now, counted: stage == .held)
    if call.isSampled, !call.heardByApp.isFull { call.heardByApp.received(frame.header.timestamp, frame.payload, at: now) }
  }

  func advanceApp(_ call: LoadCall, _ now: Instant) {
    if let due = call.app.session.nextDeadline, due <= now { give(call, .timer) }
    if let due = call.app.further?.nextDeadline, due <= now { giveFurther(call, .timer) }
    if call.app.further != nil { closeFurther(call) }
    if let due = call.app.media.nextDeadline, due <= now {
      var output = ClientMedia.Output()
      call.app.media.handleTimeout(at: now, into: &output)
      handle(output, call)
    }
    if let due = call.app.answerAt, due <= now {
      call.app.answerAt = nil
      act(call, .answer(ageMilliseconds: 0))
    }
  }

  func receiveApp(_ call: LoadCall) {
    call.app.socket.receiveAll { bytes, source in
      var output = ClientMedia.Output()
      var datagram = Array(bytes)
      datagram.withUnsafeMutableBytes {
        call.app.media.receive($0, from: source, to: call.app.socket.localAddress, at: MonotonicClock.now(), into: &output)
      }
      handle(output, call)
    }
  }
}
