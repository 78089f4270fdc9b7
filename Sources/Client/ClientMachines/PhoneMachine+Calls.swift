import TrunklineAppProtocol
import TrunklineBytes

/// A call's own machine, its end, and its audio.
extension PhoneMachine {
  // MARK: messages from the gateway

  mutating func received(_ message: ServerMessage, _ id: Identifier, of number: Int, _ now: Instant, _ out: inout [Action]) {
    if id == test?.id { return giveTest(.message(message), now, &out) }
    // messages that cross the end of a call are ignored, except an offer: it may be for a call that timed out
    if calls[id]?.isOver == true, message.type != .callOffer { return }
    switch message {
    case .callOffer(let offer):
      let details = CallDetails(called: offer.to, parameters: offer.parameters, pstn: offer.pstn)
      offered(id, offer.from, offer.acct, offer.caps, details, (offer.sdp, offer.gen), of: number, now, &out)
    case .callUpdate(let update):
      guard calls[id] != nil else { return }
      if let from = update.from { calls[id]?.peer = from }
      if let capabilities = update.caps { calls[id]?.capabilities = capabilities }
      if let entry = calls[id] { out.append(.updated(id, entry.peer, entry.capabilities)) }
      notifyChange(id, &out)
    case .callCancel(let over), .callEnded(let over), .callGone(let over):
      calls[id]?.reason = over.reason
      if calls[id]?.call == nil { ended(id, over.reason.callEndedReason.map { .over($0) } ?? .failed, now, &out) }
      give(.message(message), to: id, now, &out)
    case .callConnected(let connected):
      guard let state = calls[id]?.call?.state, state != .ringing else { return }
      calls[id]?.connectedAt = connected.at
      give(.message(message), to: id, now, &out)
    case .callHeld(let held) where held.by == .remote:
      calls[id]?.isHeldByPeer = held.on
      notifyChange(id, &out)
    // the system's screen follows the change by an operator's program, and this phone confirms it to the gateway
    case .callHeld(let held) where held.by == .gateway: act(.hold(held.on), id, now, &out)
    case .callMuted(let muted): act(.mute(muted.on), id, now, &out)
    case .callTransferred(let status): out.append(.transferred(id, status))
    default: give(.message(message), to: id, now, &out)
    }
  }

  mutating func answered(_ question: Identifier, _ result: Result<Success, Failure>, _ now: Instant, _ out: inout [Action]) {
    var isDone = false
    if case .success(let success) = result {
      isDone = true
      if let servers = success.ice { set(servers, &out) }
    }
    if registration == question {
      registration = nil
      var refusal: ErrorCode?
      if case .failure(let failure) = result { refusal = failure.code }
      out.append(.registered(refusal))
      return isRegistrationOld ? register(now, &out) : ()
    }
    if let hold = holds.removeValue(forKey: question) {
      return finishHold(hold.call, hold.isOn, hold.action, isDone: isDone, now, &out)
    }
    if let asked = groups.removeValue(forKey: question) {
      return finishGroup(asked.call, asked.other, asked.action, isDone: isDone, now, &out)
    }
    if let id = probes.removeValue(forKey: question) { return probed(id, now, &out) }
    guard let (id, tag) = tags.removeValue(forKey: question) else { return }
    if id == test?.id { return giveTest(.answered(tag, result), now, &out) }
    if tag == .reject, calls[id]?.call == nil {
      var reason = EndReason.unknown
      if case .failure(let failure) = result, let why = failure.reason { reason = why }
      calls[id]?.reason = reason
      return ended(id, reason.callEndedReason.map { .over($0) } ?? .failed, now, &out)
    }
    if tag == .start {
      calls[id]?.watchdog = nil
      calls[id]?.node = session?.node
      if case .failure(let failure) = result { calls[id]?.refusal = failure.code }
      if case .success(let success) = result, let to = success.to { dialled(id, as: to, &out) }
    }
    give(.answered(tag, result), to: id, now, &out)
    // the gateway has the call (docs/reference/protocol.md, Sequences, 6): the start action is done
    if tag == .start, isDone { complete(id, true, &out) }
  }

  /// The gateway has normalised the dialled number: the screen shows the number that it calls.
  private mutating func dialled(_ id: Identifier, as to: Handle, _ out: inout [Action]) {
    guard let entry = calls[id], !entry.isOver, (entry.peer.k, entry.peer.h) != (to.k, to.h) else { return }
    calls[id]?.peer = Handle(k: to.k, h: to.h, n: to.n ?? entry.peer.n)
    if let entry = calls[id] { out.append(.updated(id, entry.peer, entry.capabilities)) }
    notifyChange(id, &out)
  }

  /// Until the tap's deadline a failed path restarts media once. A connected call without a path continues: the gateway reports
  /// when it is lost, and media restarts as soon as the session is online.
  mutating func mediaReport(_ report: ClientCall.MediaReport, _ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    if id == test?.id { return giveTest(.media(report), now, &out) }
    if case .failed(let stage, _) = report, stage != .device, let entry = calls[id], !entry.hasRestarted,
      entry.call?.state == .answering, let tappedAt = entry.tappedAt, now + Limits.restartTime <= tappedAt + Limits.gateTime
    {
      calls[id]?.hasRestarted = true
      return give(.restart(.iceFailed), to: id, now, &out)
    }
    if case .failed(.ice, _) = report, calls[id]?.call?.state == .connected {
      if !isOnline(id) {
        calls[id]?.restartsOnline = true
        // no session is left that would report the loss
        if calls[id]?.hasNoSession == true { calls[id]?.watchdog = now + Limits.strayTime }
      } else {
        give(.restart(.iceFailed), to: id, now, &out)
      }
      return
    }
    if case .silence(let silence) = report { return silent(silence, id, now, &out) }
    if case .connected = report, calls[id]?.hasNoSession == true { calls[id]?.watchdog = nil }
    give(.media(report), to: id, now, &out)
  }

  /// The gateway is silent in a connected call: its socket is checked beside the media; if media gets no answer, it restarts over
  /// the present socket or the next one.
  private mutating func silent(
    _ silence: ClientCall.Silence, _ id: Identifier, _ now: Instant, _ out: inout [Action]
  ) {
    guard let entry = calls[id], !entry.isOver, entry.call?.state == .connected else { return }
    switch silence {
    case .began:
      if isOnline(id) { give(.checkLiveness, to: entry.socket, now, &out) }
    case .stays:
      calls[id]?.isReconnecting = true
      notifyChange(id, &out)
      if isOnline(id) { give(.restart(.net), to: id, now, &out) } else { calls[id]?.restartsOnline = true }
    case .ended:
      calls[id]?.isReconnecting = false
      calls[id]?.restartsOnline = false
      notifyChange(id, &out)
    }
  }

  /// Restarts the media of calls whose sessions are online again.
  mutating func restartBroken(_ now: Instant, _ out: inout [Action]) {
    for id in liveCalls where calls[id]?.restartsOnline == true && isOnline(id) {
      calls[id]?.restartsOnline = false
      give(.restart(.net), to: id, now, &out)
    }
  }

  // MARK: a call's own machine

  /// Drops inputs after the end of the call: its media is closed.
  mutating func give(_ input: ClientCall.Input, to id: Identifier, _ now: Instant, _ out: inout [Action]) {
    guard calls[id]?.isOver == false else { return }
    var actions: [ClientCall.Action] = []
    calls[id]?.call?.handle(input, into: &actions)
    run(actions, id, now, &out)
  }

  mutating func run(_ actions: [ClientCall.Action], _ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    for action in actions {
      switch action {
      case .request(let message, let tag):
        if let question = ask(message, call: id, now, &out) {
          tags[question] = (id, tag)
        } else if hasSession(id) {
          give(.answered(tag, .failure(Failure(.tooMany))), to: id, now, &out)
        }
      case .notify(let message): send(message, call: id, now, &out)
      case .media(let request): out.append(.media(id, request))
      case .stateChanged(let state): changed(id, state, now, &out)
      case .digit(let digit): out.append(.digit(id, digit))
      case .quality(let quality):
        calls[id]?.quality = quality
        notifyChange(id, &out)
      }
    }
  }

  private mutating func changed(_ id: Identifier, _ state: ClientCall.State, _ now: Instant, _ out: inout [Action]) {
    switch state {
    // the trunk's 100 at the latest; the first of these messages starts the connecting state
    case .ready, .progress:
      calls[id]?.answerBy = nil
      complete(id, true, &out)
      guard calls[id]?.isConnecting == false, calls[id]?.isOutgoing == true else { break }
      calls[id]?.isConnecting = true
      out.append(.reportConnecting(id))
    case .connected:
      calls[id]?.answerBy = nil
      complete(id, true, &out)
      if calls[id]?.isOutgoing == true { out.append(.reportConnected(id, at: calls[id]?.connectedAt)) }
      if isForeground { out.append(.presentInApp(id)) }
      // muted earlier: the gateway accepts it only now
      if calls[id]?.mute.isOn == true { sendMute(id, now, &out) }
    case .ended: ended(id, calls[id]?.call?.reason?.callEndedReason.map { .over($0) } ?? .silent, now, &out)
    default: break
    }
    listen(now, &out)
    if state != .ended { notifyChange(id, &out) }
  }

  private mutating func complete(_ id: Identifier, _ isDone: Bool, _ out: inout [Action]) {
    guard let action = calls[id]?.open else { return }
    calls[id]?.open = nil
    out.append(.complete(action, isDone))
  }

  /// Does not report a call that was never shown.
  func notifyChange(_ id: Identifier, _ out: inout [Action]) {
    guard let entry = calls[id], entry.screen != .unreported else { return }
    out.append(.changed(entry.info(id)))
  }

  // MARK: the end

  /// `silent`: this side ended the call; the screen is notified only if it still shows it.
  enum Ending { case over(CallEndedReason), failed, silent }

  /// Called once per call; notifies the screen unless the user ended the call there.
  mutating func ended(_ id: Identifier, _ ending: Ending, _ now: Instant, _ out: inout [Action]) {
    guard calls[id]?.isOver == false else { return }
    calls[id]?.isOver = true
    calls[id]?.offer = nil
    if calls[id]?.call?.reason == nil, calls[id]?.reason == nil {
      if case .silent = ending { calls[id]?.reason = .localEnd } else { calls[id]?.reason = .unknown }
    }
    let reason: CallEndedReason =
      switch ending {
      case .over(let reason): reason
      case .failed: .failed
      case .silent: .remoteEnded
      }
    calls[id]?.ending = reason
    // the reason first: a failed answer ends the call on the screen by itself
    close(id, reason, &out)
    complete(id, false, &out)
    for (question, hold) in holds where hold.call == id {
      holds[question] = nil
      out.append(.complete(hold.action, false))
    }
    dropGroupQuestions({ call, _ in call == id }, completes: true, &out)
    leaveGroup(id, now, &out)
    if calls[id]?.call?.state != .ended { out.append(.media(id, .close)) }
    notifyChange(id, &out)
    listen(now, &out)
    guard liveCalls.isEmpty else { return }
    if isConfigured { out.append(.audio(.release)) }
    // the activation was the last call's: the next call waits for its own
    (isConfigured, isActivated) = (false, false)
  }

  mutating func close(_ id: Identifier, _ reason: CallEndedReason, _ out: inout [Action]) {
    guard calls[id]?.screen == .shown else { return }
    calls[id]?.screen = .gone
    out.append(.reportEnded(id, reason))
  }

  /// Ends the call without notifying the screen, which never had it or has dropped it. A call whose report is open is ended when
  /// that is answered.
  mutating func forget(_ id: Identifier, as why: EndReason = .localEnd, _ now: Instant, _ out: inout [Action]) {
    if calls[id]?.screen == .shown { calls[id]?.screen = .gone }
    if calls[id]?.reason == nil { calls[id]?.reason = why }
    give(.hangUp(), to: id, now, &out)
    ended(id, .failed, now, &out)
  }

  // MARK: audio

  mutating func configureAudio(_ id: Identifier, _ out: inout [Action]) {
    guard calls[id]?.isConfigured == false else { return }
    calls[id]?.isConfigured = true
    // R20: while the session is active its category does not change; another call has configured the device
    if isActivated, isConfigured { return }
    isConfigured = true
    out.append(.audio(.configure))
  }

  /// Audio runs while the system has activated it and a call is audible. R9: the system may not report the activation, especially
  /// after an unhold; audio then starts after `activationTime`.
  mutating func runAudio(isForced: Bool = false, _ now: Instant, _ out: inout [Action]) {
    guard listening != nil else {
      startsAudioAt = nil
      guard isAudioRunning else { return }
      isAudioRunning = false
      return out.append(.audio(.stop))
    }
    guard !isAudioRunning else { return startsAudioAt = nil }
    guard isActivated || isForced else { return startsAudioAt = startsAudioAt ?? now + Limits.activationTime }
    (startsAudioAt, isAudioRunning, isAudioForced) = (nil, true, !isActivated)
    out.append(.audio(.start))
  }

  mutating func activated(_ isOn: Bool, _ now: Instant, _ out: inout [Action]) {
    isActivated = isOn
    if isOn { return runAudio(now, &out) }
    guard isAudioRunning else { return }
    isAudioRunning = false
    out.append(.audio(.stop))
  }

  /// Microphone and loudspeaker belong to the call that is neither held nor only ringing, and to all such calls of its group; if
  /// there are two, to the latest.
  mutating func listen(_ now: Instant, _ out: inout [Action]) {
    let hearing = liveCalls.filter { calls[$0]?.hold.isOn == false && calls[$0]?.isHeard == true }
    let next = hearing.max { (calls[$0]?.connectedAt ?? .max) < (calls[$1]?.connectedAt ?? .max) }
    let others = next.map { next in groupMembers(of: next).filter { $0 != next && hearing.contains($0) } } ?? []
    guard next != listening || others != mixing else { return }
    let before = [listening].compactMap(\.self) + mixing
    if next != listening { out.append(.listen(next)) }
    if others != mixing { out.append(.mix(others)) }
    (listening, mixing) = (next, others)
    runAudio(now, &out)
    let after = [next].compactMap(\.self) + others
    for id in before.filter({ !after.contains($0) }) + after.filter({ !before.contains($0) }) {
      give(.audio(audio(of: id)), to: id, now, &out)
    }
  }

  /// A unit is silent or distorted at a rate that its hardware no longer has (R28); a reset of the media services removes the
  /// unit and the session's category.
  mutating func audioChanged(isReset: Bool, _ out: inout [Action]) {
    if isReset, isConfigured { out.append(.audio(.configure)) }
    if isAudioRunning { out.append(.audio(.restart)) }
  }

  func audio(of id: Identifier) -> MediaActive { id == listening || mixing.contains(id) ? runningAudio : .idle }

  mutating func audioRuns(_ running: MediaActive, _ now: Instant, _ out: inout [Action]) {
    runningAudio = running
    for id in [listening].compactMap(\.self) + mixing { give(.audio(running), to: id, now, &out) }
  }

  /// Ends calls without audio: before the answer they continue to ring elsewhere, after it the peer is notified of the failure.
  mutating func audioFailed(_ request: AudioRequest, _ now: Instant, _ out: inout [Action]) {
    guard request == .configure || request == .start || request == .restart else { return }
    // a second call's configuration may fail while the first one's audio runs
    if request != .configure { isAudioRunning = false }
    // the system did not activate it: the next activation may still start it
    if request == .start, isAudioForced { return }
    for id in liveCalls where calls[id]?.isConfigured == true && calls[id]?.hold.isOn == false {
      if calls[id]?.call != nil {
        give(.hangUp(.mediaFailed), to: id, now, &out)
      } else if calls[id]?.isOutgoing == false {
        reject(id, CallReject(scope: .device, reason: .mediaFailed), calls[id]?.push, now, &out)
      }
      calls[id]?.reason = .mediaFailed
      ended(id, .failed, now, &out)
    }
  }
}

extension PhoneMachine.Entry {
  /// True if the call's audio may be heard: it is connected, or is being connected to the callee.
  var isHeard: Bool {
    switch call?.state {
    case .connected, .ready, .progress: true
    default: false
    }
  }
}
