import TrunklineAppProtocol
import TrunklineBytes

extension SessionMachine {
  mutating func perform(_ command: SessionCommand, _ now: Instant, _ output: inout Output) {
    switch command {
    case .welcome(let id, let calls, let gone, let live): welcomed(id, calls: calls, gone: gone, live: live, now, &output)
    case .send(let device, let message, let call):
      guard let id = sessionOfDevice[device], sessions[id]?.awaitsWelcome == nil else {
        stats.strayCommands += 1
        return
      }
      if case .callWake = message, sessions[id]?.info.knowsNodes != true {
        stats.strayCommands += 1
      } else if message.type.isNumbered {
        writeNumbered(message, call: call, on: id, now, &output)
      } else {
        write(message, call: call, on: id, &output)
      }
    case .notify(let device, let message, let request):
      guard let id = sessionOfDevice[device] else { return stats.strayCommands += 1 }
      if case .dirChanged(let changed) = message { sessions[id]?.directoryVersion = changed.version }
      guard sessions[id]?.awaitsWelcome == nil else { return }
      write(message, re: request, on: id, &output)
    case .directory(let scope, let version): directoryVersions[scope] = version
    case .answer(let token, let answer): self.answer(token, answer, now, &output)
    case .callLive(let device, let call):
      guard let id = sessionOfDevice[device] else { return }
      sessions[id]?.live.insert(call)
      sessions[id]?.resumableUntil = nil
    case .callDead(let device, let call):
      guard let id = sessionOfDevice[device], sessions[id]?.live.remove(call) != nil, sessions[id]?.live.isEmpty == true
      else { return }
      if sessions[id]?.connection == nil { sessions[id]?.resumableUntil = now + Limits.resumeWindow }
      endIfDue(id, now, &output)
      rearm(session: id, now)
    case .httpAnswer(let request, let answer): httpAnswered(request, answer, &output)
    case .wakesOver(let call): wakeUses.forget(call)
    case .revoke(let device): if let id = sessionOfDevice[device] { closeAfterCalls(id, .revoked, now, &output) }
    case .refuse(let id, let failure): refuse(id, failure, now, &output)
    case .replace(let device, let session): if sessionOfDevice[device] == session { end(session, .replaced, now, &output) }
    case .nodes(let list): nodes.replace(list)
    case .drain: drain(now, &output)
    }
  }

  private mutating func refuse(_ id: SessionID, _ failure: Failure, _ now: Instant, _ output: inout Output) {
    guard let session = sessions[id] else { return stats.strayCommands += 1 }
    let address = session.connection.flatMap { connections[$0]?.address }
    let (refusal, code): (SessionRefusal, CloseCode) =
      switch failure.code {
      case .overload: (.overload, .tryAgainLater)
      case .revoked: (.deviceRevoked, .revoked)
      default: (.tokenClaims, .authFailed)
      }
    stats.refusals[refusal, default: 0] += 1
    output.refusedLogins.append(
      RefusedLogin(
        refusal: refusal, why: failure.msg ?? "", address: address, user: session.device.user, device: session.device.device)
    )
    guard let request = session.awaitsWelcome, let connection = session.connection else {
      return closeAfterCalls(id, code, now, &output)
    }
    output.actions.append(.send(connection, ServerFrame(.err(failure), re: request).encoded()))
    stats.messagesSent += 1
    end(id, code, now, &output)
  }

  private mutating func welcomed(
    _ id: SessionID, calls: [CallSnapshot], gone: [GoneCall], live: Set<Identifier>, _ now: Instant,
    _ output: inout Output
  ) {
    guard var session = sessions[id], let request = session.awaitsWelcome, let connection = session.connection else {
      stats.strayCommands += 1
      return
    }
    // A reload removed its user, or an operator revoked the device: it may no longer receive what the welcome contains.
    if session.closesAfterCalls == .revoked { return refuse(id, .deviceRevoked(fatal: true), now, &output) }
    let early = session.early
    session.awaitsWelcome = nil
    session.early = []
    session.earlyBytes = 0
    session.live = live
    sessions[id] = session
    let frame = ServerFrame(.welcome(welcome(session, resumed: false, calls: calls, now)), re: request)
    output.actions.append(.send(connection, frame.encoded()))
    stats.messagesSent += 1
    for entry in gone { writeNumbered(.callGone(entry.over), call: entry.call, on: id, now, &output) }
    endIfDue(id, now, &output)
    for frame in early where sessions[id]?.connection == connection { received(frame, of: id, now, &output) }
    rearm(session: id, now)
  }

  /// Stores the answer and sends it on the socket where the request last arrived, if that socket is still open.
  mutating func answer(_ token: RequestToken, _ answer: RequestAnswer, _ now: Instant, _ output: inout Output) {
    guard let waiter = answers[token.device]?.answered(token.request, answer) else {
      stats.strayCommands += 1
      return
    }
    deliver(answer, to: token.request, waiter, now, &output)
  }

  mutating func deliver(
    _ answer: RequestAnswer, to request: Identifier, _ waiter: AnswerStore.Waiter, _ now: Instant,
    _ output: inout Output
  ) {
    guard let session = sessions[waiter.session] else { return }
    switch answer {
    // Never replayed: a client without the answer repeats the request.
    case .ok(let success):
      if session.connection == waiter.connection { write(.ok(success), re: request, on: waiter.session, &output) }
    case .err(let failure):
      if session.connection == waiter.connection { write(.err(failure), re: request, on: waiter.session, &output) }
    case .mediaAnswer(let media):
      guard let call = answers[session.device]?.call(request), !session.outbox.holdsAnswer(to: request) else { return }
      writeNumbered(.mediaAnswer(media), re: request, call: call, on: waiter.session, now, &output)
    }
  }
}
