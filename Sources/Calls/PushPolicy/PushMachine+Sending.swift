import HTTP
import TrunklineBytes

extension PushMachine {
  /// Builds and sends one attempt, or ends the push.
  mutating func send(_ key: PushKey, at now: Instant, _ output: inout [Action]) {
    guard let push = pushes[key] else { return }
    let service = push.target.service
    guard !push.isCallOver else { return finish(key, .failed, because: "callOver", at: now, &output) }
    guard push.attempts == 0 || now + Limits.retryMargin < push.deadline, now < push.deadline else {
      return finish(key, .failed, because: push.lastReason.isEmpty ? "tooLate" : push.lastReason, at: now, &output)
    }
    guard providers[service] != nil else { return finish(key, .failed, because: "noProvider", isFault: true, at: now, &output) }
    guard breakers[service]?.allows(at: now) ?? true else {
      return finish(key, .failed, because: "circuitOpen", at: now, &output)
    }
    breakers[service]?.attempted(at: now)
    let attempt = PushAttempt(
      key: key, target: push.target, content: push.content, withCaller: push.withCaller, now: unixSeconds(now),
      secondsLeft: (push.deadline - now).nanoseconds / 1_000_000_000, random: random)
    do {
      if let request = try providers[service]?.tokenRequest(at: attempt.now) {
        output.append(.send(newAttempt(.accessToken(service)), request))
      }
      switch try providers[service]?.request(attempt) {
      case .send(let request): dispatch(key, request, at: now, &output)
      case .waitForToken:
        pushes[key]?.phase = .waitingForToken
        deadlines.schedule(key, at: push.deadline)
      case .unusable, nil: finish(key, .failed, because: "unusable", at: now, &output)
      }
    } catch {
      finish(key, .failed, because: "unsigned: \(error)", isFault: true, at: now, &output)
    }
  }

  private mutating func dispatch(_ key: PushKey, _ request: HTTPClientRequest, at now: Instant, _ output: inout [Action]) {
    guard let push = pushes[key] else { return }
    let attempt = newAttempt(.push(key))
    pushes[key]?.attempts += 1
    pushes[key]?.phase = .underWay(attempt)
    deadlines.schedule(key, at: push.deadline)
    output.append(.send(attempt, request, since: push.attempts == 0 ? push.since : nil))
  }

  /// The access token came, or did not: nil is a connection that broke.
  mutating func tokenAnswered(
    _ service: PushService, _ answer: HTTPClientResponse?, at now: Instant, _ output: inout [Action]
  ) {
    let seconds = unixSeconds(now)
    let problem = providers[service]?.tokenAnswered(answer, at: seconds)
    for key in pushes.filter({ $0.value.target.service == service && $0.value.isWaitingForToken }).map(\.key) {
      if let problem {
        finish(key, .failed, because: problem, isFault: answer != nil, at: now, &output)
      } else {
        send(key, at: now, &output)
      }
    }
  }
}

extension PushMachine.Push {
  var isWaitingForToken: Bool { if case .waitingForToken = phase { true } else { false } }
}
