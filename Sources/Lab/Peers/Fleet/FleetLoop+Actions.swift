import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClient
import TrunklineClientMachines
import TrunklinePlatform

/// The inputs and actions of a phone's machine, as in the SDK's shell, with a system that performs all at once.
extension FleetLoop {
  func give(_ phone: FleetPhone, _ input: PhoneMachine.Input) {
    phone.waiting.append(input)
    guard !phone.isRunning else { return }
    phone.isRunning = true
    while !phone.waiting.isEmpty {
      var actions: [PhoneMachine.Action] = []
      phone.machine.handle(phone.waiting.removeFirst(), at: MonotonicClock.now(), into: &actions)
      for action in actions { perform(action, phone) }
    }
    phone.isRunning = false
    phone.due = phone.machine.nextDeadline
  }

  /// An event of the pool's socket with this number.
  func received(_ event: WebSocketPool.Event, on number: Int) {
    let (phone, socket) = (phones[number / Self.sockets], number % Self.sockets)
    if case .closed(let code, let why) = event, socket == 0 {
      report(phone, "closed", nil, ["code": "\(code)", "why": why ?? ""])
    }
    if socket == 0 {
      give(phone, .socket(event.input))
    } else if let session = phone.further[socket] {
      give(phone, .further(session, event.input))
    }
  }

  private func perform(_ action: PhoneMachine.Action, _ phone: FleetPhone) {
    switch action {
    case .report(let call, _, _): phone.waiting.append(.reported(call, nil))
    case .request(let request):
      phone.actions += 1
      let id = SystemActionID(phone.actions)
      phone.open[id] = request
      phone.waiting.append(.perform(id, request))
    case .complete(let id, let isDone): complete(id, isDone, phone)
    case .socket(let action):
      pool?.perform([action], phone.number * Self.sockets, gateway: phone.machine.gateway)
    case .further(let session, let action):
      let socket = 1 + (session - 1) % (Self.sockets - 1)
      phone.further[socket] = session
      pool?.perform([action], phone.number * Self.sockets + socket, gateway: phone.machine.gateway(of: session))
    case .media(let call, let request): perform(request, call, phone)
    case .audio(let request):
      switch request {
      case .start, .restart: phone.waiting.append(.audioRuns(.running))
      case .stop, .release: phone.waiting.append(.audioRuns(.idle))
      case .configure: break
      }
    case .needsToken: phone.waiting.append(.token(phone.member.token, device: phone.member.device))
    case .state(let state): changed(state, phone)
    case .changed(let info): changed(info, phone)
    case .registered(let refusal): report(phone, "registered", nil, ["refused": refusal?.rawValue ?? ""])
    // phones of a fleet neither reject nor dial
    case .post, .updated, .tokenStale, .reportEnded, .reportConnecting, .reportConnected, .listen, .mix, .relays, .presentInApp,
      .digit,
      .transferred,
      .loggedOut, .directory, .read, .historyChanged, .tested:
      break
    }
  }

  private func complete(_ id: SystemActionID, _ isDone: Bool, _ phone: FleetPhone) {
    let request = phone.open.removeValue(forKey: id)
    guard isDone, case .answer? = request else { return }
    phone.waiting.append(.audioActivated)
  }

  private func perform(_ request: ClientCall.MediaRequest, _ id: Identifier, _ phone: FleetPhone) {
    if phone.calls[id] == nil {
      guard let made = try? FleetCall(phone.number * 53, address: options.mediaAddress, identity: identity, random: random),
        (try? loop.register(
          made.socket.fd, .readable,
          handler: { [unowned self, unowned phone, unowned made] _ in receive(phone, id, made) })) != nil
      else { return report(phone, "failed", id, ["why": "no socket for its media"]) }
      phone.calls[id] = made
    }
    guard let call = phone.calls[id] else { return }
    var output = ClientMedia.Output()
    call.media.handle(request, at: MonotonicClock.now(), into: &output)
    handle(output, phone, id, call)
    guard case .close = request else { return }
    loop.unregister(call.socket.fd)
    phone.calls[id] = nil
  }

  private func changed(_ state: PhoneState, _ phone: FleetPhone) {
    switch state {
    case .online where !phone.isOnline:
      phone.isOnline = true
      report(phone, "online")
    case .refused(let code):
      phone.isOnline = false
      report(phone, "refused", nil, ["code": "\(code)"])
    case .idle, .connecting, .loggedOut:
      guard phone.isOnline else { return }
      phone.isOnline = false
      report(phone, "offline")
    case .online: break
    }
  }

  private func changed(_ info: CallInfo, _ phone: FleetPhone) {
    if phone.reported[info.id] == nil, info.state != .ended { phone.reported[info.id] = (false, false) }
    guard let known = phone.reported[info.id] else { return }
    // a wake alone does not ring: the gateway has confirmed the call
    if info.state == .ringing, info.account != nil, !known.isRinging {
      phone.reported[info.id]?.isRinging = true
      report(phone, "ringing", info.id, ["from": info.peer.h])
      if let wait = phone.member.answerAfter { phone.answerAt[info.id] = MonotonicClock.now() + .seconds(wait) }
    }
    if info.state == .connected, !known.isConnected {
      phone.reported[info.id]?.isConnected = true
      report(phone, "connected", info.id)
    }
    guard info.state == .ended else { return }
    phone.reported[info.id] = nil
    phone.answerAt[info.id] = nil
    report(phone, "ended", info.id, ["reason": info.reason?.rawValue ?? "", "connected": "\(known.isConnected)"])
  }

  /// Reports an event of one phone; for a call with media, with its counts so far.
  func report(_ phone: FleetPhone, _ event: String, _ call: Identifier? = nil, _ more: [String: String] = [:]) {
    var fields = more
    fields["phone"] = phone.member.name
    if let call {
      fields["call"] = "\(call)"
      if let media = phone.calls[call] {
        (fields["sent"], fields["received"]) = (
          "\(media.media.statistics.sentPackets)", "\(media.media.statistics.receivedPackets)"
        )
      }
    }
    emit(PeerEvent(event, fields))
  }
}
