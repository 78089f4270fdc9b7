import AppleStandIn
import CallFlow
import Foundation
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineSIPDialogs

/// Random walks: user, caller, network and system act at random, and the invariants hold.
@Suite struct HandsetWalkTests {
  /// As many as fit into half a minute of the suite; `TRUNKLINE_WALKS` sets another number.
  private static let walks = UInt64(ProcessInfo.processInfo.environment["TRUNKLINE_WALKS"] ?? "") ?? 1_500

  @Test func `ACT-1, ACT-3: whatever happens in whatever order, nothing is left on the screen and nothing is done twice`() {
    for seed in 1...Self.walks {
      let (steps, problems) = walk(seed)
      #expect(problems.isEmpty, "seed \(seed): \(steps.joined(separator: ", ")): \(problems)")
      if !problems.isEmpty { return }
    }
  }

  private func walk(_ seed: UInt64) -> (steps: [String], problems: [String]) {
    let walk = HandsetWalk(seed: seed)
    for _ in 0..<12 { walk.step() }
    return (walk.steps, walk.problemsAtEnd())
  }
}

/// One random walk of a phone, the caller and the network.
private final class HandsetWalk {
  private let random: RandomSource
  private let world: World
  private let handset: Handset
  private var legs: [LegID] = []
  private var content: CallPush?
  private(set) var steps: [String] = []

  init(seed: UInt64) {
    let random = RandomSource.seeded(seed)
    func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
    world = World(seed: seed)
    var rules = SystemRules.strict
    rules.mustReport = [.always, .unlessActive, .atRandom][pick(3)]
    rules.activatesAfterUnhold = pick(2) == 0
    rules.unmutesOnConnect = pick(2) == 0
    rules.muteBursts = pick(4) == 0 ? 2 : 0
    rules.repeatsEnds = pick(4) == 0
    rules.activationTime = [.milliseconds(600), nil, .milliseconds(50), .milliseconds(50)][pick(4)]
    world.killed("cell")
    handset = Handset(world, device: "cell", rules: rules)
    handset.hasToken = pick(3) > 0
    handset.records = seed % 10 == 0
    self.random = random
    world.pushContent = { [unowned self] in content = $0 }
  }

  private func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

  func step() {
    let shown = handset.shown.sorted { "\($0)" < "\($1)" }
    let call = shown.isEmpty ? nil : shown[pick(shown.count)]
    let kind = pick(20)
    switch kind {
    case 3...7, 12, 14: if let call { act(kind, on: call, of: shown.count) }
    default: happen(kind)
    }
    let time = [20, 200, 900, 3_000][pick(4)]
    world.run(.milliseconds(time))
    steps.append("\(time) ms")
  }

  /// The user acts on a call that is shown, or its media changes.
  private func act(_ kind: Int, on call: Identifier, of shown: Int) {
    switch kind {
    case 3, 4, 5:
      let phase = handset.system.calls[call]?.phase
      handset.tap(
        phase == .ringing
          ? (shown > 1 ? [.holdAndAnswer(call), .endAndAnswer(call)][pick(2)] : .answer(call)) : .hold(call, pick(2) == 0)
      )
      steps.append("tap on \(phase.map { "\($0)" } ?? "")")
    case 6:
      handset.tap(.end(call))
      steps.append("end")
    case 7:
      handset.tap(.mute(call, pick(2) == 0))
      steps.append("mute")
    case 12:
      handset.act(call, [.hold(pick(2) == 0), .mute(pick(2) == 0), .answer, .end][pick(4)])
      steps.append("the app's button")
    case 14:
      handset.isMediaUp.toggle()
      if !handset.isMediaUp { handset.mediaFails(call) }
      steps.append("media \(handset.isMediaUp ? "up" : "down")")
    default: break
    }
  }

  /// The caller, the network, the system or the app does something.
  private func happen(_ kind: Int) {
    switch kind {
    case 0, 1:
      guard legs.count < 3 else { return }
      legs.append(world.carrier.call())
      steps.append("call")
    case 2:
      guard let leg = legs.last else { return }
      world.carrier.final(leg) == 200 ? world.carrier.hangUp(leg) : world.carrier.cancel(leg)
      steps.append("caller ends")
    case 8:
      handset.drop()
      steps.append("drop")
    case 9:
      handset.cellular(pick(2) == 0)
      steps.append("cellular")
    case 10:
      if pick(4) == 0 {
        handset.kill()
        steps.append("kill")
      } else {
        handset.open()
        steps.append("open")
      }
    case 11:
      handset.moveNetwork()
      steps.append("path change")
    case 13:
      handset.background()
      steps.append("background")
    case 15:
      guard pick(4) == 0 else { return }
      handset.dial(Identifier(random: random), "+15557654321")
      steps.append("dial")
    case 16:
      guard pick(4) == 0 else { return }
      handset.reset()
      steps.append("reset")
    case 17:
      handset.isLinkUp.toggle()
      steps.append("link \(handset.isLinkUp ? "up" : "down")")
    case 18:
      guard let content else { return }
      handset.pushArrived(content)
      steps.append("push again")
    case 19:
      handset.tap(.headset)
      steps.append("headset")
    default: break
    }
  }

  /// Ends everything, and returns what is wrong then.
  func problemsAtEnd() -> [String] {
    world.run(.seconds(1))
    var problems = handset.disagreements()
    handset.cellular(false)
    for leg in legs { world.carrier.final(leg) == 200 ? world.carrier.hangUp(leg) : world.carrier.cancel(leg) }
    // an app that was killed in a call is opened again: no other party ends an outgoing one
    handset.hasToken = true
    handset.isLinkUp = true
    handset.open()
    world.run(.seconds(5))
    for call in handset.shown where handset.system.calls[call]?.isOutgoing == true { handset.tap(.end(call)) }
    world.run(.seconds(90))
    problems += handset.leftovers()
    if world.hasCalls { problems.append("the gateway has calls still") }
    handset.background()
    world.run(.seconds(400))
    problems += handset.timers()
    // the walk also answers the second of two ringing calls, which is not on the screen
    problems += handset.contradictions([.r26])
    if problems.isEmpty { Invariants.check(world, abandoned: ["cell"]) }
    return problems
  }
}
