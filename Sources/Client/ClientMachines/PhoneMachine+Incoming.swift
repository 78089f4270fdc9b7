import TrunklineAppProtocol
import TrunklineBytes

/// An incoming call: from the push, the offer or the snapshot to `call.ringing`.
extension PhoneMachine {
  mutating func pushed(
    _ push: Push?, _ mustReport: Bool, isMeasured: Bool = true, _ now: Instant, _ out: inout [Action]
  ) {
    // the push is unreadable, or no user is logged in: the system requires a report all the same, which names no caller; the push
    // of a live call is handled below, even during a logout
    guard let push, (sessions.state != .loggedOut && !login.isLoggingOut) || calls.isLive(push.call) else {
      guard mustReport else { return }
      let id = push?.call ?? Identifier(random: random)
      out.append(.report(id, Self.unknownCaller, isVideo: false))
      return out.append(.reportEnded(id, .failed))
    }
    let isKnown = calls[push.call] != nil
    if mustReport { out.append(.report(push.call, push.caller, isVideo: forcesUnlock)) }
    if isKnown {
      if calls[push.call]?.link.hasNoSession == true { openFurther(push, now, &out) }
      if mustReport, calls.isLive(push.call), calls[push.call]?.screen.report() == true { notifyChange(push.call, &out) }
      // an ended call must still be reported to the system, and is ended at once
      if mustReport, calls[push.call]?.isOver == true { out.append(.reportEnded(push.call, .failed)) }
      return
    }
    // the session of a push whose call has ended may wait for a gateway that cannot be reached
    if let wake = sessions.wake(of: SessionTable.own), wake.call != push.call, !sessions.isOnline(SessionTable.own),
      !calls.isLive(wake.call)
    {
      finishSession(now, &out)
    }
    give(.hurry, now, &out)
    makeRoom(now, &out)
    let isOfOtherNode = sessions.isOfOtherNode(push)
    let wake = sessions.wake(of: SessionTable.own)
    // a third call, or a second one for a session that belongs to another push
    let hasRoom =
      isOfOtherNode
      ? sessions.hasRoom(for: push, hasToken: login.token != nil) : wake.map { $0.call == push.call } ?? true
    if calls.lines >= configuration.maximumCalls || !hasRoom {
      if mustReport { out.append(.reportEnded(push.call, .unanswered)) }
      return reject(push.call, because: CallReject(scope: .device, reason: .busy), push: push, now, &out)
    }
    add(push.call, PhoneCall(from: push.caller, isReported: mustReport), &out)
    calls[push.call]?.pushed(push, isMeasured: isMeasured, at: now)
    if isOfOtherNode {
      openFurther(push, now, &out)
    } else if sessions.exists(SessionTable.own) {
      probe(push.call, now, &out)
    } else {
      connect(push: push, now, &out)
    }
  }

  /// The present session does not report a call that ended before the session began. All messages about a live call arrive before
  /// the answer to any request, so a request is sent.
  mutating func probe(_ id: Identifier, of number: Int = SessionTable.own, _ now: Instant, _ out: inout [Action]) {
    let question = ask(.deviceState(DeviceState(state: sessions.appState)), call: nil, of: number, now, &out)
    if let question { requests.add(question, .probe(id)) }
  }

  /// No offer came by then: the answer to a reject gives the reason.
  mutating func probed(_ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    // a node reports nothing about another node's call: that node is still to be reached
    guard let call = calls[id], !call.isOver, !call.hasMachine,
      !(call.link.session == SessionTable.own && call.push.map(sessions.isOfOtherNode) == true)
    else { return }
    let why = CallReject(scope: .device, reason: .mediaFailed)
    if let question = ask(.callReject(why), call: id, now, &out) { requests.add(question, .message(of: id, .reject)) }
  }

  static let unknownCaller = Handle(k: .generic, h: "Unknown")
  private var forcesUnlock: Bool { microphone != .granted && configuration.forcesUnlock }

  mutating func add(_ id: Identifier, _ call: PhoneCall, _ out: inout [Action]) {
    calls.add(id, call)
    notifyChange(id, &out)
  }

  mutating func handle(snapshot: [CallSnapshot], of number: Int, _ now: Instant, _ out: inout [Action]) {
    let (node, wake) = (sessions.node(of: number), sessions.wake(of: number))
    for row in snapshot {
      // a call that was moved here, or that another session had: it belongs to this session from now on
      if calls.isLive(row.call) { belongs(row.call, to: number) }
      if calls[row.call].map({ !$0.hasMachine && !$0.isOutgoing }) ?? true, row.state != .ringing || row.dir == .outgoing {
        // a call of a process that was killed: no user is on the line. The session of another call's push may not report it yet
        if wake == nil || wake?.call == row.call {
          giveUp(row.call, of: number, now, &out)
        } else if number == SessionTable.own {
          calls.addOrphan(row.call)
        }
        calls[row.call]?.ends(because: .appRestart)
        ended(row.call, .failed, now, &out)
      } else if row.dir == .incoming, row.state == .ringing, let sdp = row.sdp {
        let details = CallDetails(called: row.to, parameters: row.parameters, pstn: row.pstn)
        offered(
          row.call, from: row.from, account: row.acct, capabilities: row.caps, details: details, offer: (sdp, row.gen),
          of: number, now, &out)
      } else if let muted = row.muted, calls[row.call]?.state == .connected, !isSendingMute(row.call) {
        // no message contains changes that the gateway made meanwhile
        act(.mute(muted), row.call, now, &out)
      }
    }
    update(groupsOf: snapshot, now, &out)
    let named = Set(snapshot.map(\.call))
    for id in calls.live(of: number) where !named.contains(id) && calls[id]?.isYetToStart == false {
      // a node reports only its own calls
      let isOther = if let its = calls[id]?.link.node, let node { its != node } else { false }
      if isOther { calls[id]?.loseSession(at: now) } else { calls[id]?.link.missing() }
    }
  }

  /// This device's mute is not yet sent or answered: it is newer than the gateway's.
  private func isSendingMute(_ id: Identifier) -> Bool {
    calls[id]?.mute.isUnsent ?? true || requests.isOpen(.mute, of: id)
  }

  mutating func giveUp(_ id: Identifier, of number: Int = SessionTable.own, _ now: Instant, _ out: inout [Action]) {
    ask(.callEnd(CallEnd(reason: .appRestart)), call: id, of: number, now, &out)
  }

  /// Ends calls that the snapshot lacked and no `call.gone` named before the session's first `pong`.
  mutating func endMissing(of number: Int, _ now: Instant, _ out: inout [Action]) {
    for id in calls.live(of: number) where calls[id]?.link.isMissing == true {
      calls[id]?.ends(because: .unknown)
      give(.lostByGateway, to: id, now, &out)
      ended(id, .failed, now, &out)
    }
  }

  mutating func offered(
    _ id: Identifier, from: Handle, account: String, capabilities: CallCapabilities?, details: CallDetails,
    offer: (sdp: String, generation: Int), of number: Int,
    _ now: Instant, _ out: inout [Action]
  ) {
    let isNew = calls[id].map { !$0.isOver && !$0.holdsLine } ?? true
    if isNew { makeRoom(now, &out) }
    if isNew, calls.lines >= configuration.maximumCalls {
      ask(.callReject(CallReject(scope: .device, reason: .busy)), call: id, of: number, now, &out)
      calls[id]?.ends(because: .busy)
      return ended(id, .failed, now, &out)
    }
    if calls[id] == nil { add(id, PhoneCall(from: from), &out) }
    belongs(id, to: number)
    guard calls.isLive(id) else {
      guard calls[id]?.link.claimGivenUp() == true else { return }
      return reject(id, because: CallReject(scope: .device, reason: .mediaFailed), push: nil, now, &out)
    }
    // a pushed call had to be shown, and is removed again: the caller would not hear the user
    if microphone != .granted, !configuration.forcesUnlock, calls[id]?.hasMachine == false {
      return filtered(id, because: .noPermission, reason: .mediaFailed, now, &out)
    }
    let isNews = calls[id]?.describe(from: from, account: account, capabilities, details) == true
    if calls[id]?.screen.report() == true {
      out.append(.report(id, from, isVideo: forcesUnlock))
      notifyChange(id, &out)
    }
    if isNews { out.append(.updated(id, from, capabilities)) }
    calls[id]?.offered(id, offer, audio: audio.parts(of: id))
    ring(id, now, &out)
  }

  /// `call.ringing` once the call is on the screen.
  private mutating func ring(_ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    guard let offer = calls[id]?.claimOffer() else { return }
    give(.offered(sdp: offer.sdp, generation: offer.generation, ringing: steps(of: id)), to: id, now, &out)
    answerWhenOffered(id, now, &out)
    notifyChange(id, &out)
  }

  /// How long the app's steps took after its push (docs/reference/protocol.md, `call.ringing`).
  private func steps(of id: Identifier) -> CallRinging {
    guard let call = calls[id], let pushedAt = call.pushedAt else { return CallRinging() }
    func milliseconds(_ later: Instant?) -> Int? { later.map { max(0, Int(($0 - pushedAt).milliseconds)) } }
    return CallRinging(
      pushMs: configuration.startedAt.map { max(0, Int((pushedAt - $0).milliseconds)) },
      reportMs: milliseconds(call.screen.reportedAt),
      openMs: milliseconds(sessions.onlineAt(call.link.session)))
  }

  mutating func reported(_ id: Identifier, _ refusal: ReportRefusal?, _ now: Instant, _ out: inout [Action]) {
    guard calls[id]?.screen.state == .reporting, calls[id]?.isOutgoing == false else { return }
    switch refusal {
    case nil, .exists?:
      if let ending = calls[id]?.screen.confirmed(at: now) { return out.append(.reportEnded(id, ending)) }
      ring(id, now, &out)
    case .doNotDisturb?: refused(id, because: .dnd, reason: .dnd, now, &out)
    case .blocked?: refused(id, because: .blocked, reason: .blocked, now, &out)
    // Focus and Screen Time have undocumented codes
    case .other?: refused(id, because: .filtered, reason: .dnd, now, &out)
    }
  }

  private mutating func refused(
    _ id: Identifier, because why: CallUnavailable.Why, reason: EndReason, _ now: Instant, _ out: inout [Action]
  ) {
    calls[id]?.screen.refused()
    filtered(id, because: why, reason: reason, now, &out)
  }

  /// `call.unavailable` is sufficient for the gateway; a `call.end` would also decline for every device.
  private mutating func filtered(
    _ id: Identifier, because why: CallUnavailable.Why, reason: EndReason, _ now: Instant, _ out: inout [Action]
  ) {
    guard calls.isLive(id) else { return }
    calls[id]?.discard()
    calls[id]?.ends(because: reason)
    send(.callUnavailable(CallUnavailable(why: why)), call: id, now, &out)
    ended(id, .failed, now, &out)
  }

  /// Sent by the socket, and also by HTTP while the socket is not connected: the first to arrive counts.
  mutating func reject(_ id: Identifier, because why: CallReject, push: Push?, _ now: Instant, _ out: inout [Action]) {
    let number = socket(of: id)
    let isOfOtherNode = number == SessionTable.own && push.map(sessions.isOfOtherNode) == true
    let wake = sessions.wake(of: number)
    if !isOnline(id) || isOfOtherNode || (wake != nil && wake?.call != id), let push {
      out.append(.post(why, id, wake: push.wake, gateway: push.gateway))
    }
    if !isOfOtherNode, wake == nil || wake?.call == id { ask(.callReject(why), call: id, now, &out) }
  }
}
