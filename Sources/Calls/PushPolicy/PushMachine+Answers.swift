import Bytes

extension PushMachine {
  mutating func answered(_ id: AttemptID, _ answer: PushAnswer, at now: Instant, _ output: inout [PushAction]) {
    guard let attempt = attempts.removeValue(forKey: id) else { return }
    guard case .push(let key) = attempt else { return accessAnswered(answer, at: now, &output) }
    guard let push = pushes[key] else { return }
    pushes[key]?.lastStatus = answer.status
    let verdict = verdict(push.target.service, answer)
    if answer.status >= 500 {
      breakers[push.target.service, default: CircuitBreaker()].failed(at: now)
    } else {
      breakers[push.target.service, default: CircuitBreaker()].succeeded()
    }
    switch verdict {
    case .accepted: finish(key, .accepted, "accepted", at: now, &output)
    case .unregistered(let before, let reason): finish(key, .unregistered(before: before), reason, at: now, &output)
    case .wrongPlace(let reason): finish(key, .wrongPlace, reason, isFault: true, at: now, &output)
    case .refused(let reason, let isFault):
      if reason == APNsAnswer.tooManyTokens { freezeToken(at: now) }
      finish(key, .failed, reason, isFault: isFault, at: now, &output)
    case .retry(let how, let reason): retry(key, how, reason, at: now, &output)
    }
  }

  /// Nobody knows whether the service took it; the app tells two pushes of one call apart by the call's id.
  mutating func broke(_ id: AttemptID, _ reason: String, at now: Instant, _ output: inout [PushAction]) {
    guard let attempt = attempts.removeValue(forKey: id) else { return }
    guard case .push(let key) = attempt else { return accessAnswered(nil, at: now, &output) }
    guard let push = pushes[key] else { return }
    pushes[key]?.lastStatus = nil
    breakers[push.target.service, default: CircuitBreaker()].failed(at: now)
    // what the service, or our own library, said of our certificate does not change with the connection
    if PushAdvice.isCertificateRefused(reason), !PushAdvice.isGuess(reason) {
      return finish(key, .failed, "broke: " + reason, isFault: true, at: now, &output)
    }
    retry(key, .otherConnection, "broke: " + reason, at: now, &output)
  }

  private func verdict(_ service: PushService, _ answer: PushAnswer) -> PushVerdict {
    switch service {
    case .apns: APNsAnswer.verdict(answer)
    case .fcm: FCMAnswer.verdict(answer)
    case .webPush: WebPushAnswer.verdict(answer)
    }
  }

  private mutating func retry(
    _ key: PushKey, _ how: PushVerdict.Retry, _ reason: String, at now: Instant, _ output: inout [PushAction]
  ) {
    guard var push = pushes[key] else { return }
    guard push.attempts < Limits.attempts else {
      return finish(key, .failed, reason, isFault: PushAdvice.isCertificateRefused(reason), at: now, &output)
    }
    push.lastReason = reason
    var until = now
    switch how {
    case .otherConnection:
      if let connection = connection(push.target) { output.append(.retire(connection: connection)) }
    case .newToken:
      guard renewToken(push.target.service, at: now) else { return finish(key, .failed, reason, isFault: true, at: now, &output) }
    case .withoutCaller:
      guard push.withCaller else { return finish(key, .failed, reason, isFault: true, at: now, &output) }
      push.withCaller = false
    case .after(let seconds): until = now + .seconds(min(max(seconds, 0), 3600))
    }
    push.phase = .waiting(until: until)
    pushes[key] = push
    deadlines.schedule(key, at: push.nextMoment)
    if until <= now {
      send(key, at: now, &output)
    } else if until + Limits.retryMargin >= push.deadline || push.isCallOver {
      finish(key, .failed, reason, at: now, &output)
    }
  }

  private func connection(_ target: PushTarget) -> String? {
    switch target.service {
    case .apns: providers.apns?.connection(target.environment)
    case .fcm: providers.fcm.map { "fcm/\($0.project)" }
    case .webPush: nil
    }
  }

  private mutating func renewToken(_ service: PushService, at now: Instant) -> Bool {
    switch service {
    case .apns:
      guard case .key(_, _, let team)? = providers.apns?.credentials else { return false }
      return tokens[team, default: ProviderToken()].expire(at: unixSeconds(now))
    case .fcm:
      (access.text, access.ends) = (nil, 0)
      return true
    case .webPush: return false
    }
  }

  private mutating func freezeToken(at now: Instant) {
    guard case .key(_, _, let team)? = providers.apns?.credentials else { return }
    tokens[team, default: ProviderToken()].freeze(at: unixSeconds(now))
  }

  mutating func callOver(_ call: Identifier, at now: Instant, _ output: inout [PushAction]) {
    for key in ofCall[call] ?? [] {
      pushes[key]?.isCallOver = true
      if case .underWay = pushes[key]?.phase { continue }
      finish(key, .failed, "callOver", at: now, &output)
    }
  }

  /// A new key starts with a new token on new connections; pushes under way end on the old ones.
  mutating func replace(_ new: PushProviders, _ output: inout [PushAction]) {
    let environments = PushTarget.Environment.allCases
    let before = environments.compactMap { providers.apns?.connection($0) }
    let after = environments.compactMap { new.apns?.connection($0) }
    for old in before where !after.contains(old) { output.append(.retire(connection: old)) }
    if before != after { tokens.removeAll() }
    if providers.fcm?.account != new.fcm?.account || providers.fcm?.project != new.fcm?.project { access = AccessToken() }
    providers = new
  }

  mutating func timer(at now: Instant, _ output: inout [PushAction]) {
    while let key = deadlines.takeDue(at: now) {
      guard let push = pushes[key] else { continue }
      if now >= push.deadline {
        finish(key, .failed, push.lastReason.isEmpty ? "tooLate" : push.lastReason, at: now, &output)
      } else if case .waiting(let until) = push.phase, now >= until {
        send(key, at: now, &output)
      }
    }
  }
}
