import AppProtocol
import Bytes

/// A call's own machine, its end, and the audio that it has.
extension PhoneMachine {
  // MARK: what the gateway says

  mutating func received(_ message: ServerMessage, _ id: Identifier, of number: Int, _ now: Instant, _ out: inout [Action]) {
    if id == test?.id { return giveTest(.message(message), now, &out) }
    // what crosses the end of a call changes nothing of it; an offer is looked at, it may be of one that was given up
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
    // the system's screen follows what an operator's program did, and this phone says the same to the gateway again
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

  /// What the gateway has read from what was dialled: the screen shows the number that it calls.
  private mutating func dialled(_ id: Identifier, as to: Handle, _ out: inout [Action]) {
    guard let entry = calls[id], !entry.isOver, (entry.peer.k, entry.peer.h) != (to.k, to.h) else { return }
    calls[id]?.peer = Handle(k: to.k, h: to.h, n: to.n ?? entry.peer.n)
    if let entry = calls[id] { out.append(.updated(id, entry.peer, entry.capabilities)) }
    notifyChange(id, &out)
  }

  /// While the tap's deadline leaves time, media is recreated once instead of failing. A connected call without a path continues: the gateway
  /// says when it is lost, and media is recreated as soon as it can be asked.
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
        // its loss is no longer reported
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

  /// Nothing comes from the gateway in a connected call: its socket is asked beside the media, and where media gets no answer it is recreated, by
  /// the socket there is or the next one.
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

  /// Their sessions are back.
  mutating func restartBroken(_ now: Instant, _ out: inout [Action]) {
    for id in liveCalls where calls[id]?.restartsOnline == true && isOnline(id) {
      calls[id]?.restartsOnline = false
      give(.restart(.net), to: id, now, &out)
    }
  }

  // MARK: a call's own machine

  /// Messages after the end have no effect: its media is closed.
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
    // the trunk's 100 at the latest; whichever comes first is when it began to connect
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
      // muted before: the gateway takes it only now
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

  /// A call that was never shown is not reported.
  func notifyChange(_ id: Identifier, _ out: inout [Action]) {
    guard let entry = calls[id], entry.screen != .unreported else { return }
    out.append(.changed(entry.info(id)))
  }

  // MARK: the end

  /// `silent`: this side ended it; where the screen still has it, it hears of an end.
  enum Ending { case over(CallEndedReason), failed, silent }

  /// Once a call: the screen is told unless the user ended it there.
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
    // that the system had it activated was the last call's: the next one waits for its own word
    (isConfigured, isActivated) = (false, false)
  }

  mutating func close(_ id: Identifier, _ reason: CallEndedReason, _ out: inout [Action]) {
    guard calls[id]?.screen == .shown else { return }
    calls[id]?.screen = .gone
    out.append(.reportEnded(id, reason))
  }

  /// Without a word to the screen: it never had the call, or has forgotten it. One whose report is under way is ended when that is answered.
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
    // R20: while the session is active its category stays as it is; the device is another call's, and configured
    if isActivated, isConfigured { return }
    isConfigured = true
    out.append(.audio(.configure))
  }

  /// Audio runs while the system has it activated and a call is heard. R9: the system may not say that it has, after an unhold above all;
  /// a while later audio starts all the same.
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

  /// Microphone and loudspeaker belong to the call that is neither held nor only ringing, and to all of its group that are so; to the latest,
  /// were there two.
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

  /// On a rate that its hardware has no more a unit is silent or distorted (R28); a reset of the media services leaves nothing of it, nor of
  /// the session's category.
  mutating func audioChanged(isReset: Bool, _ out: inout [Action]) {
    if isReset, isConfigured { out.append(.audio(.configure)) }
    if isAudioRunning { out.append(.audio(.restart)) }
  }

  func audio(of id: Identifier) -> MediaActive { id == listening || mixing.contains(id) ? runningAudio : .idle }

  mutating func audioRuns(_ running: MediaActive, _ now: Instant, _ out: inout [Action]) {
    runningAudio = running
    for id in [listening].compactMap(\.self) + mixing { give(.audio(running), to: id, now, &out) }
  }

  /// A call without audio is none: before the answer it rings on elsewhere, after it the other side is told that it failed.
  mutating func audioFailed(_ request: AudioRequest, _ now: Instant, _ out: inout [Action]) {
    guard request == .configure || request == .start || request == .restart else { return }
    // a second call's configuration may fail while the first one's audio runs
    if request != .configure { isAudioRunning = false }
    // not the system's word: the next activation may still start it
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
  /// Its audio may be heard: connected, or on its way to the other side.
  var isHeard: Bool {
    switch call?.state {
    case .connected, .ready, .progress: true
    default: false
    }
  }
}
