import TrunklineAppProtocol
import TrunklineBytes

/// Where sessions go that must leave this node: docs/reference/protocol.md, Many nodes.
extension SessionMachine {
  /// The answer to a refused `hello`. In a cluster an overload and a drain name another node.
  mutating func failure(_ refused: RefusedHello) -> Failure {
    var failure = Failure(refused.code, reason: refused.reason, msg: refused.message, fatal: true, url: refused.url)
    if refused.refusal == .keysUnavailable {
      // Another node fetches from the same server.
      let wait = Int(Limits.retryKeys.milliseconds)
      failure.retryMs = wait + random(below: wait)
      return failure
    }
    guard let cluster = settings.cluster, refused.code == .overload else { return failure }
    let isOtherNode = refused.refusal == .otherNode
    if !isOtherNode { failure.url = nodes.next(besides: cluster.incarnation) }
    // A phone that rings waits less long than an idle one.
    let wait = Int((isOtherNode ? Limits.retryWake : Limits.retry).milliseconds)
    failure.retryMs = failure.url == nil ? wait + random(below: wait) : 0
    return failure
  }

  /// The `bye` of a session that a drain ends.
  mutating func draining() -> Bye {
    let bye = Bye(code: Int(CloseCode.draining.rawValue))
    guard let cluster = settings.cluster else { return bye }
    return Bye(code: bye.code, url: nodes.next(besides: cluster.incarnation), afterMs: 0)
  }

  /// A single node closes all sessions without a call at once: there is no other node for them. In a cluster sessions are closed
  /// in a random order and at a rate that the other nodes can accept; a session that has a call when its slot comes is closed
  /// after the call.
  mutating func drain(_ now: Instant, _ output: inout Output) {
    defer { isDraining = true }
    guard settings.cluster != nil else {
      for id in Array(sessions.keys) { closeAfterCalls(id, .draining, now, &output) }
      return
    }
    guard !isDraining else { return }
    leaving = Array(sessions.keys).sorted { $0.text < $1.text }
    for index in leaving.indices.reversed() where index > 0 { leaving.swapAt(index, random(below: index + 1)) }
    let steps = max(1, Int(Limits.spread.milliseconds / Limits.drainStep.milliseconds))
    let rate = Limits.spreadPerSecond * Int(Limits.drainStep.milliseconds) / 1_000
    leavingAtOnce = max(rate, (leaving.count + steps - 1) / steps)
    sendAway(now, &output)
  }

  /// One step of the drain.
  mutating func sendAway(_ now: Instant, _ output: inout Output) {
    for _ in 0..<min(leavingAtOnce, leaving.count) { closeAfterCalls(leaving.removeLast(), .draining, now, &output) }
    if !leaving.isEmpty { timers.schedule(.drain, at: now + Limits.drainStep) }
  }

  /// `welcome.spreadMs`.
  var spreadMilliseconds: Int { min(sessions.count * 1_000 / Limits.spreadPerSecond, Int(Limits.spread.milliseconds)) }

  private func random(below count: Int) -> Int { Int(random.next() % UInt64(max(1, count))) }
}
