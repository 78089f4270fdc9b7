import CallFlow
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

/// Login tokens of every length, from every kind of backend: how often the backend is asked, and whether the phone is served
/// meanwhile.
@Suite struct TokenLengthTests {
  /// With these habits a phone has a valid token whenever it asks.
  private static let helpful: Set<TokenBackend.Habit> = [.new, .cached, .slow]
  private static let lengths: [Int64] = [5, 10, 29, 31, 59, 61, 119, 121, 300, 900, 3_600]

  @Test(arguments: TokenBackend.Habit.allCases)
  func
    `for two hours each call is answered, the user can dial or sees why not, and the backend is asked once in ten seconds at most`(
      habit: TokenBackend.Habit
    ) throws
  {
    for seconds in Self.lengths {
      let world = World(seed: UInt64(seconds))
      let handset = phone(world, seconds)
      handset.open()
      world.run(.seconds(1))
      #expect(handset.state == .online)
      handset.backend?.habit = habit
      for minute in 0..<24 {
        let served = serve(world, handset)
        let context: Comment = "\(seconds) s, \(habit), after \(minute * 5) minutes: \(handset.state)"
        #expect(served.isAnswered, context)
        #expect(served.isDialled || (!Self.helpful.contains(habit) && saysWhy(handset)), context)
        for _ in 0..<28 {
          world.run(.seconds(10))
          // no gap without a session: otherwise a caller would find the user away
          #expect(!Self.helpful.contains(habit) || handset.state == .online, context)
        }
      }
      let problems = (handset.traffic?.excesses ?? []) + handset.leftovers()
      #expect(problems.isEmpty, "\(seconds) s, \(habit): \(problems)")
      print(
        "tokens \(habit) of \(seconds) s: \(handset.traffic?.total[.tokenRequest] ?? 0) requests, \(handset.traffic?.total[.connection] ?? 0) connections in two hours"
      )
    }
  }

  private func phone(_ world: World, _ seconds: Int64) -> Handset {
    world.killed("cell")
    let handset = Handset(world, device: "cell")
    let traffic = Traffic()
    traffic.bounds = [.tokenRequest: .init(alone: 1, perEvent: 0), .connection: .init(alone: 3, perEvent: 2)]
    handset.traffic = traffic
    handset.backend = TokenBackend()
    handset.backend?.seconds = seconds
    return handset
  }

  private func saysWhy(_ handset: Handset) -> Bool {
    if case .refused = handset.state { return true }
    return handset.hasTokenFault
  }

  /// An incoming call, then an outgoing one.
  private func serve(_ world: World, _ handset: Handset) -> (isAnswered: Bool, isDialled: Bool) {
    handset.traffic?.happened(world.now)
    let leg = world.carrier.call()
    world.run(.seconds(1))
    if let call = handset.shown.first { handset.tap(.answer(call)) }
    world.run(.seconds(2))
    let isAnswered = world.carrier.final(leg) == 200
    world.carrier.giveUp(leg)
    world.run(.seconds(2))
    let dialled = Identifier(random: .seeded(UInt64(world.now.nanoseconds)))
    handset.dial(dialled, "+15557654321")
    world.run(.seconds(3))
    let isDialled = handset.system.calls[dialled]?.phase == .active
    // a call that waits for a token is given up, with the error shown
    if !isDialled { world.run(.seconds(15)) }
    #expect(isDialled || !handset.shown.contains(dialled))
    for call in handset.shown { handset.tap(.end(call)) }
    world.run(.seconds(2))
    return (isAnswered, isDialled)
  }
}
