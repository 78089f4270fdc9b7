import TrunklineAppProtocol
import TrunklineBytes

/// Many nodes (docs/reference/protocol.md): the phone's own session stays at its node; a call of another node has a session
/// there.
///
/// | event | action |
/// |---|---|
/// | `call.wake`, or a push whose `gw` is another node's address | a further session there, by the wake token |
/// | the same for a known call | ignored; a call without a session gets its session |
/// | the snapshot lacks a call of another node | without a session: rings for 15 s more, stays connected until its media has been silent for 30 s |
/// | a session names a call: snapshot, offer | the call is that session's |
/// | a further session is refused with 4009 | its calls have no session: this device's newer session there reports their state |
/// | a further session is refused otherwise | its calls end |
/// | no call of a further session is left | closed with 1000 once the gateway has received all messages, after 15 s at the latest |
extension PhoneMachine {
  /// The session that a call belongs to.
  func socket(of call: Identifier?) -> Int {
    guard let number = call.flatMap({ calls[$0]?.link.session }), sessions.exists(number) else { return SessionTable.own }
    return number
  }
  func isOnline(_ call: Identifier) -> Bool { calls[call]?.link.hasNoSession != true && sessions.isOnline(socket(of: call)) }
  func hasSession(_ call: Identifier) -> Bool { sessions.exists(socket(of: call)) }

  mutating func belongs(_ id: Identifier, to number: Int) {
    let node = sessions.node(of: number)
    calls[id]?.link.belongs(to: number, at: node)
  }

  // MARK: a call that rings while its session is disconnected

  mutating func ringsAlone(of number: Int, _ now: Instant) {
    for id in liveCalls where socket(of: id) == number && calls[id]?.state == .ringing { calls[id]?.link.ringsAlone(at: now) }
  }

  /// A call that rings while its gateway is unreachable is ended for one whose gateway is reached: usually the same caller,
  /// through another node.
  mutating func makeRoom(_ now: Instant, _ out: inout [Action]) {
    guard calls.lines >= configuration.maximumCalls, let lost = calls.lineToGiveUp else { return }
    calls[lost]?.link.giveUp()
    ended(lost, .failed, now, &out)
  }

  /// The session is online again: its gateway reports the state of its calls.
  mutating func ringsOn(of number: Int) {
    for id in liveCalls where socket(of: id) == number { calls[id]?.link.ringsOn() }
  }

  // MARK: a call of another node

  mutating func woken(_ wake: CallWake, _ now: Instant, _ out: inout [Action]) {
    guard wake.v == 1, configuration.capabilities.contains("nodes"), ClientSession.Route.isAddress(wake.gw) else { return }
    let push = Push(call: wake.call, caller: wake.from ?? Self.unknownCaller, wake: wake.wake, gateway: wake.gw)
    // it is not a push: its delivery is not measured
    pushed(push, false, isMeasured: false, now, &out)
  }

  /// One session per node: a second one of this device would replace the first. A login makes a push's session a full one.
  mutating func openFurther(_ push: Push, _ now: Instant, _ out: inout [Action]) {
    if let there = sessions.furtherSession(at: push) {
      calls[push.call]?.link.assigned(to: there)
      if let token = login.token, let wake = sessions.wake(of: there), wake.call != push.call {
        sessions.logIn(there, token: token)
        ask(.authRefresh(AuthRefresh(auth: token.exposed, further: true)), call: nil, of: there, now, &out)
      }
      return probe(push.call, of: there, now, &out)
    }
    guard let number = sessions.openFurther(push, device: configuration.device) else { return }
    calls[push.call]?.link.assigned(to: number)
    give(.start, to: number, now, &out)
  }

  /// The phone's own session has reached a node: pushes for calls of another node get a session there.
  mutating func findNodes(_ now: Instant, _ out: inout [Action]) {
    for id in liveCalls {
      guard let call = calls[id], !call.hasMachine, call.link.session == SessionTable.own, let push = call.push,
        sessions.isOfOtherNode(push)
      else { continue }
      calls[id]?.link.notMissing()
      openFurther(push, now, &out)
    }
  }

  // MARK: the session's end

  mutating func refused(_ code: UInt16, of number: Int, _ now: Instant, _ out: inout [Action]) {
    let its = calls.live(of: number)
    sessions.remove(number)
    forgetQuestions(of: number)
    for id in its {
      guard code != CloseCode.replaced.rawValue else {
        calls[id]?.loseSession(at: now)
        continue
      }
      calls[id]?.ends(atLeastBecause: .auth)
      ended(id, .failed, now, &out)
    }
  }

  mutating func closeFurther(_ now: Instant, _ out: inout [Action]) {
    for number in sessions.furtherNumbers {
      if sessions.settle(number, hasCall: calls.hasLive(of: number), at: now) { finish(number, now, &out) }
    }
  }

  mutating func finish(_ number: Int, _ now: Instant, _ out: inout [Action]) {
    give(.finish, to: number, now, &out)
    sessions.remove(number)
    forgetQuestions(of: number)
  }

  /// Drops requests of this session, which will not be answered.
  mutating func forgetQuestions(of number: Int) {
    requests.sessionEnded { calls[$0].map { $0.link.session != number } ?? false }
  }
}
