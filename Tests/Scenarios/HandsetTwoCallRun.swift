import AppleStandIn
import CallFlow
import CallModel
import Testing
import TrunklineBytes
import TrunklineClientMachines
import TrunklineSIPDialogs

/// A telephone that talks, and a second call to it: step by step.
final class HandsetTwoCallRun {
  enum Step: String, CaseIterable {
    /// The second call comes in.
    case second
    // its buttons on the screen
    case holdAndAccept, endAndAccept, decline
    /// The one that talks is held, and the held one talks; one alone is held or resumed.
    case swap, hold
    /// The user ends a call on the screen; its caller does.
    case endFirst, endSecond, firstHangsUp, secondHangsUp
    /// The socket breaks.
    case drop
  }

  struct Setting: Hashable, CustomStringConvertible {
    var gap: Duration
    /// R9: `didActivate` comes after an unhold.
    var activates: Bool
    var description: String { "\(gap), \(activates ? "with" : "without") didActivate after an unhold" }
  }

  let setting: Setting
  let world = World()
  let handset: Handset
  private let legs: [LegID]
  private let first: CallID?
  private var secondLeg: LegID?
  private(set) var path: [Step] = []
  private(set) var problems: [String] = []

  init(_ setting: Setting) {
    self.setting = setting
    var rules = SystemRules.strict
    rules.activatesAfterUnhold = setting.activates
    world.killed("cell")
    handset = Handset(world, device: "cell", rules: rules)
    handset.records = true
    handset.launchTime = .milliseconds(100)
    let leg = world.carrier.call()
    world.run(.milliseconds(400))
    first = handset.shown.first
    if let first { handset.tap(.answer(first)) }
    world.run(.milliseconds(400))
    legs = [leg]
    if first.map({ handset.system.calls[$0]?.phase }) != .active { problems.append("the first call is not active") }
  }

  private var second: CallID? { handset.system.calls.keys.first { $0 != first } }
  private func phase(_ call: CallID?) -> SystemMachine.Call.Phase? {
    guard let call, let shown = handset.system.calls[call], shown.phase != .ended else { return nil }
    return shown.phase
  }
  private func isHeld(_ call: CallID?) -> Bool { call.flatMap { handset.system.calls[$0]?.isHeld } ?? false }
  private func isLive(_ leg: LegID?) -> Bool {
    guard let leg else { return false }
    return world.carrier.final(leg).map { $0 == 200 && !world.carrier.heardBye(leg) } ?? true
  }

  private var hasButtons: Bool {
    phase(second) == .ringing && !path.contains { [.holdAndAccept, .endAndAccept, .decline].contains($0) }
  }

  private func isPossible(_ step: Step) -> Bool {
    let times = path.count { $0 == step }
    return switch step {
    case .second: secondLeg == nil
    // the buttons are gone with the tap
    case .holdAndAccept, .endAndAccept: hasButtons && phase(first) == .active
    case .decline: hasButtons
    case .swap: phase(first) == .active && phase(second) == .active && times < 3
    case .hold: (phase(first) == .active) != (phase(second) == .active) && times < 2
    case .endFirst: phase(first) != nil && times == 0
    case .endSecond: phase(second) != nil && phase(second) != .ringing && times == 0
    case .firstHangsUp: isLive(legs[0]) && times == 0
    case .secondHangsUp: isLive(secondLeg) && times == 0
    case .drop: secondLeg != nil && handset.state == .online && times == 0
    }
  }
  var possible: [Step] { Step.allCases.filter(isPossible) }

  func apply(_ step: Step) {
    path.append(step)
    switch step {
    case .second: secondLeg = world.carrier.call()
    case .holdAndAccept: if let second { handset.tap(.holdAndAnswer(second)) }
    case .endAndAccept: if let second { handset.tap(.endAndAnswer(second)) }
    case .decline, .endSecond: if let second { handset.tap(.end(second)) }
    case .endFirst: if let first { handset.tap(.end(first)) }
    case .swap:
      let isFirstHeld = isHeld(first)
      guard let first, let second else { return }
      handset.tap(.hold(isFirstHeld ? second : first, true))
      handset.tap(.hold(isFirstHeld ? first : second, false))
    case .hold:
      guard let call = phase(first) == .active ? first : second else { return }
      handset.tap(.hold(call, !isHeld(call)))
    case .firstHangsUp: hangUp(legs[0])
    case .secondHangsUp: if let secondLeg { hangUp(secondLeg) }
    case .drop: handset.drop()
    }
    world.run(setting.gap)
  }

  private func hangUp(_ leg: LegID) { world.carrier.final(leg) == 200 ? world.carrier.hangUp(leg) : world.carrier.cancel(leg) }

  func finish() -> [String] {
    world.run(.seconds(1))
    problems += handset.disagreements()
    world.run(.milliseconds(300))
    problems += handset.audioFaults()
    for leg in legs + [secondLeg].compactMap(\.self) { hangUp(leg) }
    world.run(.seconds(2))
    handset.background()
    world.run(.seconds(60))
    problems += handset.leftovers() + handset.contradictions([])
    if world.hasCalls { problems.append("the gateway has calls still") }
    if problems.isEmpty { Invariants.check(world, abandoned: ["cell"]) }
    return problems
  }

  static func explore(_ setting: Setting, depth: Int, _ look: (HandsetTwoCallRun, [String]) -> Bool) -> Int {
    var waiting: [[Step]] = [[]]
    var count = 0
    while let prefix = waiting.popLast() {
      let run = HandsetTwoCallRun(setting)
      for step in prefix { run.apply(step) }
      while run.path.count < depth {
        let possible = run.possible
        guard let next = possible.first else { break }
        for other in possible.dropFirst() { waiting.append(run.path + [other]) }
        run.apply(next)
      }
      count += 1
      if !look(run, run.finish()) { return count }
    }
    return count
  }
}
