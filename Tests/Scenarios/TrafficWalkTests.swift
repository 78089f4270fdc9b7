import AppleStandIn
import CallFlow
import Foundation
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineSIPDialogs

/// Random orders of token refresh, resume, lost networks, pushes and calls: no party answers itself, and no store locks its owner
/// out.
@Suite struct TrafficWalkTests {
  /// `TRUNKLINE_WALKS` sets the number of walks, `TRUNKLINE_SEED` the first seed.
  private static let walks = UInt64(ProcessInfo.processInfo.environment["TRUNKLINE_WALKS"] ?? "") ?? 1_000
  private static let first = UInt64(ProcessInfo.processInfo.environment["TRUNKLINE_SEED"] ?? "") ?? 1

  @Test func `no party sends more than its rate, and in the end the owner of every store is served`() {
    var most: [Traffic.Kind: (count: Int, events: Int)] = [:]
    for seed in Self.first..<Self.first + Self.walks {
      let walk = TrafficWalk(seed)
      let problems = walk.play()
      for (kind, value) in walk.traffic.most where value.count > most[kind]?.count ?? 0 { most[kind] = value }
      #expect(problems.isEmpty, "seed \(seed): \(walk.steps.joined(separator: ", ")): \(problems)")
      if !problems.isEmpty { return }
    }
    // printed for comparison with the rates that the pages state
    print("most in \(Traffic.window):", most.sorted { $0.key.rawValue < $1.key.rawValue }.map { "\($0.key): \($0.value)" })
  }
}

/// One walk.
private final class TrafficWalk {
  let world: World
  let handset: Handset
  let traffic = Traffic()
  private(set) var steps: [String] = []
  private let random: RandomSource
  private var legs: [LegID] = []
  private var content: CallPush?

  init(_ seed: UInt64) {
    random = .seeded(seed)
    world = World(seed: seed)
    world.killed("cell")
    handset = Handset(world, device: "cell")
    traffic.bounds = [
      .sent: .init(alone: 24, perEvent: 3), .received: .init(alone: 24, perEvent: 3), .connection: .init(alone: 3, perEvent: 2),
      .post: .init(alone: 0, perEvent: 1), .tokenRequest: .init(alone: 1, perEvent: 0), .push: .init(alone: 0, perEvent: 1),
    ]
    handset.traffic = traffic
    handset.backend = TokenBackend()
    world.pushContent = { [unowned self] in content = $0 }
  }

  private func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }

  func play() -> [String] {
    for _ in 0..<20 {
      if let step = step() {
        traffic.happened(world.now)
        steps.append(step)
      }
      let time = [Duration.milliseconds(20), .milliseconds(300), .seconds(2), .seconds(9), .seconds(40), .seconds(150)][pick(6)]
      world.run(time)
      steps.append("\(time)")
    }
    return settle()
  }

  private func step() -> String? {
    switch pick(12) {
    case 0, 1: return token()
    case 2: return network()
    case 3, 4: return process()
    case 5, 6, 7: return caller()
    case 8, 9: return user()
    default: return session()
    }
  }

  private func token() -> String {
    let habit = TokenBackend.Habit.allCases[pick(TokenBackend.Habit.allCases.count)]
    handset.backend?.habit = habit
    handset.backend?.seconds = [5, 20, 59, 61, 119, 121, 600, 3_600][pick(8)]
    return "tokens \(habit) of \(handset.backend?.seconds ?? 0) s"
  }

  private func network() -> String {
    handset.isLinkUp.toggle()
    return "link \(handset.isLinkUp ? "up" : "down")"
  }

  private func process() -> String {
    switch pick(4) {
    case 0: handset.kill()
    case 1: handset.background()
    default:
      handset.open()
      return "open"
    }
    return handset.phone == nil ? "kill" : "background"
  }

  private func caller() -> String? {
    switch pick(3) {
    case 0:
      guard let leg = legs.popLast() else { return nil }
      world.carrier.giveUp(leg)
      return "caller ends"
    case 1:
      guard let content else { return nil }
      handset.pushArrived(content)
      return "push again"
    default:
      guard legs.count < 3 else { return nil }
      legs.append(world.carrier.call())
      return "call"
    }
  }

  private func user() -> String? {
    let shown = handset.shown.sorted { "\($0)" < "\($1)" }
    guard let call = shown.isEmpty ? nil : shown[pick(shown.count)] else {
      guard handset.phone != nil, pick(3) == 0 else { return nil }
      handset.dial(Identifier(random: random), "+15557654321")
      return "dial"
    }
    switch pick(3) {
    case 0:
      handset.tap(.end(call))
      return "end"
    case 1:
      handset.tap(.hold(call, pick(2) == 0))
      return "hold"
    default:
      guard handset.system.calls[call]?.phase == .ringing else { return nil }
      handset.tap(shown.count > 1 ? .endAndAnswer(call) : .answer(call))
      return "answer"
    }
  }

  private func session() -> String {
    switch pick(5) {
    case 0:
      handset.moveNetwork()
      return "path change"
    case 1:
      handset.pushToken(.init(kind: .apnsVoIP, token: "0a0b", env: "production", topic: "org.example.voip"))
      return "push token"
    case 2:
      handset.drop(.overflow)
      return "drop 4008"
    default:
      handset.drop()
      return "drop"
    }
  }

  /// Ends all faults: at once, or after the longest back-off, a call can be received and made.
  private func settle() -> [String] {
    for leg in legs { world.carrier.giveUp(leg) }
    handset.isLinkUp = true
    handset.backend = TokenBackend()
    handset.kill()
    world.run(.seconds(120))
    world.carrier.giveUpUnanswered()
    world.run(.seconds(40))
    traffic.happened(world.now)
    // an app that was killed in a call is opened again: no other party ends an outgoing call, since media continues in this world
    handset.open()
    world.run(.seconds(15))
    for call in handset.shown { handset.tap(.end(call)) }
    world.run(.seconds(40))
    var problems = world.hasCalls ? ["the gateway has calls still"] : []
    if handset.state != .online { problems.append("it is \(handset.state), not online") }
    problems += serve(incoming: true) + serve(incoming: false)
    for (code, count) in traffic.refusals { problems.append("\(count) × \(code)") }
    problems += traffic.excesses
    handset.background()
    world.run(.seconds(400))
    return problems + handset.leftovers()
  }

  private func serve(incoming: Bool) -> [String] {
    traffic.happened(world.now)
    var leg: LegID?
    let dialled = Identifier(random: random)
    if incoming { leg = world.carrier.call() } else { handset.dial(dialled, "+15557654321") }
    world.run(.seconds(2))
    guard let call = handset.shown.first else { return ["no call is shown, incoming: \(incoming)"] }
    if incoming { handset.tap(.answer(call)) }
    world.run(.seconds(3))
    defer {
      handset.tap(.end(call))
      world.run(.seconds(3))
    }
    if let leg, world.carrier.final(leg) != 200 { return ["the call in got \(world.carrier.final(leg) ?? 0)"] }
    return handset.system.calls[call]?.phase == .active
      ? [] : ["\(String(describing: handset.system.calls[call]?.phase)) after 3 s"]
  }
}
