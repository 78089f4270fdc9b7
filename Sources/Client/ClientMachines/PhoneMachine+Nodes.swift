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
  struct Further: Sendable {
    var session: ClientSession
    /// The push that opened the session, for its call only; nil once a login has made it a full session.
    var wake: Push?
    /// The address at which it was opened.
    let address: String?
    var onlineAt: Instant?
    /// Set when no call of the session is left.
    var closesAt: Instant?
  }

  /// The session that a call belongs to.
  func socket(of call: Identifier?) -> Int {
    guard let number = call.flatMap({ calls[$0]?.socket }), further[number] != nil else { return 0 }
    return number
  }
  func isOnline(_ call: Identifier) -> Bool {
    guard calls[call]?.hasNoSession != true else { return false }
    let number = socket(of: call)
    return number == 0 ? session?.isOnline == true : further[number]?.session.isOnline == true
  }
  func hasSession(_ call: Identifier) -> Bool { socket(of: call) != 0 || session != nil }
  func node(of number: Int) -> String? { number == 0 ? session?.node : further[number]?.session.node }

  mutating func belongs(_ id: Identifier, to number: Int) {
    if calls[id]?.hasNoSession == true { calls[id]?.watchdog = nil }
    calls[id]?.socket = number
    let node = node(of: number)
    calls[id]?.node = node
    calls[id]?.hasNoSession = false
    calls[id]?.ringsAlone = false
    calls[id]?.isMissing = false
  }

  mutating func loseSession(_ id: Identifier, _ now: Instant) {
    guard let entry = calls[id], !entry.isOver, !entry.hasNoSession else { return }
    calls[id]?.hasNoSession = true
    calls[id]?.socket = 0
    if entry.call?.state != .connected {
      calls[id]?.watchdog = now + Limits.snapshotTime
    } else if entry.restartsOnline {
      calls[id]?.watchdog = now + Limits.strayTime
    }
  }

  // MARK: a call that rings while its session is disconnected

  mutating func ringsAlone(of number: Int, _ now: Instant) {
    for id in liveCalls where socket(of: id) == number && calls[id]?.call?.state == .ringing && calls[id]?.watchdog == nil {
      calls[id]?.ringsAlone = true
      calls[id]?.watchdog = now + Limits.ringsAloneTime
    }
  }

  /// A call that rings while its gateway is unreachable is ended for one whose gateway is reached: usually the same caller,
  /// through another node.
  mutating func makeRoom(_ now: Instant, _ out: inout [Action]) {
    guard lines >= configuration.maximumCalls else { return }
    let lost = liveCalls.first {
      guard let entry = calls[$0] else { return false }
      return entry.call?.state == .ringing && entry.tappedAt == nil && (entry.hasNoSession || entry.ringsAlone)
    }
    guard let lost else { return }
    calls[lost]?.isGivenUp = true
    ended(lost, .failed, now, &out)
  }

  /// The session is online again: its gateway reports the state of its calls.
  mutating func ringsOn(of number: Int) {
    for id in liveCalls where socket(of: id) == number && calls[id]?.ringsAlone == true {
      calls[id]?.ringsAlone = false
      // also for a call that was answered meanwhile: its tap has its own deadline
      calls[id]?.watchdog = nil
    }
  }

  // MARK: a call of another node

  /// True if the phone's own session is at another node than this push's call; false while that is unknown.
  func isOfOtherNode(_ push: Push) -> Bool {
    guard configuration.capabilities.contains("nodes"), let there = push.gateway, ClientSession.Route.isAddress(there),
      let here = session?.home ?? wake?.gateway
    else { return false }
    return here != there
  }

  func hasRoom(_ push: Push) -> Bool {
    guard let there = session(at: push) else { return further.count < Limits.furtherSessions }
    return token != nil || further[there]?.wake == nil || further[there]?.wake?.call == push.call
  }

  private func session(at push: Push) -> Int? {
    further.keys.sorted().first { further[$0]?.address == push.gateway || further[$0]?.session.home == push.gateway }
  }

  mutating func woken(_ wake: CallWake, _ now: Instant, _ out: inout [Action]) {
    guard wake.v == 1, configuration.capabilities.contains("nodes"), ClientSession.Route.isAddress(wake.gw) else { return }
    let push = Push(call: wake.call, caller: wake.from ?? Self.unknownCaller, wake: wake.wake, gateway: wake.gw)
    let isNews = calls[push.call] == nil
    pushed(push, false, now, &out)
    // it was not a push: its delivery is not measured
    if isNews { calls[push.call]?.pushedAt = nil }
  }

  /// One session per node: a second one of this device would replace the first. A login makes a push's session a full one.
  mutating func openFurther(_ push: Push, _ now: Instant, _ out: inout [Action]) {
    if let there = session(at: push) {
      calls[push.call]?.socket = there
      if let token, further[there]?.wake != nil, further[there]?.wake?.call != push.call {
        further[there]?.wake = nil
        further[there]?.session.use(token: token)
        ask(.authRefresh(AuthRefresh(auth: token.exposed, further: true)), call: nil, of: there, now, &out)
      }
      return probe(push.call, of: there, now, &out)
    }
    guard further.count < Limits.furtherSessions else { return }
    var settings = ClientSession.Configuration(
      token: "", device: configuration.device, capabilities: configuration.capabilities)
    (settings.wake, settings.gateway, settings.state) = (push.wake, push.gateway, isForeground ? .fg : .bg)
    settings.isFurther = true
    furtherCount += 1
    let session = ClientSession(configuration: settings, random: random)
    further[furtherCount] = Further(session: session, wake: push, address: push.gateway)
    calls[push.call]?.socket = furtherCount
    give(.start, to: furtherCount, now, &out)
  }

  /// The phone's own session has reached a node: pushes for calls of another node get a session there.
  mutating func findNodes(_ now: Instant, _ out: inout [Action]) {
    for id in liveCalls {
      guard let entry = calls[id], entry.call == nil, entry.socket == 0, let push = entry.push, isOfOtherNode(push) else {
        continue
      }
      calls[id]?.isMissing = false
      openFurther(push, now, &out)
    }
  }

  // MARK: the session's end

  mutating func refused(_ code: UInt16, of number: Int, _ now: Instant, _ out: inout [Action]) {
    let its = liveCalls.filter { calls[$0]?.socket == number }
    further[number] = nil
    forgetQuestions(of: number)
    for id in its {
      guard code != CloseCode.replaced.rawValue else {
        loseSession(id, now)
        continue
      }
      if calls[id]?.reason == nil { calls[id]?.reason = .auth }
      ended(id, .failed, now, &out)
    }
  }

  mutating func closeFurther(_ now: Instant, _ out: inout [Action]) {
    for number in further.keys.sorted() {
      guard let one = further[number] else { continue }
      guard !calls.values.contains(where: { !$0.isOver && $0.socket == number }) else {
        further[number]?.closesAt = nil
        continue
      }
      if one.session.isQuiet || one.closesAt.map({ $0 <= now }) == true {
        finish(number, now, &out)
      } else if one.closesAt == nil {
        further[number]?.closesAt = now + Limits.furtherFarewell
      }
    }
  }

  mutating func finish(_ number: Int, _ now: Instant, _ out: inout [Action]) {
    give(.finish, to: number, now, &out)
    further[number] = nil
    forgetQuestions(of: number)
  }

  /// Drops requests of this session, which will not be answered.
  mutating func forgetQuestions(of number: Int) {
    tags = tags.filter { calls[$0.value.call].map { $0.socket != number } ?? false }
    probes = probes.filter { calls[$0.value].map { $0.socket != number } ?? false }
  }
}
