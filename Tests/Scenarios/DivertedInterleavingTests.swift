import CallFlow
import CallModel
import Testing
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession

/// The interleavings of a call that has a diversion: to another user, a number, a recording, a code; and of a call whose user or
/// caller name comes late from a webhook. The invariants are those of every play.
@Suite struct DivertedInterleavingTests {
  private static let triggers: [DiversionTrigger] = [.unreached, .noAnswer, .busy, .declined, .mediaFailed]
  private static func all(_ target: Diversions.Target) -> [DiversionTrigger: Diversions.Rule] {
    Dictionary(uniqueKeysWithValues: triggers.map { ($0, Diversions.Rule(target)) })
  }
  private static func recording(early: Bool) -> Diversions.Target {
    .recording(.init(name: "away.wav", audio: Announcement(Recording(Array(repeating: 1, count: 8_000))), isEarly: early))
  }
  private static let toNumber = all(.number(Play.mobile, showsCaller: false))

  private static let alice: [Step] = [
    .push(0), .offer(0), .tap(0), .cancel, .ready(0), .fail(0), .timeout, .drop(0), .back(0), .reject(0), .pushLost(0),
  ]

  @Test(arguments: [[], ["phone"]] as [Set<String>])
  func `INV, OUT-5, SRV-7: every order of what a device does and what a number does that the call is diverted to`(
    connected: Set<String>
  ) {
    let steps = Self.alice + [.rings, .talks, .answers, .refuses, .hangsUp]
    var orders = Orders()
    orders.explore(
      Play(["phone"], connected: connected, rules: Self.toNumber), steps, gap: .milliseconds(50), resuming: !connected.isEmpty,
      depth: 4)
    orders.expect(
      orders: 900, won: 100, reasons: ["callerCancelled", "mediaFailed", "unanswered", "remoteHangup", "busy"])
    orders.expect(["INVITE \(Play.mobile)", "CANCEL number", "BYE number", "183"])
  }

  @Test func `INV: a number that is called after no answer, in every order to the end`() {
    let steps: [Step] = [.offer(0), .tap(0), .cancel, .timeout, .drop(0), .back(0), .rings, .talks, .answers, .refuses, .hangsUp]
    var play = Play(["phone"], connected: ["phone"], rules: Self.toNumber)
    play.apply(.timeout, resuming: false)
    var orders = Orders()
    orders.explore(play, steps.filter { $0 != .timeout }, gap: .milliseconds(20), resuming: true)
    orders.explore(play, steps, gap: .seconds(2), resuming: false, depth: 5)
    orders.expect(orders: 1_000, won: 0, reasons: ["callerCancelled", "unanswered", "remoteHangup", "busy"])
    orders.expect(["CANCEL number", "BYE number", "BYE"])
  }

  @Test(arguments: [[], ["phone"], ["desk"], ["phone", "desk"]] as [Set<String>])
  func `INV, SRV-7: every order of the first steps of a device and of the user to which the call is diverted`(
    connected: Set<String>
  ) {
    let both = [0, 1].flatMap { [Step.push($0), .pushLost($0), .offer($0), .tap($0), .reject($0), .drop($0), .back($0)] }
    var orders = Orders()
    orders.explore(
      Play(["phone"], connected: connected, bob: ["desk"], rules: Self.all(.user("bob"))),
      both + [.cancel, .timeout, .ready(1)], gap: .milliseconds(50), resuming: connected.count == 1, depth: 3)
    orders.expect(orders: 150, won: 10, reasons: ["callerCancelled", "unanswered"])
    #expect(orders.diverted > 20, "hardly any went on to bob: \(orders)")
  }

  @Test(arguments: [false, true])
  func `INV: every order of what a device does while a recording is played, before or after the answer`(early: Bool) {
    var orders = Orders()
    orders.explore(
      Play(["phone"], connected: ["phone"], rules: Self.all(Self.recording(early: early))), Self.alice + [.played],
      gap: .milliseconds(50), resuming: false, depth: 4)
    orders.expect(orders: 500, won: 20, reasons: ["callerCancelled", "mediaFailed", "unanswered", "declined"])
    orders.expect([early ? "183" : "200"])
  }

  @Test func `INV: every order of the first steps where a code is the rule, and the code is the final response`() {
    var orders = Orders()
    orders.explore(
      Play(["phone"], connected: ["phone"], rules: Self.all(.code(404))), Self.alice, gap: .milliseconds(50), resuming: true,
      depth: 4)
    orders.expect(orders: 400, won: 20, reasons: ["callerCancelled", "mediaFailed", "unanswered", "declined"])
    orders.expect(["404"])
  }

  // MARK: a webhook

  @Test(arguments: [[], ["phone"]] as [Set<String>])
  func `INV, INC-12: a webhook that answers, late or never, and a name that comes late, in every order with the rest`(
    connected: Set<String>
  ) {
    var orders = Orders()
    for gap in [20, 1_100] {
      orders.explore(
        Play(["phone"], connected: connected, asks: true),
        [.routed, .unrouted, .named, .push(0), .offer(0), .tap(0), .ready(0), .cancel, .timeout, .drop(0), .back(0)],
        gap: .milliseconds(gap), resuming: gap == 20, depth: 4)
    }
    orders.expect(orders: 800, won: 100, reasons: ["callerCancelled", "unanswered"])
    #expect(orders.updated > 50, "hardly any call.update: \(orders)")
  }

  @Test func `INV: two devices, a user to go on to or a number, a webhook, everything in random orders to the end`() {
    var orders = Orders()
    for seed in 1...300 as ClosedRange<UInt64> {
      let (play, path) = walk(seed)
      orders.look(play, path, "seed \(seed): ")
    }
    orders.expect(
      orders: 300, won: 50, reasons: ["callerCancelled", "mediaFailed", "unanswered", "remoteHangup", "declined", "busy"])
    orders.expect(["CANCEL number", "BYE number", "183", "404", "482", "INVITE \(Play.mobile)"])
    #expect(orders.diverted > 30 && orders.updated > 30, "\(orders)")
  }

  private func walk(_ seed: UInt64) -> (Play, [Step]) {
    var random = SplitMix64(seed: seed)
    func one<T>(of choices: [T]) -> T { choices[Int(random.next() % UInt64(choices.count))] }
    var connected: Set<String> = []
    for name in ["phone", "tablet", "desk"] where random.next() % 2 == 0 { connected.insert(name) }
    var rules: [DiversionTrigger: Diversions.Rule] = [:]
    for trigger in Self.triggers where random.next() % 4 != 0 {
      rules[trigger] = .init(
        one(of: [
          .number(Play.mobile, showsCaller: true), .user("bob"), Self.recording(early: random.next() % 2 == 0), .code(404),
        ]), after: trigger == .unreached && random.next() % 2 == 0 ? .seconds(5) : nil)
    }
    var play = Play(
      ["phone", "tablet"], connected: connected, bob: ["desk"], rules: rules, asks: random.next() % 2 == 0, seed: seed)
    var left: [Step] = [0, 1, 2].flatMap { index in
      [
        Step.push(index), .pushUnsure(index), .pushLost(index), .offer(index), .tap(index), .ready(index), .fail(index),
        .unavailable(index), .reject(index), .rejectHTTP(index), .drop(index), .back(index),
      ]
    }
    left += [.rings, .talks, .answers, .refuses, .hangsUp, .played, .routed, .unrouted, .named, .quit(0)]
    if random.next() % 2 == 0 { left += [.cancel, .timeout] }
    var path: [Step] = []
    while let step = left.filter({ play.isPossible($0) }).randomElement(using: &random) {
      left.removeAll { $0 == step }
      path.append(step)
      play.apply(step, resuming: random.next() % 2 == 0)
      play.pass(.milliseconds(one(of: [0, 20, 700, 2_000, 9_000])))
    }
    return (play, path)
  }
}
