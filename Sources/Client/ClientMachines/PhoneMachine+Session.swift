import TrunklineAppProtocol
import TrunklineBytes

/// The session: login, wake, background, paths, push token and logout.
extension PhoneMachine {
  mutating func start(_ now: Instant, _ out: inout [Action]) { askAgainForToken(now, &out) }

  mutating func askForToken(_ now: Instant, _ out: inout [Action]) {
    guard sessions.state != .loggedOut else { return login.stopAsking() }
    if login.ask(at: now) { out.append(.needsToken) }
  }

  /// Something has changed: a token request that failed before may succeed now.
  mutating func askAgainForToken(_ now: Instant, _ out: inout [Action]) {
    if login.mayAskAgain { askForToken(now, &out) }
  }

  mutating func set(_ text: String, expires: Int64?, _ now: Instant, _ out: inout [Action]) {
    let hasSession = sessions.exists(SessionTable.own)
    guard let former = login.accept(text, expires: expires, isInUse: hasSession, at: now) else {
      return out.append(.tokenStale)
    }
    guard hasSession else {
      connect(now, &out)
      return dialWaiting(now, &out)
    }
    let wake = sessions.logIn(SessionTable.own, token: Redacted(text))
    if let question = ask(.authRefresh(AuthRefresh(auth: text)), call: nil, now, &out) {
      login.sent(question, replacing: former, wake: wake)
    }
    register(now, &out)
    for id in calls.claimOrphans() { giveUp(id, now, &out) }
    dialWaiting(now, &out)
  }

  /// The gateway has accepted or refused a token.
  private mutating func refreshed(_ result: Result<Success, Failure>, _ now: Instant, _ out: inout [Action]) {
    switch login.refreshed(result, at: now) {
    case nil: break
    case .accepted?: if case .success(let success) = result, let servers = success.ice { set(servers, &out) }
    case .refused(let wake, let isStale)?:
      sessions.restore(token: login.token, wake: wake)
      if isStale { out.append(.tokenStale) }
    }
  }

  /// Opens a session if there is a reason: a login while the app is in the foreground, or a call.
  mutating func connect(push: Push? = nil, _ now: Instant, _ out: inout [Action]) {
    guard !sessions.exists(SessionTable.own) else { return }
    let isLogin = login.token != nil && (sessions.isForeground || login.isLoggingOut || calls.hasLive)
    guard push != nil || isLogin else { return }
    sessions.open(token: login.token, push: push, device: configuration.device)
    move(to: .connecting, &out)
    give(.start, now, &out)
    dialWaiting(now, &out)
  }

  mutating func move(to next: PhoneState, _ out: inout [Action]) {
    guard sessions.move(to: next) else { return }
    out.append(.state(next))
    if next != .online { loseTest(&out) }
  }

  mutating func pathChanged(_ now: Instant, _ out: inout [Action]) {
    if login.isWaiting { askForToken(now, &out) }
    give(.networkChanged, now, &out)
    for number in sessions.furtherNumbers { give(.networkChanged, to: number, now, &out) }
    for id in liveCalls {
      calls[id]?.media.pathChanged()
      give(.restart(.net), to: id, now, &out)
    }
  }

  mutating func foreground(_ isOn: Bool, _ now: Instant, _ out: inout [Action]) {
    guard isOn != sessions.isForeground else { return }
    sessions.move(toForeground: isOn)
    if isOn { askAgainForToken(now, &out) }
    guard sessions.exists(SessionTable.own) else { return isOn ? connect(now, &out) : () }
    if isOn { give(.hurry, now, &out) }
    ask(.deviceState(DeviceState(state: sessions.appState)), call: nil, now, &out)
  }

  /// In the background a session without a call is closed once the gateway has received all messages: iOS would kill its socket,
  /// and pushes arrive at once instead.
  mutating func leaveInBackground(_ now: Instant, _ out: inout [Action]) {
    guard !sessions.isForeground, !login.isLoggingOut, !calls.hasLive, sessions.isQuiet(SessionTable.own) else { return }
    finishSession(now, &out)
    move(to: .idle, &out)
  }

  /// The phone's own session is online, and a login's.
  func isRegistrable() -> Bool {
    sessions.isOnline(SessionTable.own) && sessions.wake(of: SessionTable.own) == nil && login.token != nil
  }

  mutating func finishSession(_ now: Instant, _ out: inout [Action]) {
    give(.finish, now, &out)
    forgetSession(&out)
  }

  private mutating func forgetSession(_ out: inout [Action]) {
    sessions.remove(SessionTable.own)
    registration.sessionEnded()
    login.sessionEnded()
    directory.sessionEnded()
    for number in requests.ownSessionEnded() { out.append(.read(number, nil)) }
    forgetQuestions(of: SessionTable.own)
  }

  // MARK: push target

  mutating func register(_ now: Instant, _ out: inout [Action]) {
    guard isRegistrable(), !login.isLoggingOut else { return }
    for message in registration.messages() {
      let question = ask(message, call: nil, now, &out)
      if case .devicePut = message { registration.asked(question) }
    }
  }

  // MARK: logout

  /// Removes the device from the gateway's list before the phone reports the logout: now, or when the gateway is next reached.
  mutating func logOut(_ now: Instant, _ out: inout [Action]) {
    guard !login.isLoggingOut, sessions.state != .loggedOut else { return }
    for id in liveCalls { act(.end, id, now, &out) }
    login.logOut()
    guard login.token != nil else { return loggedOut(now, &out) }
    guard sessions.exists(SessionTable.own) else { return connect(now, &out) }
    sendLogOut(now, &out)
  }

  mutating func sendLogOut(_ now: Instant, _ out: inout [Action]) {
    guard login.needsRemoval, isRegistrable() else { return }
    let question = ask(.deviceDel, call: nil, now, &out)
    login.removalAsked(question)
  }

  mutating func loggedOut(_ now: Instant, _ out: inout [Action]) {
    login.loggedOut()
    registration.loggedOut()
    for id in liveCalls { forget(id, now, &out) }
    for number in sessions.furtherNumbers { finish(number, now, &out) }
    finishSession(now, &out)
    move(to: .loggedOut, &out)
    out.append(.loggedOut)
  }

  // MARK: events of the session

  /// Sends a request. Nil: there is no session, or too many requests are open.
  @discardableResult
  mutating func ask(_ message: ClientMessage, call: Identifier?, _ now: Instant, _ out: inout [Action]) -> Identifier? {
    ask(message, call: call, of: socket(of: call), now, &out)
  }

  /// Sends a request of a call over the socket of the call's node.
  @discardableResult
  mutating func ask(_ message: ClientMessage, call: Identifier?, of number: Int, _ now: Instant, _ out: inout [Action])
    -> Identifier?
  {
    var actions: [ClientSession.Action] = []
    guard let id = sessions.request(message, call: call, of: number, at: now, into: &actions) else { return nil }
    run(actions, number, now, &out)
    return id
  }

  mutating func send(_ message: ClientMessage, call: Identifier, _ now: Instant, _ out: inout [Action]) {
    var actions: [ClientSession.Action] = []
    let number = socket(of: call)
    sessions.notify(message, call: call, of: number, at: now, into: &actions)
    run(actions, number, now, &out)
  }

  mutating func give(
    _ input: ClientSession.Input, to number: Int = SessionTable.own, _ now: Instant, _ out: inout [Action]
  ) {
    var actions: [ClientSession.Action] = []
    sessions.handle(input, of: number, hasCall: calls.hasLive, at: now, into: &actions)
    run(actions, number, now, &out)
  }

  private mutating func run(_ actions: [ClientSession.Action], _ number: Int, _ now: Instant, _ out: inout [Action]) {
    for action in actions {
      if case .event(let event) = action {
        happened(event, number, now, &out)
      } else {
        out.append(number == SessionTable.own ? .socket(action) : .further(number, action))
      }
    }
  }

  private mutating func happened(_ event: ClientSession.Event, _ number: Int, _ now: Instant, _ out: inout [Action]) {
    switch event {
    case .online(let welcome, let snapshot) where number != SessionTable.own:
      set(welcome.ice, &out)
      sessions.welcomed(welcome, by: number, at: now)
      ringsOn(of: number)
      if let snapshot { handle(snapshot: snapshot, of: number, now, &out) }
      restartBroken(now, &out)
    case .online(let welcome, let snapshot):
      set(welcome.ice, &out)
      sessions.welcomed(welcome, by: number, at: now)
      move(to: .online, &out)
      ringsOn(of: SessionTable.own)
      if sessions.wake(of: number) == nil { login.helped() }
      if let snapshot {
        handle(snapshot: snapshot, of: SessionTable.own, now, &out)
        findNodes(now, &out)
      }
      restartBroken(now, &out)
      directory.welcomed(welcome)
      askForDirectory(now, &out)
      if login.isLoggingOut { sendLogOut(now, &out) } else if snapshot != nil { register(now, &out) }
    case .offline where number == SessionTable.own:
      move(to: .connecting, &out)
      directory.wentOffline()
      ringsAlone(of: SessionTable.own, now)
    case .offline: ringsAlone(of: number, now)
    case .refused(let code): number == SessionTable.own ? refused(code, now, &out) : refused(code, of: number, now, &out)
    case .message(.pong, _): endMissing(of: number, now, &out)
    case .message(.authExpiring, _): if number == SessionTable.own { askForToken(now, &out) }
    case .message(.callWake(let wake), _): woken(wake, now, &out)
    case .message(let message, let call?): received(message, call, of: number, now, &out)
    case .message(let message, nil): if number == SessionTable.own { received(message, now, &out) }
    case .answered(let id, _, _) where login.isRemoval(id): loggedOut(now, &out)
    case .answered(let id, _, let result) where login.isRefresh(id): refreshed(result, now, &out)
    case .answered(let id, _, let result) where directory.isQuestion(id): run(directory.answered(result, at: now), now, &out)
    case .answered(let id, _, let result): answered(id, result, now, &out)
    case .mediaAnswer(let id, let call?, let answer):
      requests.mediaAnswered(id)
      if call == test.id { return giveTest(.restarted(answer), now, &out) }
      give(.restarted(answer), to: call, now, &out)
    case .mediaAnswer: break
    }
  }

  mutating func set(_ servers: [ICEServer], _ out: inout [Action]) {
    if let relays = sessions.received(servers) { out.append(.relays(relays)) }
  }

  private mutating func refused(_ code: UInt16, _ now: Instant, _ out: inout [Action]) {
    let wasWake = sessions.wake(of: SessionTable.own) != nil
    forgetSession(&out)
    login.removalLost()
    // calls on other nodes continue, unless the device itself was revoked
    for id in liveCalls where calls[id]?.link.session == SessionTable.own || code == CloseCode.revoked.rawValue {
      calls[id]?.ends(atLeastBecause: .auth)
      ended(id, .failed, now, &out)
    }
    if login.isLoggingOut { return loggedOut(now, &out) }
    // a push's session ends with its call; a logged-in user's session continues
    if wasWake {
      move(to: .idle, &out)
      return connect(now, &out)
    }
    move(to: .refused(code), &out)
    guard code == CloseCode.authFailed.rawValue else { return }
    if login.isStale { out.append(.tokenStale) }
    if login.tokenRefused(at: now) { askForToken(now, &out) }
  }
}
