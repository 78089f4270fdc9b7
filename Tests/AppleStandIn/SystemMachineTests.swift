import AppleStandIn
import Testing
import TrunklineBytes

/// The system's rules, with the app's side played by hand.
@Suite struct SystemMachineTests {
  private let call = Identifier(high: 1, low: 1)
  private let other = Identifier(high: 1, low: 2)
  private let jane = SystemMachine.Caller("+15550009999", name: "Jane")
  private typealias World = MachineWorld

  @Test func `R1: a push starts the app, and a delegate that returns without a report kills it`() {
    var world = World()
    #expect(world.give(.push(.init(1))) == [.launch])
    #expect(world.give(.launched) == [.deliver(.init(1), mustReport: true)])
    #expect(world.give(.pushHandled(.init(1))) == [.kill(.r1)])
    #expect(!world.machine.isRunning && world.machine.kills == 1)
  }

  @Test func `R1: a report before the return is enough, also one that is refused; 7 s later is looked again`() {
    var world = World()
    _ = world.give(.launched)
    for push in 1...2 {
      _ = world.give(.push(.init(push)))
      #expect(world.give(.report(call, jane)) == [.reported(call, push == 1 ? nil : .alreadyExists)])
      #expect(world.give(.pushHandled(.init(push))) == [])
    }
    _ = world.give(.push(.init(3)))
    #expect(world.advance(.seconds(7)).contains(.kill(.r1)), "its delegate never returned")
  }

  @Test func `R2: after three kills no push is delivered`() {
    var world = World()
    for push in 1...3 {
      _ = world.give(.push(.init(push)))
      _ = world.give(.launched)
      _ = world.give(.pushHandled(.init(push)))
    }
    #expect(world.give(.push(.init(4))) == [.violation(.r2, "pushes are no longer delivered")])
  }

  @Test func `R3: who has a call or is in the foreground need not report`() throws {
    var world = World { $0.mustReport = .unlessActive }
    _ = world.give(.launched)
    #expect(world.give(.push(.init(1))) == [.deliver(.init(1), mustReport: true)])
    _ = world.give(.report(call, jane))
    #expect(world.give(.push(.init(2))) == [.deliver(.init(2), mustReport: false)])
    #expect(world.give(.pushHandled(.init(2))) == [])
    _ = world.give(.reportEnded(call, .remoteEnded))
    _ = world.give(.foreground(true))
    #expect(world.give(.push(.init(3))) == [.deliver(.init(3), mustReport: false)])
  }

  @Test func `R5: do not disturb and the block list refuse a report, and it counts`() {
    for error in [SystemMachine.ReportError.filteredByDoNotDisturb, .filteredByBlockList] {
      var world = World { rules in
        if error == .filteredByDoNotDisturb { rules.doesNotDisturb = true } else { rules.blocked = ["+15550009999"] }
      }
      _ = world.give(.launched)
      _ = world.give(.push(.init(1)))
      #expect(world.give(.report(call, jane)) == [.reported(call, error)])
      #expect(world.give(.pushHandled(.init(1))) == [] && world.machine.calls.isEmpty)
    }
  }

  @Test func `R6: an answer that is not completed in its time ends the call, and completing it then traps`() throws {
    var world = World()
    world.began()
    _ = world.give(.report(call, jane))
    let action = try #require(world.performed(world.give(.tap(.answer(call)))))
    #expect(world.advance(.seconds(60)) == [.timedOut(action, .answer(call))])
    #expect(world.machine.calls[call]?.phase == .ended)
    guard case .violation(.r6, _)? = world.give(.complete(action, .fulfilled)).first else { return #expect(Bool(false)) }
  }

  @Test func `R7: actions run one after the other; wrong transactions are refused by code`() throws {
    var world = World()
    world.began()
    try world.active(call)
    _ = world.give(.report(other, jane))
    let hold = world.give(.tap(.holdAndAnswer(other)))
    let first = try #require(world.performed(hold))
    #expect(hold == [.perform(first, .hold(call, true))])
    let next = world.give(.complete(first, .fulfilled))
    let second = try #require(world.performed(next))
    #expect(next == [.didDeactivate, .perform(second, .answer(other))])
    _ = world.give(.complete(second, .fulfilled))
    #expect(world.advance(.milliseconds(50)) == [.didActivate])
    #expect(world.machine.calls[call]?.isHeld == true && world.machine.calls[other]?.phase == .active)

    #expect(world.give(.request(.init(1), [])) == [.requested(.init(1), .empty)])
    #expect(world.give(.request(.init(2), [.end(Identifier(high: 7, low: 7))])) == [.requested(.init(2), .unknownCall)])
    #expect(world.give(.request(.init(3), [.start(call, jane)])) == [.requested(.init(3), .alreadyExists)])
    let third = world.give(.request(.init(4), [.start(Identifier(high: 7, low: 8), jane)]))
    #expect(third == [.requested(.init(4), .maximumCallGroupsReached)])
    #expect(world.give(.request(.init(5), [.answer(call)])) == [.requested(.init(5), .invalidAction)])
  }

  @Test func `R8: audio runs from the fulfilled answer until the last call is held or over; not for who activated it itself`()
    throws
  {
    var world = World()
    world.began()
    try world.active(call)
    #expect(world.give(.reportEnded(call, .remoteEnded)) == [.didDeactivate])

    _ = world.give(.report(other, jane))
    _ = world.give(.activatedAudioItself)
    let action = try #require(world.performed(world.give(.tap(.answer(other)))))
    #expect(world.give(.complete(action, .fulfilled)) == [.violation(.r8, "setActive was called: didActivate does not come")])
    #expect(world.advance(.seconds(5)) == [] && !world.machine.isAudioActive)
  }

  @Test(arguments: [true, false]) func `R9: a cellular call holds, its end resumes nothing; an unhold may lack didActivate`(
    activates: Bool
  ) throws {
    var world = World { $0.activatesAfterUnhold = activates }
    world.began()
    try world.active(call)
    let hold = try #require(world.performed(world.give(.cellular(true))))
    #expect(world.give(.complete(hold, .fulfilled)) == [.didDeactivate])
    #expect(world.give(.cellular(false)) == [] && world.advance(.seconds(5)) == [])
    let unhold = try #require(world.performed(world.give(.tap(.hold(call, false)))))
    _ = world.give(.complete(unhold, .fulfilled))
    #expect(world.advance(.seconds(1)) == (activates ? [.didActivate] : []))
  }

  @Test func `R10: a call ends once, and nothing is done with it afterwards`() {
    var world = World()
    world.began()
    _ = world.give(.report(call, jane))
    #expect(world.give(.reportEnded(call, .answeredElsewhere)) == [])
    guard case .violation(.r10, _)? = world.give(.reportEnded(call, .failed)).first else { return #expect(Bool(false)) }
    #expect(world.give(.request(.init(1), [.end(call)])) == [.requested(.init(1), .unknownCall)])
    #expect(world.give(.tap(.answer(call))) == [])
    #expect(world.machine.calls[call]?.ended == .answeredElsewhere)
  }

  @Test func `R12: what is tapped before the provider has begun waits for it`() {
    var world = World()
    _ = world.give(.launched)
    _ = world.give(.report(call, jane))
    #expect(world.give(.tap(.answer(call))) == [])
    let begun = world.advance(.milliseconds(20))
    #expect(begun.first == .didBegin && world.performed(begun) != nil)
  }

  @Test func `R13: the system may unmute what is connected`() throws {
    var world = World { $0.unmutesOnConnect = true }
    world.began()
    _ = world.give(.report(call, jane))
    let mute = try #require(world.performed(world.give(.tap(.mute(call, true)))))
    _ = world.give(.complete(mute, .fulfilled))
    let answer = try #require(world.performed(world.give(.tap(.answer(call)))))
    let after = world.give(.complete(answer, .fulfilled))
    #expect(after.contains { if case .perform(_, .mute(call, false)) = $0 { true } else { false } })
  }

  @Test func `R16: a call rings for a minute, then the system ends it by an action`() {
    var world = World()
    world.began()
    _ = world.give(.report(call, jane))
    #expect(world.advance(.seconds(59)) == [])
    let ended = world.advance(.seconds(1))
    #expect(ended.contains { if case .perform(_, .end(call)) = $0 { true } else { false } })
  }

  @Test func `an outgoing call has audio once its start is fulfilled, and is active once it is reported connected`() throws {
    var world = World()
    world.began()
    let dialled = world.give(.request(.init(1), [.start(call, jane)]))
    #expect(dialled.first == .requested(.init(1), nil))
    let start = try #require(world.performed(dialled))
    _ = world.give(.complete(start, .fulfilled))
    #expect(world.advance(.milliseconds(50)) == [.didActivate])
    _ = world.give(.reportConnecting(call))
    _ = world.give(.reportConnected(call))
    #expect(world.machine.calls[call]?.phase == .active)
  }

  @Test func `of a killed app no call is left on the screen, and its actions are nobody's`() throws {
    var world = World()
    world.began()
    try world.active(call)
    _ = world.give(.tap(.mute(call, true)))
    _ = world.give(.exited)
    #expect(!world.machine.isAudioActive && world.machine.calls[call]?.phase == .ended && world.machine.nextTimeout == nil)
  }
}
