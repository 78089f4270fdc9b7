import AppleStandIn
import Testing
import TrunklineBytes

/// Rules found in users' reports (R15, R17, R20 to R29), and the system's crashes.
@Suite struct SystemRuleTests {
  private let call = Identifier(high: 1, low: 1)
  private let other = Identifier(high: 1, low: 2)
  private let jane = SystemMachine.Caller("+15550009999", name: "Jane")

  /// The requests that are performed, each fulfilled at once.
  private func performAll(_ world: inout MachineWorld, _ first: [SystemMachine.Action]) -> [SystemMachine.Request] {
    var (done, actions): ([SystemMachine.Request], [SystemMachine.Action]) = ([], first)
    while case .perform(let id, let request)? = actions.first(where: { if case .perform = $0 { true } else { false } }) {
      done.append(request)
      actions = world.give(.complete(id, .fulfilled))
    }
    return done
  }
  private func rules(_ actions: [SystemMachine.Action]) -> [SystemMachine.Rule] {
    actions.compactMap { if case .violation(let rule, _) = $0 { rule } else { nil } }
  }

  @Test func `R15: only an extension with the entitlement makes a push`() {
    var world = MachineWorld()
    #expect(world.give(.extensionPush(.init(1), isExtension: false)) == [.extensionPushed(.init(1), .invalidClientProcess)])
    #expect(world.give(.extensionPush(.init(2), isExtension: true)) == [.extensionPushed(.init(2), nil), .launch])
    world = MachineWorld { $0.hasFilteringEntitlement = false }
    #expect(world.give(.extensionPush(.init(3), isExtension: true)) == [.extensionPushed(.init(3), .missingEntitlement)])
  }

  @Test func `R17: Recents opens the app only with a handle of a supported kind`() {
    var world = MachineWorld()
    _ = world.give(.launched)
    _ = world.give(.configure(groups: 2, handleKinds: [.generic]))
    #expect(rules(world.give(.tapRecent(jane))) == [.r17] && !world.machine.isForeground)
    _ = world.give(.configure(groups: 2, handleKinds: [.phoneNumber]))
    #expect(world.give(.tapRecent(jane)) == [.startCall(jane)] && world.machine.isForeground)
    _ = world.give(.exited)
    #expect(world.give(.tapRecent(jane)) == [.launch])
    #expect(world.give(.launched) == [.startCall(jane)])
  }

  @Test(arguments: [true, false]) func `R20: setCategory in a call switches the speaker off`(clears: Bool) throws {
    var world = MachineWorld { $0.categoryClearsSpeaker = clears }
    world.began()
    try world.active(call)
    _ = world.give(.tap(.speaker(true)))
    _ = world.advance(.seconds(1))
    let actions = world.give(.categorySet)
    #expect(rules(actions) == (clears ? [.r20] : []) && world.machine.route == (clears ? .receiver : .speaker))
    #expect(world.give(.categorySet) == [], "nothing is left to clear")
  }

  @Test func `R21: without the background mode voip a report is taken, then everything is reset`() {
    var world = MachineWorld { $0.hasVoIPBackgroundMode = false }
    _ = world.give(.launched)
    let actions = world.give(.report(call, jane))
    #expect(actions.first == .reported(call, nil) && actions.last == .reset && rules(actions) == [.r21])
    #expect(world.machine.calls[call]?.phase == .ended)
  }

  @Test(arguments: [true, false]) func `R22: a report off the delegate's thread is not shown on a locked screen`(isLocked: Bool) {
    var world = MachineWorld()
    _ = world.give(.launched)
    _ = world.give(.locked(isLocked))
    let actions = world.give(.reportOffQueue(call, jane))
    #expect(rules(actions) == [.r22] && actions.contains(.reported(call, nil)))
    #expect(world.machine.calls[call]?.isShown == !isLocked)
  }

  @Test func `R23: nobody is asked for the microphone on a locked screen, and it is silent`() throws {
    for isLocked in [true, false] {
      var world = MachineWorld { $0.microphone = .undetermined }
      world.began()
      _ = world.give(.locked(isLocked))
      _ = world.give(.report(call, jane))
      let answer = try #require(world.performed(world.give(.tap(.answer(call)))))
      _ = world.give(.complete(answer, .fulfilled))
      let expected: [SystemMachine.Action] = [.didActivate] + (isLocked ? [] : [.microphonePrompt]) + [.capture(isSilent: true)]
      #expect(world.advance(.seconds(1)) == expected)
      #expect(world.give(.microphone(.granted)) == [.capture(isSilent: false)])
    }
  }

  @Test func `R24: bursts of mute and unmute come at connect and in the foreground, and change nothing`() throws {
    var world = MachineWorld { $0.muteBursts = 2 }
    world.began()
    _ = world.give(.report(call, jane))
    let burst = [SystemMachine.Request.mute(call, true), .mute(call, false), .mute(call, true), .mute(call, false)]
    #expect(performAll(&world, world.give(.tap(.answer(call)))) == [.answer(call)] + burst)
    #expect(performAll(&world, world.give(.foreground(true))) == burst)
    #expect(world.machine.calls[call]?.isMuted == false)
  }

  @Test func `R25: the buttons of a second call hold or end the first one before they answer`() throws {
    var world = MachineWorld()
    world.began()
    try world.active(call)
    _ = world.give(.report(other, jane))
    #expect(performAll(&world, world.give(.tap(.endAndAnswer(other)))) == [.end(call), .answer(other)])
    #expect(world.machine.calls[call]?.phase == .ended && world.machine.calls[other]?.phase == .active)
  }

  @Test(arguments: [nil, SystemRules.HeadsetFault.endsAnswered, .unholdsBoth])
  func `R25: a headset's button answers the second call, and may do one thing more`(fault: SystemRules.HeadsetFault?) throws {
    var world = MachineWorld { $0.headsetFault = fault }
    world.began()
    try world.active(call)
    _ = world.give(.report(other, jane))
    let more: [SystemMachine.Request] =
      switch fault {
      case nil: []
      case .endsAnswered?: [.end(other)]
      case .unholdsBoth?: [.hold(call, false)]
      }
    #expect(performAll(&world, world.give(.tap(.headset))) == [.hold(call, true), .answer(other)] + more)
  }

  @Test(arguments: [true, false]) func `R26: answering one of two ringing calls ends the other`(ends: Bool) {
    var world = MachineWorld { $0.answerEndsOtherRinging = ends }
    world.began()
    _ = world.give(.report(call, jane))
    _ = world.give(.report(other, jane))
    let done = performAll(&world, world.give(.tap(.answer(call))))
    #expect(done == [.answer(call)] + (ends ? [.end(other)] : []))
  }

  @Test func `R27: sockets die half a minute after background, and not while there is a call`() throws {
    var world = MachineWorld()
    world.began()
    _ = world.give(.foreground(true))
    #expect(world.advance(.seconds(100)) == [])
    _ = world.give(.foreground(false))
    #expect(world.advance(.seconds(29)) == [])
    #expect(world.advance(.seconds(1)) == [.socketsDie(failFor: .zero)])
    #expect(world.advance(.seconds(100)) == [], "they die once")
    _ = world.give(.push(.init(1)))
    try world.active(call)
    _ = world.give(.pushHandled(.init(1)))
    #expect(world.advance(.seconds(100)) == [])
    _ = world.give(.reportEnded(call, .remoteEnded))
    #expect(world.advance(.seconds(30)) == [.socketsDie(failFor: .zero)])
  }

  @Test func `R27: after many wakes sockets fail for a while`() {
    var world = MachineWorld { $0.wakesUntilSocketsFail = 2 }
    _ = world.give(.launched)
    #expect(world.give(.push(.init(1))) == [.deliver(.init(1), mustReport: true)])
    #expect(world.give(.push(.init(2))).last == .socketsDie(failFor: .seconds(60)))
  }

  @Test func `R28: a change of the route gives 0 Hz for a moment, then its own rate`() {
    var world = MachineWorld()
    #expect(world.give(.route(.bluetooth)) == [.route(.bluetooth, sampleRate: 0)])
    #expect(world.advance(.milliseconds(100)) == [.route(.bluetooth, sampleRate: 8_000)])
    world = MachineWorld { $0.zeroRateTime = nil }
    #expect(world.give(.route(.bluetoothWideband)) == [.route(.bluetoothWideband, sampleRate: 16_000)])
  }

  @Test func `R29: the keychain is closed until the first unlock after a restart`() {
    var world = MachineWorld()
    #expect(world.machine.isUnlockedOnce)
    _ = world.give(.restarted)
    #expect(!world.machine.isUnlockedOnce && world.machine.isLocked && !world.machine.isRunning)
    _ = world.give(.push(.init(1)))
    _ = world.give(.launched)
    #expect(world.give(.locked(false)) == [.unlockedOnce] && world.machine.isUnlockedOnce)
    #expect(world.give(.locked(true)) == [] && world.machine.isUnlockedOnce)
  }

  @Test func `a crash of the system's daemons takes every call, and an action of before is closed`() throws {
    for cause in [SystemMachine.ResetCause.callServices, .mediaServices] {
      var world = MachineWorld()
      world.began()
      try world.active(call)
      let mute = try #require(world.performed(world.give(.tap(.mute(call, true)))))
      #expect(world.give(.systemReset(cause)) == (cause == .mediaServices ? [.mediaReset, .reset] : [.reset]))
      #expect(world.machine.calls[call]?.phase == .ended && !world.machine.isAudioActive)
      #expect(rules(world.give(.complete(mute, .fulfilled))) == [.r6])
    }
  }
}
