import Bytes
import JSONWebToken

/// FCM's access token, asked for at the first push and again before it ends.
struct AccessToken {
  var text: String?
  var ends: Int64 = 0
  var isAsked = false
  /// Renewed this long before its end, so that no push waits for it.
  static let margin: Int64 = 300
}

extension PushMachine {
  /// Builds and sends one attempt, or ends the push.
  mutating func send(_ key: PushKey, at now: Instant, _ output: inout [PushAction]) {
    guard let push = pushes[key] else { return }
    guard !push.isCallOver else { return finish(key, .failed, "callOver", at: now, &output) }
    guard push.attempts == 0 || now + Limits.retryMargin < push.deadline, now < push.deadline else {
      return finish(key, .failed, push.lastReason.isEmpty ? "tooLate" : push.lastReason, at: now, &output)
    }
    switch breakers[push.target.service, default: CircuitBreaker()].allows(at: now) {
    case false: return finish(key, .failed, "circuitOpen", at: now, &output)
    case true: break
    }
    do {
      switch push.target.service {
      case .apns: try sendAPNs(key, push, at: now, &output)
      case .fcm: try sendFCM(key, push, at: now, &output)
      case .webPush: try sendWebPush(key, push, at: now, &output)
      }
    } catch {
      finish(key, .failed, "unsigned: \(error)", isFault: true, at: now, &output)
    }
  }

  private mutating func sendAPNs(_ key: PushKey, _ push: Push, at now: Instant, _ output: inout [PushAction]) throws(KeyError) {
    guard let provider = providers.apns else { return finish(key, .failed, "noProvider", isFault: true, at: now, &output) }
    var bearer: String?
    if case .key(let signer, _, let team) = provider.credentials {
      bearer = try tokens[team, default: ProviderToken()].current(signer, team: team, at: unixSeconds(now))
    }
    let id = Self.identifier(of: key)
    dispatch(
      key, provider.request(push.content, to: push.target, id: id, bearer: bearer, withCaller: push.withCaller), at: now, &output)
  }

  private mutating func sendFCM(_ key: PushKey, _ push: Push, at now: Instant, _ output: inout [PushAction]) throws(KeyError) {
    guard let provider = providers.fcm else { return finish(key, .failed, "noProvider", isFault: true, at: now, &output) }
    let seconds = unixSeconds(now)
    if seconds >= access.ends - AccessToken.margin, !access.isAsked {
      let request = try provider.tokenRequest(at: seconds)
      access.isAsked = true
      output.append(.send(newAttempt(.accessToken), request))
    }
    guard let bearer = access.text, seconds < access.ends else {
      pushes[key]?.phase = .waitingForToken
      deadlines.schedule(key, at: push.deadline)
      return
    }
    dispatch(key, provider.request(push.content, to: push.target, bearer: bearer, withCaller: push.withCaller), at: now, &output)
  }

  private mutating func sendWebPush(_ key: PushKey, _ push: Push, at now: Instant, _ output: inout [PushAction]) throws(KeyError)
  {
    guard let provider = providers.webPush else { return finish(key, .failed, "noProvider", isFault: true, at: now, &output) }
    let left = (push.deadline - now).nanoseconds / 1_000_000_000
    let request = try provider.request(
      push.content, to: push.target, withCaller: push.withCaller, at: unixSeconds(now), seconds: left, random: random)
    dispatch(key, request, at: now, &output)
  }

  private mutating func dispatch(_ key: PushKey, _ request: PushRequest?, at now: Instant, _ output: inout [PushAction]) {
    guard var request, let push = pushes[key] else { return finish(key, .failed, "unusable", isFault: false, at: now, &output) }
    let attempt = newAttempt(.push(key))
    if push.attempts == 0 { request.since = push.since }
    pushes[key]?.attempts += 1
    pushes[key]?.phase = .underWay(attempt)
    deadlines.schedule(key, at: push.deadline)
    output.append(.send(attempt, request))
  }

  /// The access token came, or did not.
  mutating func accessAnswered(_ answer: PushAnswer?, at now: Instant, _ output: inout [PushAction]) {
    access.isAsked = false
    let waiting = pushes.filter { $0.value.target.service == .fcm && $0.value.isWaitingForToken }.map(\.key)
    guard let answer, let token = FCMProvider.accessToken(answer) else {
      let reason = answer.map { "accessToken: status \($0.status)" } ?? "accessToken: broke"
      // An old token that still holds is used on.
      if access.text == nil || unixSeconds(now) >= access.ends {
        for key in waiting { finish(key, .failed, reason, isFault: answer != nil, at: now, &output) }
      }
      return
    }
    (access.text, access.ends) = (token.text, unixSeconds(now) + token.seconds)
    for key in waiting { send(key, at: now, &output) }
  }
}

extension PushMachine.Push {
  var isWaitingForToken: Bool { if case .waitingForToken = phase { true } else { false } }
}
