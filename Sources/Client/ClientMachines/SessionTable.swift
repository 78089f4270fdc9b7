import TrunklineAppProtocol
import TrunklineBytes
import TrunklineTURN

/// The phone's sessions: its own, and those at further nodes, each for the calls of its node (docs/reference/protocol.md, Many
/// nodes). Each has a number, which is not reused for a further one.
///
/// | session | `open`, `openFurther` | `logIn` | `restore` | `settle` | `remove` |
/// |---|---|---|---|---|---|
/// | none | a login's, or a push's without a token; further ones are a push's, `Limits.furtherSessions` at most | – | – | – | – |
/// | of a push | – | a login's | – | as below | none |
/// | a login's | – | the same | of the former push, if there was one | as below | none |
///
/// | further session | `settle` with a call | without a call, quiet | without a call, not quiet | `Limits.furtherFarewell` later |
/// |---|---|---|---|---|
/// | in use | same | to be finished | closing | – |
/// | closing | in use | to be finished | same | to be finished |
///
/// An event for a number that has no session has no effect.
struct SessionTable: Sendable {
  private struct Entry: Sendable {
    var session: ClientSession
    /// The push that opened the session, for its call only; nil: a login's session.
    var wake: PhoneMachine.Push?
    /// The address at which it was opened; nil: the phone's own gateway.
    let address: String?
    var onlineAt: Instant?
    /// Set when no call of the session is left.
    var closesAt: Instant?
  }
  /// The number of the phone's own session.
  static let own = 0

  private let capabilities: [String]
  private let random: RandomSource
  private var entries: [Int: Entry] = [:]
  private var count = 0
  /// Of the phone's own session.
  private(set) var state = PhoneState.idle
  private(set) var isForeground: Bool
  /// The gateway of the newest `welcome` makes test calls.
  private(set) var makesTestCalls = false
  /// The TURN servers of the newest `welcome`.
  private(set) var relays: [TURNServer] = []

  init(_ configuration: PhoneMachine.Configuration, random: RandomSource) {
    (capabilities, isForeground, self.random) = (configuration.capabilities, configuration.isForeground, random)
  }

  // MARK: one session

  func exists(_ number: Int) -> Bool { entries[number] != nil }
  func isOnline(_ number: Int) -> Bool { entries[number]?.session.isOnline == true }
  func isQuiet(_ number: Int) -> Bool { entries[number]?.session.isQuiet == true }
  /// When the session was welcomed.
  func onlineAt(_ number: Int) -> Instant? { entries[number]?.onlineAt }
  /// The push that the session belongs to.
  func wake(of number: Int) -> PhoneMachine.Push? { entries[number]?.wake }
  /// The node that has welcomed the session.
  func node(of number: Int) -> String? { entries[number]?.session.node }
  /// The address for its socket; nil: the phone's own gateway.
  func gateway(of number: Int) -> String? { entries[number]?.session.gateway }
  func isDue(_ number: Int, at now: Instant) -> Bool { entries[number]?.session.nextDeadline.map { $0 <= now } ?? false }
  var appState: AppState { isForeground ? .fg : .bg }

  // MARK: all sessions

  /// The numbers of further sessions, in a fixed order.
  var furtherNumbers: [Int] { entries.keys.filter { $0 != Self.own }.sorted() }
  var nextDeadline: Instant? { entries.values.flatMap { [$0.session.nextDeadline, $0.closesAt] }.compactMap(\.self).min() }

  /// True if the phone's own session is at another node than this push's call; false while that is unknown.
  func isOfOtherNode(_ push: PhoneMachine.Push) -> Bool {
    guard capabilities.contains("nodes"), let there = push.gateway, ClientSession.Route.isAddress(there),
      let here = entries[Self.own]?.session.home ?? wake(of: Self.own)?.gateway
    else { return false }
    return here != there
  }

  /// The further session at the push's node.
  func furtherSession(at push: PhoneMachine.Push) -> Int? {
    furtherNumbers.first { entries[$0]?.address == push.gateway || entries[$0]?.session.home == push.gateway }
  }

  /// True if a session can be had at the push's node: by its wake token, or by a login if that node's session is another call's.
  func hasRoom(for push: PhoneMachine.Push, hasToken: Bool) -> Bool {
    guard let there = furtherSession(at: push) else { return furtherNumbers.count < Limits.furtherSessions }
    return hasToken || wake(of: there).map { $0.call == push.call } ?? true
  }

  // MARK: begin and end

  /// Opens the phone's own session, which must not exist: a login's, or without a token that of the push.
  mutating func open(token: Redacted<String>?, push: PhoneMachine.Push?, device: Hello.Device) {
    let wake = token == nil ? push : nil
    entries[Self.own] = entry(token, wake, device)
  }

  /// - Returns: its number; nil: there are too many.
  mutating func openFurther(_ push: PhoneMachine.Push, device: Hello.Device) -> Int? {
    guard furtherNumbers.count < Limits.furtherSessions else { return nil }
    count += 1
    entries[count] = entry(nil, push, device, isFurther: true)
    return count
  }

  private func entry(
    _ token: Redacted<String>?, _ wake: PhoneMachine.Push?, _ device: Hello.Device, isFurther: Bool = false
  ) -> Entry {
    var settings = ClientSession.Configuration(token: token?.exposed ?? "", device: device, capabilities: capabilities)
    (settings.wake, settings.gateway, settings.state, settings.isFurther) = (wake?.wake, wake?.gateway, appState, isFurther)
    return Entry(session: ClientSession(configuration: settings, random: random), wake: wake, address: wake?.gateway)
  }

  mutating func remove(_ number: Int) { entries[number] = nil }

  /// After each event. True: no call of the further session is left, and it is to be finished.
  mutating func settle(_ number: Int, hasCall: Bool, at now: Instant) -> Bool {
    guard number != Self.own, let entry = entries[number] else { return false }
    if hasCall {
      entries[number]?.closesAt = nil
      return false
    }
    entries[number]?.closesAt = entry.closesAt ?? now + Limits.furtherFarewell
    return entry.session.isQuiet || entry.closesAt.map { $0 <= now } == true
  }

  // MARK: events

  /// - Parameter hasCall: the phone has a call: a lost connection is replaced at once.
  mutating func handle(
    _ input: ClientSession.Input, of number: Int, hasCall: Bool, at now: Instant, into actions: inout [ClientSession.Action]
  ) {
    entries[number]?.session.hasCall = hasCall
    entries[number]?.session.handle(input, at: now, into: &actions)
  }

  /// Nil: there is no such session, or too many requests are open.
  mutating func request(
    _ message: ClientMessage, call: Identifier?, of number: Int, at now: Instant, into actions: inout [ClientSession.Action]
  ) -> Identifier? {
    guard let question = entries[number]?.session.request(message, call: call, at: now, into: &actions) else { return nil }
    // the refusal is already here, before any code waits for it
    for case .event(.answered(question, _, _)) in actions { return nil }
    return question
  }

  mutating func notify(
    _ message: ClientMessage, call: Identifier, of number: Int, at now: Instant, into actions: inout [ClientSession.Action]
  ) {
    entries[number]?.session.notify(message, call: call, at: now, into: &actions)
  }

  /// A session of a push becomes a complete session; a login's continues with the new token.
  /// - Returns: the push that it belonged to.
  @discardableResult
  mutating func logIn(_ number: Int, token: Redacted<String>) -> PhoneMachine.Push? {
    defer { entries[number]?.wake = nil }
    entries[number]?.session.use(token: token)
    return wake(of: number)
  }

  /// The gateway has refused the token of `logIn`.
  mutating func restore(token: Redacted<String>?, wake: PhoneMachine.Push?) {
    entries[Self.own]?.wake = wake
    if let token { entries[Self.own]?.session.use(token: token) }
  }

  mutating func welcomed(_ welcome: Welcome, by number: Int, at now: Instant) {
    entries[number]?.onlineAt = now
    if number == Self.own { makesTestCalls = welcome.caps.contains(TestCall.capability) }
  }

  /// True if it has changed.
  mutating func move(to next: PhoneState) -> Bool {
    defer { state = next }
    return state != next
  }

  mutating func move(toForeground isOn: Bool) {
    isForeground = isOn
    let state = appState
    for number in entries.keys { entries[number]?.session.use(state: state) }
  }

  /// STUN servers are ignored: the gateway has an address that every client reaches.
  /// - Returns: the TURN servers, if they have changed.
  mutating func received(_ servers: [ICEServer]) -> [TURNServer]? {
    let found = Array(
      servers.flatMap { server in
        server.urls.compactMap { TURNServer(url: $0, username: server.username ?? "", password: server.credential ?? "") }
      }.prefix(Limits.relayServers))
    guard found != relays else { return nil }
    relays = found
    return found
  }
}
