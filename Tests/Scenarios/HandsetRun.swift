import AppleStandIn
import CallFlow
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineSIPDialogs

/// One incoming call of a telephone, event by event: the eight of the INV row, and events inserted between them.
final class HandsetRun {
  enum Event: String, CaseIterable {
    /// The push arrives; the gateway's offer or snapshot does; the user answers; the caller gives up or hangs up.
    case push, offer, tap, cancel
    /// Media comes up at the phone; it fails there; nothing happens for 46 s; the socket breaks.
    case ready, fail, timeout, drop
    // the inserted events
    /// The system activates audio.
    case activate
    case decline
    /// The process is killed, and opened by the user.
    case restart
    /// The system's service for calls crashes.
    case reset
    /// The push arrives again.
    case repush
  }
  static let base: [Event] = [.push, .offer, .tap, .cancel, .ready, .fail, .timeout, .drop]
  static let inserted: [Event] = [.activate, .decline, .restart, .reset, .repush]

  struct Setting: Hashable, CustomStringConvertible {
    /// The app is open and has its session; otherwise a push starts it.
    var isOpen: Bool
    /// Time between two events: less than a message needs to the gateway, so that they cross, or enough for all of it.
    var gap: Duration
    /// Inserted once at each position.
    var extra: Event?
    /// Events that the extra event makes redundant: a killed process drops its socket, and for the media a second push changes
    /// nothing.
    var without: Set<Event> {
      switch extra {
      case .restart: [.drop]
      case .repush: [.fail]
      default: []
      }
    }
    var description: String { "\(isOpen ? "open" : "killed"), \(gap)\(extra.map { ", \($0.rawValue)" } ?? "")" }
  }

  let setting: Setting
  let world = World()
  let handset: Handset
  private let leg: LegID
  private var content: CallPush?
  private var pushes = 0
  private(set) var path: [Event] = []
  private var left: Set<Event>
  /// What is wrong a second after the last event.
  private var problems: [String] = []

  init(_ setting: Setting) {
    self.setting = setting
    left = Set(Self.base + [setting.extra].compactMap(\.self)).subtracting(setting.without)
    world.killed("cell")
    var rules = SystemRules.strict
    // activation comes as an event then, or never
    if setting.extra == .activate { rules.activationTime = .seconds(100_000) }
    handset = Handset(world, device: "cell", rules: rules)
    handset.launchTime = .milliseconds(100)
    handset.tokenTime = .milliseconds(30)
    handset.isMediaUp = false
    if setting.isOpen {
      handset.open()
      world.run(.milliseconds(100))
    }
    handset.isLinkUp = false
    world.pushService = { _ in (.milliseconds(1), .accepted, false) }
    leg = world.carrier.call()
    world.pushContent = { [unowned self] in content = $0 }
    world.run(.milliseconds(20))
  }

  /// No device has the call, and the screen is empty.
  var isOver: Bool {
    !world.hasCalls && handset.shown.isEmpty && handset.phone?.liveCalls.isEmpty ?? true
  }

  /// A step that would do nothing is left out: the order without it is played too.
  private func isPossible(_ event: Event) -> Bool {
    let ringing = handset.shown.contains { handset.system.calls[$0]?.phase == .ringing }
    return switch event {
    case .push: content != nil && pushes == 0
    case .repush: content != nil && pushes > 0
    case .offer: !handset.isLinkUp && !isOver
    case .tap, .decline: ringing
    case .cancel: world.carrier.final(leg).map { $0 == 200 && !world.carrier.heardBye(leg) } ?? true && !isOver
    case .ready: !handset.isMediaUp && hasMedia
    case .fail: hasMedia
    case .timeout: !isOver
    case .drop: handset.isOnline && handset.state == .online && !isOver
    case .activate: handset.isActivationDue
    case .restart: handset.phone != nil && !isOver
    case .reset: handset.phone != nil && !handset.shown.isEmpty
    }
  }
  private var hasMedia: Bool { handset.described.keys.contains { !handset.closedMedia.contains($0) } }

  var possible: [Event] { Event.allCases.filter { left.contains($0) && isPossible($0) } }

  func apply(_ event: Event) {
    path.append(event)
    left.remove(event)
    perform(event)
    world.run(setting.gap)
  }

  private func perform(_ event: Event) {
    switch event {
    case .push, .repush:
      pushes += 1
      let isRunning = handset.phone != nil
      if let content { handset.pushArrived(content) }
      // an event before the process runs equals one before the push
      if !isRunning { world.run(handset.launchTime) }
    case .offer: handset.isLinkUp = true
    case .tap: for call in handset.shown { handset.tap(.answer(call)) }
    case .decline: for call in handset.shown { handset.tap(.end(call)) }
    case .cancel: hangUp()
    case .ready:
      handset.isMediaUp = true
      for call in handset.described.keys { handset.mediaIsUp(call, gen: 1) }
    case .fail: for call in handset.described.keys { handset.mediaFails(call) }
    case .timeout: world.run(.seconds(46))
    case .drop: handset.drop()
    case .activate: handset.activateNow()
    case .restart:
      handset.kill()
      handset.open()
    case .reset: handset.reset()
    }
  }

  /// Waits for what is under way, which may make another event possible.
  func wait() { world.run(.milliseconds(400)) }

  private func hangUp() { world.carrier.final(leg) == 200 ? world.carrier.hangUp(leg) : world.carrier.cancel(leg) }

  /// A second later screen and gateway agree; then the caller hangs up, and nothing is left.
  func finish() -> [String] {
    world.run(.seconds(1))
    problems += handset.disagreements()
    world.run(.milliseconds(200))
    problems += handset.audioFaults()
    hangUp()
    handset.isLinkUp = true
    world.run(.seconds(2))
    handset.background()
    world.run(.seconds(60))
    problems += handset.leftovers()
    if world.hasCalls { problems.append("the gateway has the call still") }
    if world.records.count != 1 { problems.append("\(world.records.count) records") }
    if problems.isEmpty { Invariants.check(world, abandoned: ["cell"]) }
    return problems
  }

  /// Every order of the events to its end, each once: the next one goes back to the latest step with an alternative.
  static func explore(_ setting: Setting, _ look: (HandsetRun, [String]) -> Bool) -> Int {
    var waiting: [[Event]] = [[]]
    var count = 0
    while let prefix = waiting.popLast() {
      let run = HandsetRun(setting)
      for event in prefix { run.apply(event) }
      while true {
        var possible = run.possible
        if possible.isEmpty {
          run.wait()
          possible = run.possible
        }
        guard let next = possible.first else { break }
        for other in possible.dropFirst() { waiting.append(run.path + [other]) }
        run.apply(next)
      }
      count += 1
      // without the inserted event the order belongs to another setting
      if let extra = setting.extra, !run.path.contains(extra) {
        count -= 1
        continue
      }
      if !look(run, run.finish()) { return count }
    }
    return count
  }
}
