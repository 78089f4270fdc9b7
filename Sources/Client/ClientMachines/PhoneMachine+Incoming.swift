import TrunklineAppProtocol
import TrunklineBytes

/// An incoming call: from the push, the offer or the snapshot to `call.ringing`.
extension PhoneMachine {
  mutating func pushed(_ push: Push?, _ mustReport: Bool, _ now: Instant, _ out: inout [Action]) {
    // the push is unreadable, or no user is logged in: the system requires a report all the same, which names no caller; the push
    // of a live call is handled below, even during a logout
    guard let push, (state != .loggedOut && !isLoggingOut) || calls[push.call]?.isOver == false else {
      guard mustReport else { return }
      let id = push?.call ?? Identifier(random: random)
      out.append(.report(id, Self.unknownCaller, isVideo: false))
      return out.append(.reportEnded(id, .failed))
    }
    let isKnown = calls[push.call] != nil
    if mustReport { out.append(.report(push.call, push.caller, isVideo: forcesUnlock)) }
    if isKnown {
      if calls[push.call]?.hasNoSession == true { openFurther(push, now, &out) }
      if mustReport, calls[push.call]?.screen == .unreported, calls[push.call]?.isOver == false {
        calls[push.call]?.screen = .reporting
        notifyChange(push.call, &out)
      }
      // an ended call must still be reported to the system, and is ended at once
      if mustReport, calls[push.call]?.isOver == true { out.append(.reportEnded(push.call, .failed)) }
      return
    }
    // the session of a push whose call has ended may wait for a gateway that cannot be reached
    if let wake, wake.call != push.call, session?.isOnline != true, !liveCalls.contains(wake.call) { finishSession(now, &out) }
    give(.hurry, now, &out)
    makeRoom(now, &out)
    let isOfOtherNode = isOfOtherNode(push)
    // a third call, or a second one for a session that belongs to another push
    if lines >= configuration.maximumCalls || (isOfOtherNode ? !hasRoom(push) : wake != nil && wake?.call != push.call) {
      if mustReport { out.append(.reportEnded(push.call, .unanswered)) }
      return reject(push.call, CallReject(scope: .device, reason: .busy), push, now, &out)
    }
    add(push.call, Entry(isOutgoing: false, peer: push.caller, screen: mustReport ? .reporting : .unreported), &out)
    calls[push.call]?.push = push
    calls[push.call]?.details = push.details
    calls[push.call]?.pushedAt = now
    calls[push.call]?.watchdog = now + Limits.snapshotTime
    if isOfOtherNode {
      openFurther(push, now, &out)
    } else if session != nil {
      probe(push.call, now, &out)
    } else {
      connect(push: push, now, &out)
    }
  }

  /// The present session does not report a call that ended before the session began. All messages about a live call arrive before
  /// the answer to any request, so a request is sent.
  mutating func probe(_ id: Identifier, of number: Int = 0, _ now: Instant, _ out: inout [Action]) {
    let state = DeviceState(state: isForeground ? .fg : .bg)
    let question = ask(.deviceState(state), call: nil, of: number, now, &out)
    if let question { probes[question] = id }
  }

  /// No offer came by then: the answer to a reject gives the reason.
  mutating func probed(_ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    // a node reports nothing about another node's call: that node is still to be reached
    guard let entry = calls[id], !entry.isOver, entry.call == nil, !(entry.socket == 0 && entry.push.map(isOfOtherNode) == true)
    else { return }
    let why = CallReject(scope: .device, reason: .mediaFailed)
    if let question = ask(.callReject(why), call: id, now, &out) { tags[question] = (id, .reject) }
  }

  static let unknownCaller = Handle(k: .generic, h: "Unknown")
  private var forcesUnlock: Bool { microphone != .granted && configuration.forcesUnlock }

  mutating func add(_ id: Identifier, _ entry: Entry, _ out: inout [Action]) {
    // ended calls are kept for a while: a late push must find them
    if calls.count >= Limits.rememberedCalls,
      let old = calls.filter(\.value.isOver).keys.min(by: { $0.description < $1.description })
    {
      calls[old] = nil
    }
    calls[id] = entry
    notifyChange(id, &out)
  }

  mutating func handle(snapshot: [CallSnapshot], of number: Int, _ now: Instant, _ out: inout [Action]) {
    let node = node(of: number)
    let wake = number == 0 ? wake : further[number]?.wake
    for row in snapshot {
      // a call that was moved here, or that another session had: it belongs to this session from now on
      if calls[row.call]?.isOver == false { belongs(row.call, to: number) }
      if calls[row.call].map({ $0.call == nil && !$0.isOutgoing }) ?? true, row.state != .ringing || row.dir == .outgoing {
        // a call of a process that was killed: no user is on the line. The session of another call's push may not report it yet
        if wake == nil || wake?.call == row.call {
          giveUp(row.call, of: number, now, &out)
        } else if number == 0, orphans.count < Limits.rememberedCalls {
          orphans.insert(row.call)
        }
        calls[row.call]?.reason = .appRestart
        ended(row.call, .failed, now, &out)
      } else if row.dir == .incoming, row.state == .ringing, let sdp = row.sdp {
        let details = CallDetails(called: row.to, parameters: row.parameters, pstn: row.pstn)
        offered(row.call, row.from, row.acct, row.caps, details, (sdp, row.gen), of: number, now, &out)
      } else if let muted = row.muted, calls[row.call]?.call?.state == .connected, !isSendingMute(row.call) {
        // no message contains changes that the gateway made meanwhile
        act(.mute(muted), row.call, now, &out)
      }
    }
    update(groupsOf: snapshot, now, &out)
    let named = Set(snapshot.map(\.call))
    for id in liveCalls where !named.contains(id) && !isYetToStart(id) && calls[id]?.socket == number {
      // a node reports only its own calls
      if let its = calls[id]?.node, let node, its != node { loseSession(id, now) } else { calls[id]?.isMissing = true }
    }
  }

  /// This device's mute is not yet sent or answered: it is newer than the gateway's.
  private func isSendingMute(_ id: Identifier) -> Bool {
    guard let entry = calls[id] else { return true }
    return entry.muteDue != nil || entry.mute.isAsked || tags.values.contains { $0.call == id && $0.tag == .mute }
  }

  /// True if the gateway cannot know the call yet.
  private func isYetToStart(_ id: Identifier) -> Bool {
    guard let entry = calls[id], entry.isOutgoing else { return false }
    return entry.call == nil || entry.call?.state == .starting
  }

  mutating func giveUp(_ id: Identifier, of number: Int = 0, _ now: Instant, _ out: inout [Action]) {
    ask(.callEnd(CallEnd(reason: .appRestart)), call: id, of: number, now, &out)
  }

  /// Ends calls that the snapshot lacked and no `call.gone` named before the session's first `pong`.
  mutating func endMissing(of number: Int, _ now: Instant, _ out: inout [Action]) {
    for id in liveCalls where calls[id]?.isMissing == true && calls[id]?.socket == number {
      calls[id]?.reason = .unknown
      give(.lostByGateway, to: id, now, &out)
      ended(id, .failed, now, &out)
    }
  }

  mutating func offered(
    _ id: Identifier, _ from: Handle, _ account: String, _ capabilities: CallCapabilities?, _ details: CallDetails,
    _ offer: (sdp: String, generation: Int), of number: Int,
    _ now: Instant, _ out: inout [Action]
  ) {
    let isNew = calls[id].map { !$0.isOver && !$0.holdsLine } ?? true
    if isNew { makeRoom(now, &out) }
    if isNew, lines >= configuration.maximumCalls {
      ask(.callReject(CallReject(scope: .device, reason: .busy)), call: id, of: number, now, &out)
      calls[id]?.reason = .busy
      return ended(id, .failed, now, &out)
    }
    if calls[id] == nil { add(id, Entry(isOutgoing: false, peer: from, screen: .unreported), &out) }
    belongs(id, to: number)
    guard calls[id]?.isOver == false else {
      guard calls[id]?.isGivenUp == true else { return }
      calls[id]?.isGivenUp = false
      return reject(id, CallReject(scope: .device, reason: .mediaFailed), nil, now, &out)
    }
    // a pushed call had to be shown, and is removed again: the caller would not hear the user
    if microphone != .granted, !configuration.forcesUnlock, calls[id]?.call == nil {
      return filtered(id, .noPermission, .mediaFailed, now, &out)
    }
    let isNews = calls[id]?.peer != from || calls[id]?.capabilities != capabilities
    calls[id]?.peer = from
    calls[id]?.account = account
    calls[id]?.details = details
    calls[id]?.capabilities = capabilities
    if calls[id]?.screen == .unreported {
      calls[id]?.screen = .reporting
      out.append(.report(id, from, isVideo: forcesUnlock))
      notifyChange(id, &out)
    }
    if isNews { out.append(.updated(id, from, capabilities)) }
    calls[id]?.watchdog = nil
    let running = audio(of: id)
    if calls[id]?.call == nil { calls[id]?.call = ClientCall(incoming: id, from: from, audio: running) }
    calls[id]?.offer = offer
    ring(id, now, &out)
  }

  /// `call.ringing` once the call is on the screen.
  private mutating func ring(_ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    guard let entry = calls[id], entry.screen == .shown, let offer = entry.offer, !entry.isOver else { return }
    calls[id]?.offer = nil
    give(.offered(sdp: offer.sdp, generation: offer.generation, ringing: steps(entry)), to: id, now, &out)
    answerWhenOffered(id, now, &out)
    notifyChange(id, &out)
  }

  /// How long the app's steps took after its push (docs/reference/protocol.md, `call.ringing`).
  private func steps(_ entry: Entry) -> CallRinging {
    guard let pushedAt = entry.pushedAt else { return CallRinging() }
    func milliseconds(_ later: Instant?) -> Int? { later.map { max(0, Int(($0 - pushedAt).milliseconds)) } }
    return CallRinging(
      pushMs: configuration.startedAt.map { max(0, Int((pushedAt - $0).milliseconds)) }, reportMs: milliseconds(entry.reportedAt),
      openMs: milliseconds(entry.socket == 0 ? onlineAt : further[entry.socket]?.onlineAt))
  }

  mutating func reported(_ id: Identifier, _ refusal: ReportRefusal?, _ now: Instant, _ out: inout [Action]) {
    guard calls[id]?.screen == .reporting, calls[id]?.isOutgoing == false else { return }
    switch refusal {
    case nil, .exists?:
      calls[id]?.screen = .shown
      calls[id]?.reportedAt = now
      if calls[id]?.isOver == true { return close(id, calls[id]?.ending ?? .failed, &out) }
      ring(id, now, &out)
    case .doNotDisturb?: refused(id, .dnd, .dnd, now, &out)
    case .blocked?: refused(id, .blocked, .blocked, now, &out)
    // Focus and Screen Time have undocumented codes
    case .other?: refused(id, .filtered, .dnd, now, &out)
    }
  }

  private mutating func refused(
    _ id: Identifier, _ why: CallUnavailable.Why, _ reason: EndReason, _ now: Instant, _ out: inout [Action]
  ) {
    calls[id]?.screen = .refused
    filtered(id, why, reason, now, &out)
  }

  /// `call.unavailable` is sufficient for the gateway; a `call.end` would also decline for every device.
  private mutating func filtered(
    _ id: Identifier, _ why: CallUnavailable.Why, _ reason: EndReason, _ now: Instant, _ out: inout [Action]
  ) {
    guard calls[id]?.isOver == false else { return }
    calls[id]?.call = nil
    calls[id]?.reason = reason
    send(.callUnavailable(CallUnavailable(why: why)), call: id, now, &out)
    ended(id, .failed, now, &out)
  }

  /// Sent by the socket, and also by HTTP while the socket is not connected: the first to arrive counts.
  mutating func reject(_ id: Identifier, _ why: CallReject, _ push: Push?, _ now: Instant, _ out: inout [Action]) {
    let number = socket(of: id)
    let isOfOtherNode = number == 0 && push.map(isOfOtherNode) == true
    let wake = number == 0 ? wake : further[number]?.wake
    if !isOnline(id) || isOfOtherNode || (wake != nil && wake?.call != id), let push {
      out.append(.post(why, id, wake: push.wake, gateway: push.gateway))
    }
    if !isOfOtherNode, wake == nil || wake?.call == id { ask(.callReject(why), call: id, now, &out) }
  }
}
