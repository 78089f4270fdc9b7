import Foundation
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

/// Performs the machine's actions.
extension PhoneEngine {
  func perform(_ action: PhoneMachine.Action) {
    switch action {
    case .report(let call, let caller, let isVideo): parts.system.perform(.report(call, caller, isVideo: isVideo))
    case .updated(let call, let caller, let capabilities): parts.system.perform(.update(call, caller, capabilities))
    case .reportEnded(let call, let reason): parts.system.perform(.reportEnded(call, reason))
    case .reportConnecting(let call): parts.system.perform(.reportConnecting(call))
    case .reportConnected(let call, let at): parts.system.perform(.reportConnected(call, at: at))
    case .request(let request): parts.system.perform(.request(request))
    case .complete(let id, let isDone): parts.system.perform(.complete(id, isDone))
    case .socket(let action): perform(action, of: 0)
    case .further(let session, let action): perform(action, of: session)
    case .post(let reject, let call, let wake, let gateway): post(reject, of: call, wake: wake, to: gateway)
    case .media(let call, let request): media?.give(.call(call, request))
    case .audio(let request): perform(request)
    case .listen(let call): media?.give(.listen(call))
    case .mix(let others): media?.give(.mix(others))
    case .relays(let servers):
      relayServers = servers
      media?.give(.relays(servers))
    case .needsToken: askForToken()
    case .tokenStale: updates.change { $0.error = .some(.staleToken) }
    case .state(let state):
      self.state = state
      if case .refused(let code) = state { stateError = PhoneError(closeCode: code) }
      if state == .online { stateError = nil }
      updates.change { batch in
        batch.state = state
        if case .refused(let code) = state { batch.error = .some(PhoneError(closeCode: code)) }
        if state == .online { batch.error = .some(nil) }
      }
    case .changed(let info):
      updates.change { batch in
        if batch.calls.updateValue(info, forKey: info.id) == nil { batch.order.append(info.id) }
      }
    case .digit(let call, let digit): updates.report(.digit(call, digit))
    case .transferred(let call, let status): updates.report(.transferred(call, status))
    case .presentInApp(let call): updates.report(.presentInApp(call))
    case .registered(let refusal): updates.report(.registered(refusal))
    case .directory(let parts): directoryHandler?(parts)
    case .read(let number, let result): readers.removeValue(forKey: number)?(result)
    case .historyChanged(let id): updates.report(.historyChanged(id))
    case .tested(let id, let outcome): tested(id, outcome)
    case .loggedOut:
      for key in [SecretKey.deviceID, SecretKey.loggingOut] { parts.secrets.write(key, nil) }
      updates.report(.loggedOut)
    }
  }

  private func perform(_ request: AudioRequest) {
    switch request {
    case .configure:
      // before the action is fulfilled: the system activates the configuration that it has by then
      parts.system.perform(.configureAudio)
    case .start: media?.give(.audio(true))
    case .restart: break
    case .stop, .release: media?.give(.audio(false))
    }
    audioNumber += 1
    let number = audioNumber
    audio.run(request) { [weak self] isDone in self?.enqueue { $0.performed(request, number, isDone) } }
  }

  private func performed(_ request: AudioRequest, _ number: Int, _ isDone: Bool) {
    switch request {
    // stopped or started again since
    case .start where number != audioNumber, .restart where number != audioNumber: break
    case .configure: if !isDone { give(.audioFailed(request)) }
    case .start where isDone, .restart where isDone:
      give(.audioRuns(.running))
      audioStarted()
    case .start, .restart:
      media?.give(.audio(false))
      give(.audioFailed(request))
    case .stop, .release: give(.audioRuns(.idle))
    }
  }

  /// - Parameter session: 0 is the phone's own, others are at further nodes.
  private func perform(_ action: ClientSession.Action, of session: Int) {
    switch action {
    case .connect:
      sockets[session]?.abandon()
      sockets[session] = SocketRace()
      open(session) { sockets, url, events in sockets.open(url, events: events) }
    case .connectAlternate:
      guard sockets[session]?.isUndecided == true else { return }
      open(session) { sockets, url, events in sockets.openAlternate(url, events: events) }
    case .write(let bytes): sockets[session]?.send(bytes)
    case .close(let code): sockets[session]?.close(code)
    case .event: break
    }
  }

  private func open(
    _ session: Int, _ body: (any SocketConnector, String, @escaping @Sendable (SocketEvent) -> Void) -> (any Socket)?
  ) {
    socketNumber += 1
    let number = socketNumber
    let gateway = (session == 0 ? machine.gateway : machine.gateway(of: session)) ?? parts.gateway
    if session == 0 { media?.withLoopback.store(PhoneParts.isLoopback(gateway), ordering: .relaxed) }
    let socket = body(parts.sockets, gateway) { [weak self] event in self?.enqueue { $0.received(event, of: number, session) } }
    if let socket { sockets[session]?.add(number, socket) }
  }

  private func received(_ event: SocketEvent, of number: Int, _ session: Int) {
    func give(_ input: ClientSession.Input) { self.give(session == 0 ? .socket(input) : .further(session, input)) }
    switch (event, sockets[session]?.handle(event, of: number) ?? .nothing) {
    case (_, .opened): give(.socketOpened)
    case (.received(let text), .received): give(.frame(text))
    case (.closed(let code, let why), .closed):
      if session != 0 { sockets[session] = nil }
      if session == 0, let why { updates.report(.disconnected(why)) }
      give(.socketClosed(code))
    default: break
    }
  }

  private func post(_ reject: CallReject, of call: Identifier, wake: Redacted<String>, to gateway: String?) {
    guard let url = Self.httpAddress(of: gateway ?? parts.gateway, path: "/calls/\(call)/reject") else { return }
    parts.sockets.post(url, bearer: wake.exposed, body: reject.json)
  }

  /// `wss://host/any` → `https://host/v1` + path; a node with a longer path, `wss://host/n/n1/v1/connect`, keeps the part before
  /// `/v1/connect`.
  static func httpAddress(of gateway: String, path: String) -> String? {
    guard var parts = URLComponents(string: gateway), parts.host != nil else { return nil }
    parts.scheme = parts.scheme == "ws" ? "http" : "https"
    let socket = "/v1/connect"
    let before = parts.path.hasSuffix(socket) ? String(parts.path.dropLast(socket.count)) : ""
    parts.path = before + "/v1" + path
    parts.query = nil
    return parts.string
  }

  private func askForToken() {
    let (token, time) = (parts.token, parts.tokenTime)
    Task { [weak self] in
      let result: Result<String, any Error> = await Self.deadline(time) {
        let text = try await token()
        try NoToken.check(text)
        return text
      }
      await self?.hand(result)
    }
  }

  private func hand(_ token: Result<String, any Error>) {
    switch token {
    case .success(let text):
      let claims = TokenClaims(text)
      if let device = claims?.dev { parts.secrets.write(SecretKey.deviceID, Array(device.utf8)) }
      give(.token(text, device: claims?.dev, expires: claims?.exp))
    case .failure(let error):
      stateError = .noToken("\(error)")
      updates.change { $0.error = .some(.noToken("\(error)")) }
      give(.tokenFailed)
    }
  }

  private struct TooLate: Error, CustomStringConvertible {
    let time: Duration
    var description: String { "no answer within \(time)" }
  }

  /// A closure that hangs is abandoned.
  private static func deadline(_ time: Duration, _ body: @escaping @Sendable () async throws -> String) async -> Result<
    String, any Error
  > {
    await withCheckedContinuation { continuation in
      let once = Once(continuation)
      let timer = Task {
        try? await Task.sleep(for: time)
        once.resume(.failure(TooLate(time: time)))
      }
      Task {
        do { once.resume(.success(try await body())) } catch { once.resume(.failure(error)) }
        timer.cancel()
      }
    }
  }
}
