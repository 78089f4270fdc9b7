import TrunklineAppProtocol
import TrunklineBytes
import TrunklineTURN

/// The session: login, wake, background, paths, push token and logout.
extension PhoneMachine {
  mutating func start(_ now: Instant, _ out: inout [Action]) { askAgainForToken(now, &out) }

  mutating func askForToken(_ now: Instant, _ out: inout [Action]) {
    guard state != .loggedOut else { return tokenRequests.answered() }
    if tokenRequests.ask(at: now) { out.append(.needsToken) }
  }

  /// Something has changed: a token request that failed before may succeed now.
  mutating func askAgainForToken(_ now: Instant, _ out: inout [Action]) {
    if token == nil || tokenRequests.isWaiting { askForToken(now, &out) }
  }

  mutating func set(_ text: String, expires: Int64?, _ now: Instant, _ out: inout [Action]) {
    tokenRequests.answered()
    isTokenStale = false
    if session != nil, let token, text == token.exposed || (expires ?? .max) <= (tokenExpires ?? .min) {
      // the gateway would announce the same expiry again, and the app would be asked again
      tokenRequests.failed(at: now, isStale: true)
      isTokenStale = true
      return out.append(.tokenStale)
    }
    let former = (token, tokenExpires, wake)
    token = Redacted(text)
    tokenExpires = expires
    guard session != nil else {
      connect(now, &out)
      return dialWaiting(now, &out)
    }
    session?.use(token: Redacted(text))
    // a session of a push becomes a complete session; an expiring session continues
    wake = nil
    if let question = ask(.authRefresh(AuthRefresh(auth: text)), call: nil, now, &out) {
      refresh = (question, former.0, former.1, former.2)
    }
    register(now, &out)
    for id in Self.ordered(orphans) { giveUp(id, now, &out) }
    orphans = []
    dialWaiting(now, &out)
  }

  /// The gateway has accepted or refused a token. After a refusal the previous token stays in use, and the app is asked later.
  private mutating func refreshed(_ result: Result<Success, Failure>, _ now: Instant, _ out: inout [Action]) {
    guard let former = refresh else { return }
    refresh = nil
    if case .success(let success) = result {
      tokenRequests.helped()
      return success.ice.map { set($0, &out) } ?? ()
    }
    (token, tokenExpires, wake) = (former.token, former.expires, former.wake)
    if let token { session?.use(token: token) }
    // A gateway without time, or without the keys to check it: the token is not at fault, and is sent again before the one in use ends.
    if case .failure(let failure) = result, [.overload, .tooMany, .server].contains(failure.code) {
      return tokenRequests.failed(at: now, isStale: true)
    }
    tokenRequests.failed(at: now)
    isTokenStale = true
    out.append(.tokenStale)
  }

  /// Opens a session if there is a reason: a login while the app is in the foreground, or a call.
  mutating func connect(push: Push? = nil, _ now: Instant, _ out: inout [Action]) {
    guard session == nil else { return }
    guard push != nil || (token != nil && (isForeground || isLoggingOut || !liveCalls.isEmpty)) else { return }
    var settings = ClientSession.Configuration(
      token: token?.exposed ?? "", device: configuration.device, capabilities: configuration.capabilities)
    settings.state = isForeground ? .fg : .bg
    if token == nil, let push {
      (settings.wake, settings.gateway) = (push.wake, push.gateway)
      wake = push
    }
    session = ClientSession(configuration: settings, random: random)
    move(to: .connecting, &out)
    give(.start, now, &out)
    dialWaiting(now, &out)
  }

  mutating func move(to next: PhoneState, _ out: inout [Action]) {
    guard state != next else { return }
    state = next
    out.append(.state(next))
    if next != .online { loseTest(&out) }
  }

  mutating func pathChanged(_ now: Instant, _ out: inout [Action]) {
    if tokenRequests.isWaiting { askForToken(now, &out) }
    give(.networkChanged, now, &out)
    for number in further.keys.sorted() { give(.networkChanged, to: number, now, &out) }
    for id in liveCalls {
      calls[id]?.restartsOnline = false
      give(.restart(.net), to: id, now, &out)
    }
  }

  mutating func foreground(_ isOn: Bool, _ now: Instant, _ out: inout [Action]) {
    guard isOn != isForeground else { return }
    isForeground = isOn
    session?.use(state: isOn ? .fg : .bg)
    for number in further.keys { further[number]?.session.use(state: isOn ? .fg : .bg) }
    if isOn { askAgainForToken(now, &out) }
    guard session != nil else { return isOn ? connect(now, &out) : () }
    if isOn { give(.hurry, now, &out) }
    ask(.deviceState(DeviceState(state: isOn ? .fg : .bg)), call: nil, now, &out)
  }

  /// In the background a session without a call is closed once the gateway has received all messages: iOS would kill its socket,
  /// and pushes arrive at once instead.
  mutating func leaveInBackground(_ now: Instant, _ out: inout [Action]) {
    guard !isForeground, !isLoggingOut, liveCalls.isEmpty, session?.isQuiet == true else { return }
    finishSession(now, &out)
    move(to: .idle, &out)
  }

  func isRegistrable() -> Bool { session?.isOnline == true && wake == nil && token != nil }

  mutating func finishSession(_ now: Instant, _ out: inout [Action]) {
    give(.finish, now, &out)
    forgetSession(&out)
  }

  private mutating func forgetSession(_ out: inout [Action]) {
    (session, wake, registration, refresh) = (nil, nil, nil, nil)
    forgetDirectoryQuestion()
    for number in reads.values.sorted() { out.append(.read(number, nil)) }
    reads = [:]
    forgetQuestions(of: 0)
  }

  // MARK: push target

  mutating func set(push token: DevicePut.Push?, _ now: Instant, _ out: inout [Action]) {
    isRegistrationDropped = token == nil && (pushToken != nil || isRegistrationDropped)
    pushToken = token
    register(now, &out)
  }

  mutating func set(_ wanted: DevicePut.Preferences, _ now: Instant, _ out: inout [Action]) {
    preferences = wanted
    register(now, &out)
  }

  /// Registers at every login, launch and new push token, as the gateway may have lost the registration.
  mutating func register(_ now: Instant, _ out: inout [Action]) {
    guard isRegistrable(), !isLoggingOut else { return }
    // one at a time: a system that issues a new token each second must not fill the session
    guard registration == nil else { return isRegistrationOld = true }
    isRegistrationOld = false
    if isRegistrationDropped {
      isRegistrationDropped = false
      ask(.deviceDel, call: nil, now, &out)
    }
    guard pushToken != nil || preferences != nil else { return }
    registration = ask(.devicePut(DevicePut(push: pushToken, prefs: preferences)), call: nil, now, &out)
  }

  // MARK: logout

  /// Removes the device from the gateway's list before the phone reports the logout: now, or when the gateway is next reached.
  mutating func logOut(_ now: Instant, _ out: inout [Action]) {
    guard !isLoggingOut, state != .loggedOut else { return }
    for id in liveCalls { act(.end, id, now, &out) }
    isLoggingOut = true
    guard session != nil, token != nil else { return token == nil ? loggedOut(now, &out) : connect(now, &out) }
    sendLogOut(now, &out)
  }

  mutating func sendLogOut(_ now: Instant, _ out: inout [Action]) {
    guard isLoggingOut, logOutQuestion == nil, isRegistrable() else { return }
    logOutQuestion = ask(.deviceDel, call: nil, now, &out)
  }

  mutating func loggedOut(_ now: Instant, _ out: inout [Action]) {
    (isLoggingOut, logOutQuestion, token, pushToken, preferences) = (false, nil, nil, nil, nil)
    for id in liveCalls { forget(id, now, &out) }
    for number in further.keys.sorted() { finish(number, now, &out) }
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
    let asked =
      number == 0
      ? session?.request(message, call: call, at: now, into: &actions)
      : further[number]?.session.request(message, call: call, at: now, into: &actions)
    guard let id = asked else { return nil }
    // too many are open: the refusal is already here, before any code waits for it
    for case .event(.answered(id, _, _)) in actions { return nil }
    run(actions, number, now, &out)
    return id
  }

  mutating func send(_ message: ClientMessage, call: Identifier, _ now: Instant, _ out: inout [Action]) {
    var actions: [ClientSession.Action] = []
    let number = socket(of: call)
    if number == 0 {
      session?.notify(message, call: call, at: now, into: &actions)
    } else {
      further[number]?.session.notify(message, call: call, at: now, into: &actions)
    }
    run(actions, number, now, &out)
  }

  /// - Parameter number: 0 is the phone's own session.
  mutating func give(_ input: ClientSession.Input, to number: Int = 0, _ now: Instant, _ out: inout [Action]) {
    var actions: [ClientSession.Action] = []
    let hasCall = calls.values.contains { !$0.isOver }
    if number == 0 {
      session?.hasCall = hasCall
      session?.handle(input, at: now, into: &actions)
    } else {
      further[number]?.session.hasCall = hasCall
      further[number]?.session.handle(input, at: now, into: &actions)
    }
    run(actions, number, now, &out)
  }

  private mutating func run(_ actions: [ClientSession.Action], _ number: Int, _ now: Instant, _ out: inout [Action]) {
    for action in actions {
      if case .event(let event) = action {
        happened(event, number, now, &out)
      } else {
        out.append(number == 0 ? .socket(action) : .further(number, action))
      }
    }
  }

  private mutating func happened(_ event: ClientSession.Event, _ number: Int, _ now: Instant, _ out: inout [Action]) {
    switch event {
    case .online(let welcome, let snapshot) where number != 0:
      set(welcome.ice, &out)
      further[number]?.onlineAt = now
      ringsOn(of: number)
      if let snapshot { handle(snapshot: snapshot, of: number, now, &out) }
      restartBroken(now, &out)
    case .online(let welcome, let snapshot):
      set(welcome.ice, &out)
      hasTestCalls = welcome.caps.contains(TestCall.capability)
      move(to: .online, &out)
      onlineAt = now
      ringsOn(of: 0)
      if wake == nil { tokenRequests.helped() }
      if let snapshot {
        handle(snapshot: snapshot, of: 0, now, &out)
        findNodes(now, &out)
      }
      restartBroken(now, &out)
      directoryWelcomed(welcome, now, &out)
      if isLoggingOut { sendLogOut(now, &out) } else if snapshot != nil { register(now, &out) }
    case .offline where number == 0:
      move(to: .connecting, &out)
      directoryOffline()
      ringsAlone(of: 0, now)
    case .offline: ringsAlone(of: number, now)
    case .refused(let code): number == 0 ? refused(code, now, &out) : refused(code, of: number, now, &out)
    case .message(.pong, _): endMissing(of: number, now, &out)
    case .message(.authExpiring, _): if number == 0 { askForToken(now, &out) }
    case .message(.callWake(let wake), _): woken(wake, now, &out)
    case .message(let message, let call?): received(message, call, of: number, now, &out)
    case .message(let message, nil): if number == 0 { _ = directoryReceived(message, now, &out) }
    case .answered(let id, _, _) where id == logOutQuestion: loggedOut(now, &out)
    case .answered(let id, _, let result) where id == refresh?.question: refreshed(result, now, &out)
    case .answered(let id, _, let result) where reads[id] != nil:
      if let read = reads.removeValue(forKey: id) { out.append(.read(read, result)) }
    case .answered(let id, _, let result) where following?.question == id: _ = directoryAnswered(id, result, now, &out)
    case .answered(let id, _, let result): answered(id, result, now, &out)
    case .mediaAnswer(let id, let call?, let answer):
      tags[id] = nil
      if call == test?.id { return giveTest(.restarted(answer), now, &out) }
      give(.restarted(answer), to: call, now, &out)
    case .mediaAnswer: break
    }
  }

  /// STUN servers are ignored: the gateway has an address that every client reaches.
  mutating func set(_ servers: [ICEServer], _ out: inout [Action]) {
    let found = servers.flatMap { server in
      server.urls.compactMap { TURNServer(url: $0, username: server.username ?? "", password: server.credential ?? "") }
    }.prefix(Limits.relayServers)
    guard Array(found) != relays else { return }
    relays = Array(found)
    out.append(.relays(relays))
  }

  private mutating func refused(_ code: UInt16, _ now: Instant, _ out: inout [Action]) {
    let wasWake = wake != nil
    forgetSession(&out)
    logOutQuestion = nil
    // calls on other nodes continue, unless the device itself was revoked
    for id in liveCalls where calls[id]?.socket == 0 || code == CloseCode.revoked.rawValue {
      if calls[id]?.reason == nil { calls[id]?.reason = .auth }
      ended(id, .failed, now, &out)
    }
    if isLoggingOut { return loggedOut(now, &out) }
    // a push's session ends with its call; a logged-in user's session continues
    if wasWake {
      move(to: .idle, &out)
      return connect(now, &out)
    }
    move(to: .refused(code), &out)
    guard code == CloseCode.authFailed.rawValue else { return }
    token = nil
    if isTokenStale { out.append(.tokenStale) }
    // the first time at once, as the token may simply be old
    if tokenRequests.refused() { askForToken(now, &out) } else { tokenRequests.failed(at: now) }
  }
}
