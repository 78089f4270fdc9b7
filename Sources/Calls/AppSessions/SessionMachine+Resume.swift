import JSONWebToken
import TrunklineAppProtocol
import TrunklineBytes

/// A session continues on a new socket, or at a node that does not know it.
extension SessionMachine {
  mutating func resume(
    _ resume: Hello.Resume, _ hello: Hello, answering request: Identifier, on id: ConnectionID, _ now: Instant,
    _ output: inout Output
  ) throws(RefusedHello) {
    let sid = SessionID(resume.sid)
    let claim = settings.cluster?.resumeTokens.read(resume.token)
    guard var session = sessions[sid], session.awaitsWelcome == nil, isGenuine(resume, claim, of: session),
      hello.device.id.isEmpty || session.device.device == hello.device.id,
      // Messages acked before are not kept: a client that has lost them needs the snapshot.
      resume.lastSeq >= session.outbox.ackedSeq, resume.lastSeq <= session.outbox.lastSeq,
      !session.live.isEmpty || !session.isExpired(unixMilliseconds: unixMilliseconds(now))
    else {
      guard let claim, claim.session == sid else { throw RefusedHello(.resumeUnknown, "cannot be resumed") }
      return try beginAgain(claim, hello, answering: request, on: id, now, &output)
    }
    if let old = session.connection {
      close(old, .replaced, now, &output)
      session = sessions[sid] ?? session
    }
    session.connection = id
    connectedCount += 1
    session.resumableUntil = nil
    // An announcement on the socket before may not have arrived.
    if session.info.onlyCall == nil { session.announceExpiry(after: unixMilliseconds(now)) }
    session.info.state = hello.state
    session.info.caps = Set(hello.caps)
    session.ackSentSeq = session.receivedSeq  // `replayFrom` acks as much
    sessions[sid] = session
    connections[id]?.phase = .bound(sid)
    stats.resumed += 1
    output.events.append(.connected(session.device, sid, session.info, resumed: true))
    acked(resume.lastSeq, by: sid, &output)
    let welcome = self.welcome(session, resumed: true, calls: nil, now)
    output.actions.append(.send(id, ServerFrame(.welcome(welcome), re: request).encoded()))
    let replay = sessions[sid]?.outbox.unacked ?? []
    for frame in replay { output.actions.append(.send(id, frame.encoded())) }
    stats.messagesSent += UInt64(1 + replay.count)
    rearm(connection: id)
    rearm(session: sid, now)
  }

  private func isGenuine(_ resume: Hello.Resume, _ claim: ResumeClaim?, of session: Session) -> Bool {
    if settings.cluster != nil { return claim?.session == session.id && claim?.device == session.device }
    return !session.resumeToken.isEmpty && constantTimeEqual(session.resumeToken, Array(resume.token.utf8))
  }

  /// A session that is unknown here, or that cannot be resumed where it was, continues as a new one: the token names its owner.
  private mutating func beginAgain(
    _ claim: ResumeClaim, _ hello: Hello, answering request: Identifier, on id: ConnectionID, _ now: Instant,
    _ output: inout Output
  ) throws(RefusedHello) {
    let device = claim.device
    guard hello.device.id.isEmpty || hello.device.id == device.device else {
      throw RefusedHello(.deviceMismatch, "the resume token is another device's", user: device.user)
    }
    guard settings.users.contains(device.user) else { throw RefusedHello(.unknownUser, "unknown user", user: device.user) }
    // A session that is here knows of every `auth.refresh`, its token only of those before the token was written.
    let known = sessions[claim.session].flatMap { $0.device == device ? $0 : nil }
    var expiresAt = max(claim.expiresAt, known?.expiresAt ?? 0)
    guard unixMilliseconds(now) < expiresAt else { throw RefusedHello(.tokenExpired, "the login has expired", user: device.user) }
    var info = DeviceInfo(hello)
    (info.accounts, info.onlyCall) = known.map { ($0.info.accounts, $0.info.onlyCall) } ?? (claim.accounts, claim.onlyCall)
    // The device is never looked for at a further session, even after it begins again.
    info.isFurther = known?.info.isFurther ?? claim.isFurther
    var callIsHere = false
    if let call = info.onlyCall {
      callIsHere = try isHere(claim.incarnation, now)
      if !callIsHere { try checkLocation(device, for: call, &output) }
      expiresAt = unixMilliseconds(now) + Limits.wakeSession.milliseconds
    }
    try begin(device, info, expiresAt: expiresAt, callIsHere: callIsHere, answering: request, on: id, now, &output)
    stats.continued += 1
  }

  func welcome(_ session: Session, resumed: Bool, calls: [CallSnapshot]?, _ now: Instant) -> Welcome {
    var welcome = Welcome(
      sid: session.id.text, resumeToken: resumeToken(of: session, now), resumed: resumed,
      replayFrom: session.receivedSeq + 1, time: unixMilliseconds(now), hb: Int(settings.heartbeat.milliseconds),
      ice: iceServers(of: session, now),
      calls: calls, dirVersion: directoryVersion(session), caps: settings.caps,
      push: settings.webPushKey.map { .init(webpush: $0) })
    if let cluster = settings.cluster, session.info.knowsNodes {
      welcome.caps.append(DeviceInfo.nodes)
      (welcome.node, welcome.url, welcome.spreadMs) = (cluster.node, cluster.url, spreadMilliseconds)
    }
    return welcome
  }

  /// With TURN credentials that are valid from `now` on.
  func iceServers(of session: Session, _ now: Instant) -> [ICEServer] {
    settings.ice + (settings.turn.map { [$0.server(for: session.device.user, unixMilliseconds: unixMilliseconds(now))] } ?? [])
  }

  private func resumeToken(of session: Session, _ now: Instant) -> String {
    guard let cluster = settings.cluster else { return String(decoding: session.resumeToken, as: UTF8.self) }
    // A session for one call lives as long as the call, regardless of its token's expiry.
    let isLogin = session.info.onlyCall == nil
    let expiresAt = isLogin ? session.expiresAt : unixMilliseconds(now) + Limits.wakeResume.milliseconds
    return cluster.resumeTokens.token(
      ResumeClaim(
        session: session.id, device: session.device, accounts: session.info.accounts, onlyCall: session.info.onlyCall,
        isFurther: session.info.isFurther, expiresAt: expiresAt))
  }
}

extension DeviceInfo {
  /// The description in a device's `hello`.
  init(_ hello: Hello) {
    self.init(
      platform: hello.device.platform, model: hello.device.model, os: hello.device.os, sdk: hello.device.sdk,
      caps: Set(hello.caps), state: hello.state)
  }
}
