import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

/// After a timer at `now` a session's next deadline is later than `now`: one that stays in the past would keep a phone awake.
@Suite struct DeadlineTests {
  private struct Walk {
    var session = ClientSession(
      configuration: .init(token: "t", device: Hello.Device(id: "d1", platform: "test")), random: .seeded(3))
    var random: SplitMix64
    var now = Instant.zero
    var number = 0
    var timers = 0
    var questions: [Identifier] = []
    var hello = Identifier(high: 0, low: 2)
    private var actions: [ClientSession.Action] = []

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    mutating func pick<T>(_ items: [T]) -> T { items[Int(random.next() % UInt64(items.count))] }

    mutating func give(_ input: ClientSession.Input) {
      actions.removeAll()
      session.handle(input, at: now, into: &actions)
      for case .write(let bytes) in actions {
        if let frame = try? ClientFrame(decoding: bytes), case .message(.hello) = frame.body, let id = frame.id { hello = id }
      }
      guard case .timer = input else { return }
      timers += 1
      #expect(session.nextDeadline.map { $0 > now } ?? true)
    }

    mutating func receive(_ message: ServerMessage, re: Identifier? = nil) {
      give(.frame(ServerFrame(message, re: re).encoded()))
    }

    /// Before one in five messages a sequence number is skipped.
    mutating func receiveNumbered() {
      number += pick([1, 1, 1, 1, 2])
      let over = ServerMessage.callCancel(CallOver(.callerCancelled))
      give(.frame(ServerFrame(over, seq: number, call: Identifier(high: 5, low: 1)).encoded()))
    }

    mutating func welcome() {
      let resumed = pick([true, false])
      if !resumed { number = 0 }
      let welcome = Welcome(
        sid: "s", resumeToken: "r", resumed: resumed, replayFrom: 1, time: 0, hb: pick([.min, 0, 1_000, 15_000, .max]), ice: [],
        calls: resumed ? nil : [])
      receive(.welcome(welcome), re: hello)
    }

    mutating func step() {
      let elsewhere = pick([nil, "wss://other.example/v1/connect", "none"])
      switch random.next() % 16 {
      case 0: give(.start)
      case 1, 2: give(.socketOpened)
      case 3: give(.socketClosed(pick([1000, 1001, 1005, 1006, 1012, 1013, 4001, 4002, 4008])))
      case 4, 5: welcome()
      case 6: receive(.bye(Bye(code: Int(CloseCode.draining.rawValue), url: elsewhere, afterMs: pick([nil, 0, 5_000]))))
      case 7: receive(.err(Failure(.overload, retryMs: pick([nil, 0, 3_000]), url: elsewhere)), re: pick(questions + [hello]))
      case 8: receiveNumbered()
      case 9: if let id = questions.popLast() { receive(.ok(Success()), re: id) }
      case 10:
        actions.removeAll()
        questions.append(session.request(.deviceDel, call: nil, at: now, into: &actions))
      case 11: give(pick([.networkChanged, .hurry]))
      case 12: now = now + .milliseconds(Int64(random.next() % 8_000))
      default:
        if let due = session.nextDeadline { now = max(now, due) }
        give(.timer)
      }
    }
  }

  @Test func `a deadline that stays in the past is met every 10 ms, any other in time`() {
    var deadlines = DeadlineGuard()
    let stuck = Instant.zero + .seconds(1)
    #expect(deadlines.due(stuck) == stuck)
    var runs = 0
    // a loop that waits until the guard's time, for a second
    var now = stuck
    while now < stuck + .seconds(1) {
      deadlines.ran(at: now)
      runs += 1
      now = max(now, deadlines.due(stuck))
    }
    #expect(runs == 100)
    #expect(deadlines.due(now + .milliseconds(1)) == now + .milliseconds(1))
  }

  @Test(arguments: 1...40 as ClosedRange<UInt64>) func `a session's deadline is later than the timer that was handled`(
    seed: UInt64
  ) {
    var walk = Walk(seed: seed)
    walk.give(.start)
    for _ in 0..<400 { walk.step() }
    #expect(walk.timers > 20)
  }
}
