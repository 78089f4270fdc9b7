import TrunklineAppProtocol
import TrunklineBytes

extension SessionMachine {
  mutating func received(_ id: ConnectionID, _ now: Instant) {
    connections[id]?.lastReceived = now
    connections[id]?.isPinged = false
    connections[id]?.unansweredSince = nil
  }

  mutating func frameReceived(_ bytes: [UInt8], on id: ConnectionID, _ now: Instant, _ output: inout Output) {
    guard let phase = connections[id]?.phase, phase != .closing else { return }
    received(id, now)
    stats.messagesReceived += 1
    let allowed = connections[id]?.messages.consume(1, at: now) ?? false
    guard allowed, connections[id]?.bytes.consume(Double(bytes.count), at: now) ?? false else {
      stats.rateLimited += 1
      return close(id, .policy, now, &output)
    }
    let frame: ClientFrame
    do {
      frame = try ClientFrame(decoding: bytes)
    } catch {
      return close(id, error.closeCode, now, &output)
    }
    guard case .bound(let session) = phase else { return helloReceived(frame, on: id, now, &output) }
    if sessions[session]?.awaitsWelcome != nil { return hold(frame, bytes: bytes.count, of: session, on: id, now, &output) }
    received(frame, of: session, now, &output)
  }

  /// Holds a frame until control has welcomed or refused the session.
  private mutating func hold(
    _ frame: ClientFrame, bytes: Int, of session: SessionID, on id: ConnectionID, _ now: Instant, _ output: inout Output
  ) {
    guard let known = sessions[session], known.early.count < Limits.earlyMessages,
      known.earlyBytes + bytes <= Limits.earlyBytes
    else {
      stats.rateLimited += 1
      return close(id, .policy, now, &output)
    }
    sessions[session]?.early.append(frame)
    sessions[session]?.earlyBytes += bytes
  }

  mutating func received(_ frame: ClientFrame, of session: SessionID, _ now: Instant, _ output: inout Output) {
    if let ack = frame.ack { acked(ack, by: session, &output) }
    guard isNext(frame, of: session, now, &output) else { return }
    switch frame.body {
    case .message(let message): messageReceived(message, frame, from: session, now, &output)
    case .malformed(let type, let rule):
      stats.malformed += 1
      if type.isRequest { write(.err(Failure(.badRequest, msg: rule)), re: frame.id, on: session, &output) }
    case .unknown:
      stats.unknown += 1
      write(.err(Failure(.unsupported)), re: frame.id, on: session, &output)
    }
  }

  mutating func acked(_ seq: Int, by id: SessionID, _ output: inout Output) {
    guard let device = sessions[id]?.device, let messages = sessions[id]?.outbox.ack(seq) else {
      stats.malformed += 1
      return
    }
    for message in messages {
      switch message {
      case .offer(let call): output.events.append(.offerAcked(device, id, call: call))
      case .over(let call): output.events.append(.overAcked(device, id, call: call))
      }
    }
  }

  /// Checks the numbering: false if the message was received before, or is too far ahead.
  private mutating func isNext(_ frame: ClientFrame, of id: SessionID, _ now: Instant, _ output: inout Output) -> Bool {
    let isNumbered =
      switch frame.body {
      case .message(let message): message.type.isNumbered
      case .malformed(let type, _): type.isNumbered
      case .unknown: true  // its sender may number it: a later version, or a type that is reserved
      }
    guard isNumbered, let seq = frame.seq, let received = sessions[id]?.receivedSeq, let acked = sessions[id]?.ackSentSeq
    else { return true }
    guard seq <= received + 1 else {
      end(id, .sequenceGap, now, &output)
      return false
    }
    if seq <= received {
      stats.duplicates += 1
      sessions[id]?.ackSentSeq = min(acked, received - 1)  // its sender lacks our ack
    } else {
      sessions[id]?.receivedSeq = seq
    }
    if sessions[id]?.ackDue == nil {
      sessions[id]?.ackDue = now + Limits.ackDelay
      rearm(session: id, now)
    }
    return seq > received
  }

  private mutating func messageReceived(
    _ message: ClientMessage, _ frame: ClientFrame, from id: SessionID, _ now: Instant, _ output: inout Output
  ) {
    switch message {
    case .ping: write(.pong, on: id, &output)
    case .pong, .ack, .err, .bye: break
    case .hello: write(.err(Failure(.badRequest, msg: "hello comes once")), re: frame.id, on: id, &output)
    default:
      if message.type.isRequest, let request = frame.id {
        requestReceived(message, request: request, call: frame.call, from: id, now, &output)
      } else if let session = sessions[id], refusal(message, call: frame.call, of: session, now) == nil {
        output.events.append(.notification(session.device, id, message, call: frame.call))
      }
    }
  }

  /// Why a message of this session is not handled: its token has expired or its user was removed, and no live call covers it.
  private func refusal(_ message: ClientMessage, call: Identifier?, of session: Session, _ now: Instant) -> Failure? {
    if let only = session.info.onlyCall, message.type != .authRefresh, call != only {
      return Failure(.auth, msg: "a wake token permits only messages of its call")
    }
    if let call, session.live.contains(call) { return nil }
    if session.closesAfterCalls == .revoked { return Failure(.revoked) }
    if message.type != .authRefresh, session.isExpired(unixMilliseconds: unixMilliseconds(now)) {
      return Failure(.auth, msg: "the token has expired")
    }
    return nil
  }

  private mutating func requestReceived(
    _ message: ClientMessage, request: Identifier, call: Identifier?, from id: SessionID, _ now: Instant,
    _ output: inout Output
  ) {
    guard let session = sessions[id], let connection = session.connection else { return }
    if message.type.isRead {
      guard !message.type.isOfDirectory || settings.caps.contains([.dirGet, .dirFind].contains(message.type) ? "dir" : "hist")
      else {
        return write(.err(Failure(.unsupported)), re: request, on: id, &output)
      }
      if let refusal = refusal(message, call: call, of: session, now) {
        return write(.err(refusal), re: request, on: id, &output)
      }
      let token = RequestToken(device: session.device, request: request)
      return output.events.append(.request(session.device, id, token, message, call: call))
    }
    let waiter = AnswerStore.Waiter(session: id, connection: connection)
    if case .authRefresh(let refresh) = message {
      // A repeat has no further effect, so the answer is not stored.
      let result = refusal(message, call: call, of: session, now).map(RequestAnswer.err) ?? refreshed(refresh, id, now, &output)
      deliver(result, to: request, waiter, now, &output)
      if case .ok = result { upgrade(id, isFurther: refresh.further == true, &output) }
      return
    }
    switch answers[session.device, default: AnswerStore()].arrived(request, of: call, from: waiter, at: now) {
    case .full:
      stats.unkept += 1
      let text = "\(Limits.answersPerDevice) requests of this device wait for their answers"
      output.refusedRequests.append(RefusedAppRequest(device: session.device, type: message.type, why: text))
      return write(.err(Failure(.tooMany, msg: text)), re: request, on: id, &output)
    case .pending:
      stats.repeats += 1
      return
    case .answered(let answer):
      stats.repeats += 1
      return deliver(answer, to: request, waiter, now, &output)
    case .new: break
    }
    let token = RequestToken(device: session.device, request: request)
    if let refusal = refusal(message, call: call, of: session, now) { return answer(token, .err(refusal), now, &output) }
    switch message {
    case .deviceState(let d):
      sessions[id]?.info.state = d.state
      if session.info.state != d.state { output.events.append(.stateChanged(session.device, d.state)) }
      answer(token, .ok, now, &output)
    default: output.events.append(.request(session.device, id, token, message, call: call))
    }
  }

  private mutating func refreshed(
    _ refresh: AuthRefresh, _ id: SessionID, _ now: Instant, _ output: inout Output
  ) -> RequestAnswer {
    guard let session = sessions[id], let connection = session.connection else { return .err(Failure(.server)) }
    guard connections[connection]?.refreshes.consume(1, at: now) == true else {
      return .err(Failure(.tooMany, msg: "auth.refresh came too often"))
    }
    do {
      let claims = try verify(refresh.auth, device: session.device.device, now, &output)
      guard claims.sub == session.device.user else { return .err(Failure(.auth, msg: "another user")) }
      let expiresAt = claims.exp * 1_000 + Limits.expiryLeewayMilliseconds
      // One end is announced once, however often the same token is sent; that of a push's session was never announced.
      if expiresAt != session.expiresAt || session.info.onlyCall != nil {
        let unix = unixMilliseconds(now)
        sessions[id]?.expiresAt = expiresAt
        sessions[id]?.announceExpiry(after: unix)
      }
      if let accounts = claims.acct, !accounts.isEmpty { sessions[id]?.info.accounts = accounts }
      if let grant = try? claims.grant?.get() { output.events.append(.granted(session.device, id, grant)) }
      rearm(session: id, now)
      return settings.turn == nil ? .ok : .ok(Success(ice: iceServers(of: session, now)))
    } catch {
      stats.refusals[error.refusal, default: 0] += 1
      let address = session.connection.flatMap { connections[$0]?.address }
      output.refusedLogins.append(error.login(from: address, device: session.device.device))
      guard error.refusal == .keysUnavailable else { return .err(Failure(.auth, msg: error.message)) }
      var failure = failure(error)
      failure.fatal = nil
      return .err(failure)
    }
  }
}
