import TrunklineAppProtocol
import TrunklineBytes

/// A call's own machine, its end, and its audio.
extension PhoneMachine {
  // MARK: messages from the gateway

  mutating func received(_ message: ServerMessage, _ id: Identifier, of number: Int, _ now: Instant, _ out: inout [Action]) {
    if id == test.id { return giveTest(.message(message), now, &out) }
    // messages that cross the end of a call are ignored, except an offer: it may be for a call that timed out
    if calls[id]?.isOver == true, message.type != .callOffer { return }
    switch message {
    case .callOffer(let offer):
      let details = CallDetails(called: offer.to, parameters: offer.parameters, pstn: offer.pstn)
      offered(
        id, from: offer.from, account: offer.acct, capabilities: offer.caps, details: details, offer: (offer.sdp, offer.gen),
        of: number, now, &out)
    case .callUpdate(let update):
      calls[id]?.update(update)
      updated(id, &out)
    case .callCancel(let over), .callEnded(let over), .callGone(let over):
      calls[id]?.ends(because: over.reason)
      if calls[id]?.hasMachine != true { ended(id, over.reason.callEndedReason.map { .over($0) } ?? .failed, now, &out) }
      give(.message(message), to: id, now, &out)
    case .callConnected(let connected):
      guard let state = calls[id]?.state, state != .ringing else { return }
      calls[id]?.connected(at: connected.at)
      give(.message(message), to: id, now, &out)
    case .callHeld(let held) where held.by == .remote:
      calls[id]?.peerHolds(held.on)
      notifyChange(id, &out)
    // the system's screen follows the change by an operator's program, and this phone confirms it to the gateway
    case .callHeld(let held) where held.by == .gateway: act(.hold(held.on), id, now, &out)
    case .callMuted(let muted): act(.mute(muted.on), id, now, &out)
    case .callTransferred(let status): out.append(.transferred(id, status))
    default: give(.message(message), to: id, now, &out)
    }
  }

  mutating func answered(_ question: Identifier, _ result: Result<Success, Failure>, _ now: Instant, _ out: inout [Action]) {
    let purpose = requests.answered(question)
    if case .read(let number)? = purpose { return out.append(.read(number, result)) }
    var isDone = false
    if case .success(let success) = result {
      isDone = true
      if let servers = success.ice { set(servers, &out) }
    }
    switch purpose {
    case nil, .read?: if registration.isQuestion(question) { registered(result, now, &out) }
    case .hold(let id, let isOn, let action)?: finishHold(id, isOn: isOn, for: action, isDone: isDone, now, &out)
    case .group(let id, let other, let action)?: finishGroup(id, with: other, for: action, isDone: isDone, now, &out)
    case .probe(let id)?: probed(id, now, &out)
    case .message(let id, let tag)?: answered(tag, of: id, result, now, &out)
    }
  }

  private mutating func registered(_ result: Result<Success, Failure>, _ now: Instant, _ out: inout [Action]) {
    let hasChanged = registration.answered()
    var refusal: ErrorCode?
    if case .failure(let failure) = result { refusal = failure.code }
    out.append(.registered(refusal))
    if hasChanged { register(now, &out) }
  }

  /// The answer to a request of a call's own machine.
  private mutating func answered(
    _ tag: ClientCall.RequestTag, of id: Identifier, _ result: Result<Success, Failure>, _ now: Instant, _ out: inout [Action]
  ) {
    if id == test.id { return giveTest(.answered(tag, result), now, &out) }
    if tag == .reject, calls[id]?.hasMachine != true {
      var reason = EndReason.unknown
      if case .failure(let failure) = result, let why = failure.reason { reason = why }
      calls[id]?.ends(because: reason)
      return ended(id, reason.callEndedReason.map { .over($0) } ?? .failed, now, &out)
    }
    if tag == .start {
      calls[id]?.link.started(at: sessions.node(of: SessionTable.own))
      if case .failure(let failure) = result { calls[id]?.refused(failure.code) }
      if case .success(let success) = result, let to = success.to, calls[id]?.dialled(as: to) == true { updated(id, &out) }
    }
    give(.answered(tag, result), to: id, now, &out)
    // the gateway has the call (docs/reference/protocol.md, Sequences, 6): the start action is done
    if tag == .start, case .success = result { complete(id, true, &out) }
  }

  /// The screen shows another peer, or offers other actions.
  private func updated(_ id: Identifier, _ out: inout [Action]) {
    guard let call = calls[id] else { return }
    out.append(.updated(id, call.peer, call.capabilities))
    notifyChange(id, &out)
  }

  /// Until the tap's deadline a failed path restarts media once. A connected call without a path continues: the gateway reports
  /// when it is lost, and media restarts as soon as the session is online.
  mutating func mediaReport(_ report: ClientCall.MediaReport, _ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    if id == test.id { return giveTest(.media(report), now, &out) }
    if case .failed(let stage, _) = report, stage != .device, let call = calls[id], call.state == .answering,
      calls[id]?.media.failsBeforeAnswer(tappedAt: call.answering.tappedAt, at: now) == true
    {
      return give(.restart(.iceFailed), to: id, now, &out)
    }
    if case .failed(.ice, _) = report, calls[id]?.state == .connected {
      if isOnline(id) { return give(.restart(.iceFailed), to: id, now, &out) }
      calls[id]?.media.waitForSession()
      // no session is left that would report the loss
      calls[id]?.link.mediaFailed(at: now)
      return
    }
    if case .silence(let silence) = report { return silent(silence, id, now, &out) }
    if case .connected = report { calls[id]?.link.mediaConnected() }
    give(.media(report), to: id, now, &out)
  }

  /// The gateway is silent in a connected call: its socket is checked beside the media; if media gets no answer, it restarts over
  /// the present socket or the next one.
  private mutating func silent(
    _ silence: ClientCall.Silence, _ id: Identifier, _ now: Instant, _ out: inout [Action]
  ) {
    guard let call = calls[id], !call.isOver, call.state == .connected else { return }
    switch silence {
    case .began:
      if isOnline(id) { give(.checkLiveness, to: call.link.session, now, &out) }
    case .stays:
      calls[id]?.media.stayedSilent()
      notifyChange(id, &out)
      if isOnline(id) { give(.restart(.net), to: id, now, &out) } else { calls[id]?.media.waitForSession() }
    case .ended:
      calls[id]?.media.recovered()
      notifyChange(id, &out)
    }
  }

  /// Restarts the media of calls whose sessions are online again.
  mutating func restartBroken(_ now: Instant, _ out: inout [Action]) {
    for id in liveCalls where isOnline(id) && calls[id]?.media.claimRestart() == true { give(.restart(.net), to: id, now, &out) }
  }

  // MARK: a call's own machine

  mutating func give(_ input: ClientCall.Input, to id: Identifier, _ now: Instant, _ out: inout [Action]) {
    let actions = calls[id]?.handle(input)
    run(actions ?? [], id, now, &out)
  }

  mutating func run(_ actions: [ClientCall.Action], _ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    for action in actions {
      switch action {
      case .request(let message, let tag):
        if let question = ask(message, call: id, now, &out) {
          requests.add(question, .message(of: id, tag))
        } else if hasSession(id) {
          give(.answered(tag, .failure(Failure(.tooMany))), to: id, now, &out)
        }
      case .notify(let message): send(message, call: id, now, &out)
      case .media(let request): out.append(.media(id, request))
      case .stateChanged(let state): changed(id, state, now, &out)
      case .digit(let digit): out.append(.digit(id, digit))
      case .quality(let quality):
        calls[id]?.measured(quality)
        notifyChange(id, &out)
      }
    }
  }

  private mutating func changed(_ id: Identifier, _ state: ClientCall.State, _ now: Instant, _ out: inout [Action]) {
    switch state {
    // the trunk's 100 at the latest; the first of these messages starts the connecting state
    case .ready, .progress:
      calls[id]?.answering.settled()
      complete(id, true, &out)
      if calls[id]?.isOutgoing == true, calls[id]?.screen.connects() == true { out.append(.reportConnecting(id)) }
    case .connected:
      calls[id]?.answering.settled()
      complete(id, true, &out)
      if calls[id]?.isOutgoing == true { out.append(.reportConnected(id, at: calls[id]?.connectedAt)) }
      if sessions.isForeground { out.append(.presentInApp(id)) }
      // muted earlier: the gateway accepts it only now
      if calls[id]?.mute.isOn == true { sendMute(id, now, &out) }
    case .ended: ended(id, calls[id]?.machineReason?.callEndedReason.map { .over($0) } ?? .silent, now, &out)
    default: break
    }
    listen(now, &out)
    if state != .ended { notifyChange(id, &out) }
  }

  private mutating func complete(_ id: Identifier, _ isDone: Bool, _ out: inout [Action]) {
    if let action = calls[id]?.screen.complete() { out.append(.complete(action, isDone)) }
  }

  /// Does not report a call that was never shown.
  func notifyChange(_ id: Identifier, _ out: inout [Action]) {
    if calls[id]?.screen.isReported == true, let info = calls.info(of: id) { out.append(.changed(info)) }
  }

  // MARK: the end

  /// `silent`: this side ended the call; the screen is notified only if it still shows it.
  enum Ending { case over(CallEndedReason), failed, silent }

  /// Called once per call; notifies the screen unless the user ended the call there.
  mutating func ended(_ id: Identifier, _ ending: Ending, _ now: Instant, _ out: inout [Action]) {
    let isSilent = if case .silent = ending { true } else { false }
    guard calls[id]?.end(isSilent: isSilent) == true else { return }
    let reason: CallEndedReason =
      switch ending {
      case .over(let reason): reason
      case .failed: .failed
      case .silent: .remoteEnded
      }
    // the reason first: a failed answer ends the call on the screen by itself
    if calls[id]?.screen.end(reason) == true { out.append(.reportEnded(id, reason)) }
    complete(id, false, &out)
    for action in requests.callEnded(id) { out.append(.complete(action, false)) }
    leaveGroup(id, now, &out)
    if calls[id]?.state != .ended { out.append(.media(id, .close)) }
    notifyChange(id, &out)
    listen(now, &out)
    if !calls.hasLive { audio.release(&out) }
  }

  /// Ends the call without notifying the screen, which never had it or has dropped it. A call whose report is open is ended when
  /// that is answered.
  mutating func forget(_ id: Identifier, as why: EndReason = .localEnd, _ now: Instant, _ out: inout [Action]) {
    calls[id]?.screen.forget()
    calls[id]?.ends(atLeastBecause: why)
    give(.hangUp(), to: id, now, &out)
    ended(id, .failed, now, &out)
  }

  // MARK: audio

  mutating func configureAudio(_ id: Identifier, _ out: inout [Action]) {
    if calls[id]?.configureAudio() == true { audio.configure(&out) }
  }

  mutating func listen(_ now: Instant, _ out: inout [Action]) {
    let (next, others) = calls.audible
    for id in audio.listen(to: next, mixing: others, at: now, &out) { give(.audio(audio.parts(of: id)), to: id, now, &out) }
  }

  mutating func audioRuns(_ running: MediaActive, _ now: Instant, _ out: inout [Action]) {
    audio.runs(running)
    for id in audio.calls { give(.audio(running), to: id, now, &out) }
  }

  /// Ends calls without audio: before the answer they continue to ring elsewhere, after it the peer is notified of the failure.
  mutating func audioFailed(_ request: AudioRequest, _ now: Instant, _ out: inout [Action]) {
    guard audio.failed(request) else { return }
    for id in liveCalls where calls[id]?.isConfigured == true && calls[id]?.hold.isOn == false {
      if calls[id]?.hasMachine == true {
        give(.hangUp(.mediaFailed), to: id, now, &out)
      } else if calls[id]?.isOutgoing == false {
        reject(id, because: CallReject(scope: .device, reason: .mediaFailed), push: calls[id]?.push, now, &out)
      }
      calls[id]?.ends(because: .mediaFailed)
      ended(id, .failed, now, &out)
    }
  }
}
