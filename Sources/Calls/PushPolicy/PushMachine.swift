import CTrunklineOpenSSL
public import TrunklineBytes

/// Every open push: the requests to send, the meaning of an answer, the retries. No clock, no socket.
///
/// | a push is | wake | answer | broke | callOver | timer |
/// |---|---|---|---|---|---|
/// | new | sent, or waits for an access token, or ends | – | – | – | – |
/// | waiting for a token | ignored (same key) | – | – | ends | ends when too late |
/// | under way | ignored (same key) | ends, or retry | retry, or ends | continues, without a retry | ends when too late |
/// | waiting to retry | ignored (same key) | – | – | ends | sent, or ends when too late |
///
/// Cost: a dictionary look-up and O(log pushes) per input, a signature per APNs team and 50 minutes. Owned by one thread.
public struct PushMachine: Sendable {
  struct Push {
    enum Phase { case waitingForToken, underWay(AttemptID), waiting(until: Instant) }
    var target: PushTarget
    var content: CallPush
    var deadline: Instant
    var began: Instant
    var since: Instant?
    var attempts = 0
    var phase: Phase
    var withCaller = true
    var isCallOver = false
    var lastReason = ""
    var lastStatus: Int?
    var nextMoment: Instant { if case .waiting(let until) = phase { min(until, deadline) } else { deadline } }
  }

  var pushes: [PushKey: Push] = [:]
  /// The next deadline of each push; `ofCall`: the pushes of a call, for its end.
  var deadlines = DeadlineQueue<PushKey>()
  var ofCall: [Identifier: [PushKey]] = [:]
  var attempts: [AttemptID: Attempt] = [:]
  enum Attempt { case push(PushKey), accessToken(PushService) }
  var providers: PushProviders
  var breakers: [PushService: CircuitBreaker] = [:]
  private var nextAttempt: UInt64 = 1
  let random: RandomSource
  /// Seconds since 1970 at `Instant.zero`, updated by the thread that watches the wall clock.
  public var unixSecondsAtZero: Int64

  public init(providers: PushProviders, random: RandomSource, unixSecondsAtZero: Int64) {
    (self.providers, self.random, self.unixSecondsAtZero) = (providers, random, unixSecondsAtZero)
  }

  /// Pushes without a report yet.
  public var pending: Int { pushes.count }
  /// The services whose circuit breaker is open, for an alarm metric.
  public var openCircuits: [PushService] { PushService.allCases.filter { breakers[$0]?.isOpen == true } }

  public mutating func handle(_ input: Input, at now: Instant, into output: inout [Action]) {
    switch input {
    case .wake(let key, let target, let content, let deadline, let since):
      guard pushes[key] == nil else { return }
      let push = Push(target: target, content: content, deadline: deadline, began: now, since: since, phase: .waitingForToken)
      wake(key, push, at: now, &output)
    case .answered(let attempt, let answer): answered(attempt, answer, at: now, &output)
    case .broke(let attempt, let reason, let isOfOld): broke(attempt, because: reason, isOfOld: isOfOld, at: now, &output)
    case .callOver(let call): callOver(call, at: now, &output)
    case .providers(let providers): replace(providers, &output)
    case .timer: timer(at: now, &output)
    }
  }

  /// The process ends: every push is reported.
  public mutating func abandon(at now: Instant, into output: inout [Action]) {
    for key in Array(pushes.keys) { finish(key, .failed, because: "stopped", at: now, &output) }
  }

  /// When `timer` is due; nil if nothing waits.
  public var nextDeadline: Instant? { deadlines.next }

  func unixSeconds(_ now: Instant) -> Int64 { unixSecondsAtZero + now.nanoseconds / 1_000_000_000 }

  mutating func newAttempt(_ attempt: Attempt) -> AttemptID {
    let id = AttemptID(raw: nextAttempt)
    nextAttempt += 1
    attempts[id] = attempt
    return id
  }

  mutating func finish(
    _ key: PushKey, _ outcome: PushReport.Outcome, because reason: String, isFault: Bool = false, at now: Instant,
    _ output: inout [Action]
  ) {
    guard let push = pushes.removeValue(forKey: key) else { return }
    deadlines.cancel(key)
    ofCall[key.call]?.removeAll { $0 == key }
    if ofCall[key.call]?.isEmpty ?? false { ofCall[key.call] = nil }
    if case .underWay(let attempt) = push.phase { attempts[attempt] = nil }
    output.append(
      .finished(
        PushReport(
          key: key, target: push.target, outcome: outcome, reason: reason, isFault: isFault, attempts: push.attempts,
          elapsed: now - push.began, status: push.lastStatus)))
  }

  private mutating func wake(_ key: PushKey, _ push: Push, at now: Instant, _ output: inout [Action]) {
    let isRoomLeft = pushes.count < Limits.pushesInFlight
    pushes[key] = push
    ofCall[key.call, default: []].append(key)
    deadlines.schedule(key, at: push.nextMoment)
    guard isRoomLeft else { return finish(key, .failed, because: "tooMany", at: now, &output) }
    send(key, at: now, &output)
  }

  /// `apns-id`: the same for every attempt at one (call, device), without revealing either.
  public static func identifier(of key: PushKey) -> Identifier {
    let text = Array("\(key.call)/\(key.user)/\(key.device)".utf8)
    var hash = [UInt8](repeating: 0, count: 32)
    SHA256(text, text.count, &hash)
    let words = [hash[0..<8], hash[8..<16]].map { $0.reduce(UInt64(0)) { $0 << 8 | UInt64($1) } }
    return Identifier(
      high: words[0] & 0xffff_ffff_ffff_0fff | 0x8000, low: words[1] & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000)
  }
}
