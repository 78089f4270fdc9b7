import AppSessions
import Testing
import TrunklineAppProtocol
import TrunklineAudioCodecs
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone
private let tablet = Surroundings.tablet

extension Surroundings {
  /// Runs a command; nil: it was accepted.
  func command(_ call: CallID, _ command: CallCommand, _ location: SourceLocation = #_sourceLocation) -> Failure? {
    guard case .refused(let failure)? = operate(location, { .command(call, command, $0) }) else { return nil }
    return failure
  }

  /// Originates a call; nil: there is no answer yet.
  func originate(_ wanted: OriginateRequest) -> Result<CallID, Failure>? {
    switch asked({ .originate(wanted, $0) }) {
    case .originated(let call)?: .success(call)
    case .refused(let failure)?: .failure(failure)
    default: nil
    }
  }

  /// Runs an operation that is answered at once.
  @discardableResult
  func operate(_ location: SourceLocation = #_sourceLocation, _ input: (QuestionID) -> CallMachine.Input) -> OperationAnswer? {
    let answer = asked(input)
    #expect(answer != nil, "one answer", sourceLocation: location)
    return answer
  }

  private func asked(_ input: (QuestionID) -> CallMachine.Input) -> OperationAnswer? {
    lastQuestion += 1
    let question = QuestionID(lastQuestion)
    feed(input(question))
    let answers = operationAnswers.filter { $0.question == question }
    #expect(answers.count <= 1, "no second answer")
    return answers.first?.answer
  }
}

/// An operator's program controls a live call: commands act as if the device that has the call had sent them, and its screen is
/// notified.
@Suite struct CommandTests {
  private let unknown = Identifier(high: 9, low: 9)

  @Test func `hold is the app's own hold, and the app is notified that a program did it`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    #expect(world.command(call, .hold(true)) == nil)
    #expect(world.received[phone]?.last == "call.held gateway true" && world.machine.summaries.first?.held == true)
    // the phone's own hold follows, and changes nothing
    #expect(world.isOK(world.request(phone, .callHold(CallHold(on: true)), call: call)))
    #expect(world.command(call, .hold(false)) == nil)
    #expect(world.received[phone]?.last == "call.held gateway false" && world.machine.summaries.first?.held == false)
    #expect(world.actions.count { if case .media(.hold) = $0 { true } else { false } } == 2)
  }

  @Test func `mute silences the app at the gateway, and the app is notified`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    #expect(world.command(call, .mute(true)) == nil && world.command(call, .mute(false)) == nil)
    #expect(world.received[phone]?.suffix(2) == ["call.muted true", "call.muted false"])
    let mutes = world.actions.compactMap { if case .media(.mute(_, let on)) = $0 { on } else { nil } }
    #expect(mutes == [true, false])
  }

  @Test func `digits go to the trunk`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    #expect(world.command(call, .digits(CallDTMF(digits: "12#"))) == nil)
    #expect(world.mediaReceived.last == "digits 12# to caller")
  }

  @Test func `a program plays to the trunk of a connected call, and the call continues after it`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    let notice = Announcement(Recording([Int16](repeating: 1, count: 800)))
    #expect(world.command(call, .play(notice)) == nil)
    #expect(world.mediaReceived.last == "play 800")
    world.feed(.media(.played(try #require(world.session))))
    #expect(world.machine.summaries.first?.state == .connected)
    #expect(world.command(unknown, .play(notice))?.code == .gone)
  }

  @Test func `a program stops what it plays, and nothing else`() throws {
    let world = Surroundings { configuration, _ in
      configuration.recording = RecordingRules(notice: Announcement(Recording([Int16](repeating: 1, count: 400))))
    }
    let (_, call) = try world.connected()
    let file = Announcement(Recording([Int16](repeating: 1, count: 800)))
    func stop() -> [String] {
      world.mediaReceived = []
      #expect(world.command(call, .play(nil)) == nil, "stopping is safe to repeat")
      return world.mediaReceived
    }
    #expect(stop() == [], "nothing plays")
    #expect(world.command(call, .play(file)) == nil && stop() == ["no play"] && stop() == [])
    #expect(world.command(call, .play(file)) == nil)
    world.feed(.media(.played(try #require(world.session))))
    #expect(stop() == [], "it is over")
    #expect(world.command(call, .play(file)) == nil && world.command(call, .record(true)) == nil)
    #expect(world.mediaReceived.last == "play 400" && stop() == [], "a recording's notice is heard to its end")
    #expect(world.command(unknown, .play(nil))?.code == .gone)
  }

  @Test func `a call that no device has can be ended and nothing else; a call that does not exist cannot be either`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing()
    let others: [CallCommand] = [
      .hold(true), .mute(true), .digits(CallDTMF(digits: "1")),
      .transfer(CallTransfer(target: Handle(k: .phone, h: "+15558880000"))),
      .transferToUser("bob"), .play(Announcement(Recording([1]))), .play(nil),
    ]
    for command in others {
      #expect(world.command(call, command)?.code == .badState)
      #expect(world.command(unknown, command)?.code == .gone)
    }
    #expect(world.command(unknown, .hangUp(nil))?.code == .gone)
    #expect(world.command(call, .hangUp(nil)) == nil)
    #expect(world.command(call, .hangUp(nil))?.code == .gone)
  }

  @Test(
    arguments: [
      (.localEnd, "486", .localEnd), (.busy, "486", .busy), (.declined, "486", .declined),
      (.unanswered, "480 Q.850;cause=19", .unanswered), (.notFound, "404", .notFound), (.forbidden, "403", .forbidden),
    ] as [(HangUpReason, String, EndReason)])
  func `a caller who waits is refused for the reason that is given`(reason: HangUpReason, sent: String, recorded: EndReason)
    throws
  {
    let world = Surroundings()
    let (_, call) = try world.ringing([phone, tablet])
    #expect(world.command(call, .hangUp(reason)) == nil)
    #expect(world.trunkReceived.last == sent)
    #expect(
      world.received[phone]?.last == "call.cancel \(recorded.rawValue)"
        && world.received[tablet]?.last == world.received[phone]?.last)
    #expect(world.records.first?.end.reason == recorded && world.records.first?.end.by == .gateway)
  }

  @Test func `a connected call ends with a BYE, and is refused for nothing`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    for reason in HangUpReason.allCases where reason != .localEnd {
      #expect(world.command(call, .hangUp(reason))?.code == .badState)
    }
    #expect(world.command(call, .hangUp(.localEnd)) == nil)
    #expect(world.trunkReceived.last == "BYE" && world.received[phone]?.last == "call.ended localEnd")
  }

  @Test func `a transfer is requested of the trunk, to a number or a user, and the app is notified of its progress`() throws {
    let world = Surroundings { _, routing in routing.trunks[0].rules.allowsTransfer = true }
    let (leg, call) = try world.connected()
    #expect(world.command(call, .transferToUser("nobody"))?.code == .notFound)
    #expect(world.command(call, .transfer(CallTransfer(target: Handle(k: .phone, h: "112"))))?.code == .emergency)
    #expect(world.command(call, .transferToUser("bob")) == nil)
    #expect(world.trunkReceived.last == "REFER sip:+15551230009@127.0.0.1:5080")
    #expect(world.command(call, .transferToUser("bob"))?.code == .badState, "one at a time")
    world.feed(.sip(.referAnswered(leg, code: 202)))
    world.feed(.sip(.referProgress(leg, code: 486, isFinal: true)))
    #expect(world.received[phone]?.suffix(2).contains("call.transferred failed") == true)
    #expect(world.command(call, .transfer(CallTransfer(target: Handle(k: .phone, h: "+15558880000")))) == nil)
    #expect(world.trunkReceived.last == "REFER sip:+15558880000@127.0.0.1:5080")
  }

  @Test func `a trunk that accepts no transfers gets no request for one`() throws {
    let world = Surroundings()
    let (_, call) = try world.connected()
    #expect(world.command(call, .transferToUser("bob"))?.code == .unsupported)
  }
}
