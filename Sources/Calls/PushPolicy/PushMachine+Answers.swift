import HTTP
import TrunklineBytes

extension PushMachine {
  mutating func answered(_ id: AttemptID, _ answer: HTTPClientResponse, at now: Instant, _ output: inout [Action]) {
    switch attempts.removeValue(forKey: id) {
    case .push(let key): answered(key, answer, at: now, &output)
    case .accessToken(let service): tokenAnswered(service, answer, at: now, &output)
    case nil: break
    }
  }

  private mutating func answered(_ key: PushKey, _ answer: HTTPClientResponse, at now: Instant, _ output: inout [Action]) {
    guard let service = pushes[key]?.target.service else { return }
    let seconds = unixSeconds(now)
    pushes[key]?.lastStatus = answer.status
    if answer.status >= 500 {
      breakers[service, default: CircuitBreaker(Limits.breaker)].failed(at: now)
    } else {
      breakers[service]?.succeeded()
    }
    switch service.provider.verdict(answer) {
    case .accepted: finish(key, .accepted, because: "accepted", at: now, &output)
    case .unregistered(let before, let reason): finish(key, .unregistered(before: before), because: reason, at: now, &output)
    case .tokenMismatch(let reason): finish(key, .tokenMismatch, because: reason, isFault: true, at: now, &output)
    case .refused(let reason, let isFault, let freezesToken):
      if freezesToken { providers[service]?.freezeToken(at: seconds) }
      finish(key, .failed, because: reason, isFault: isFault, at: now, &output)
    case .retry(let how, let reason): retry(key, how, because: reason, at: now, &output)
    }
  }

  mutating func broke(_ id: AttemptID, because reason: String, isOfOld: Bool, at now: Instant, _ output: inout [Action]) {
    switch attempts.removeValue(forKey: id) {
    case .push(let key): broke(key, because: reason, isOfOld: isOfOld, at: now, &output)
    case .accessToken(let service): tokenAnswered(service, nil, at: now, &output)
    case nil: break
    }
  }

  /// The service may have accepted it nevertheless; an app recognises two pushes of one call by the call's id.
  private mutating func broke(_ key: PushKey, because reason: String, isOfOld: Bool, at now: Instant, _ output: inout [Action]) {
    guard let service = pushes[key]?.target.service else { return }
    pushes[key]?.lastStatus = nil
    // A firewall forgets one connection, and all requests on it break: only the retry shows whether the service works.
    if isOfOld {
      breakers[service]?.undecided(at: now)
    } else {
      breakers[service, default: CircuitBreaker(Limits.breaker)].failed(at: now)
    }
    // A refusal of our certificate, by the service or our own library, does not change with the connection.
    if PushAdvice.isCertificateRefused(reason), !PushAdvice.isGuess(reason) {
      return finish(key, .failed, because: "broke: " + reason, isFault: true, at: now, &output)
    }
    retry(key, .otherConnection, because: "broke: " + reason, at: now, &output)
  }

  private mutating func retry(
    _ key: PushKey, _ how: PushVerdict.Retry, because reason: String, at now: Instant, _ output: inout [Action]
  ) {
    guard var push = pushes[key] else { return }
    guard push.attempts < Limits.attempts else {
      return finish(key, .failed, because: reason, isFault: PushAdvice.isCertificateRefused(reason), at: now, &output)
    }
    push.lastReason = reason
    var until = now
    switch how {
    case .otherConnection:
      let connection = providers[push.target.service]?.connection(push.target.environment)
      if let connection { output.append(.retire(connection: connection)) }
    case .newToken:
      let seconds = unixSeconds(now)
      guard providers[push.target.service]?.renewToken(at: seconds) ?? false else {
        return finish(key, .failed, because: reason, isFault: true, at: now, &output)
      }
    case .withoutCaller:
      guard push.withCaller else { return finish(key, .failed, because: reason, isFault: true, at: now, &output) }
      push.withCaller = false
    case .after(let seconds): until = now + .seconds(min(max(seconds, 0), 3600))
    }
    push.phase = .waiting(until: until)
    pushes[key] = push
    deadlines.schedule(key, at: push.nextMoment)
    if until <= now {
      send(key, at: now, &output)
    } else if until + Limits.retryMargin >= push.deadline || push.isCallOver {
      finish(key, .failed, because: reason, at: now, &output)
    }
  }

  mutating func callOver(_ call: Identifier, at now: Instant, _ output: inout [Action]) {
    for key in ofCall[call] ?? [] {
      pushes[key]?.isCallOver = true
      if case .underWay = pushes[key]?.phase { continue }
      finish(key, .failed, because: "callOver", at: now, &output)
    }
  }

  /// A new key starts with a new token on new connections; open pushes end on the old ones.
  mutating func replace(_ new: PushProviders, _ output: inout [Action]) {
    for old in providers.connections.subtracting(new.connections) { output.append(.retire(connection: old)) }
    var new = new
    new.adoptTokens(of: providers)
    providers = new
  }

  mutating func timer(at now: Instant, _ output: inout [Action]) {
    while let key = deadlines.popDue(at: now) {
      guard let push = pushes[key] else { continue }
      if now >= push.deadline {
        finish(key, .failed, because: push.lastReason.isEmpty ? "tooLate" : push.lastReason, at: now, &output)
      } else if case .waiting(let until) = push.phase, now >= until {
        send(key, at: now, &output)
      }
    }
  }
}
