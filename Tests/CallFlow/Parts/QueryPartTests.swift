import PushPolicy
import Testing
import TrunklineBytes
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

@Suite struct DirectDialogTests {
  private let caller = LegID.direct(1, isOutbound: true)
  private let callee = LegID.direct(1, isOutbound: false)

  private func invite(_ trunk: Routing.Trunk = Routing.direct) -> UserAgent.Command {
    .invite(caller, OutboundInvite(trunk: trunk.peer ?? Surroundings.peer, to: "bob", from: alice, sdp: "offer"))
  }

  /// The events of each command in turn, by their legs' names: an outbound leg is the caller's.
  private func play(_ dialogs: inout DirectDialogs, _ commands: UserAgent.Command...) -> [String] {
    commands.flatMap { dialogs.events(of: $0) }.map { event in
      let side = event.leg.map { $0 == caller ? "caller" : "callee" } ?? "-"
      return side + " " + String("\(event)".prefix { $0 != "(" })
    }
  }

  @Test func `each command becomes the other leg's event, and the end closes both`() {
    var dialogs = DirectDialogs()
    #expect(play(&dialogs, invite()) == ["callee inviteReceived"])
    #expect(play(&dialogs, .respondProvisional(callee, code: 180, reason: nil, sdp: nil)) == ["caller progress"])
    #expect(play(&dialogs, .answer(callee, sdp: "answer")) == ["caller answered", "callee acknowledged"])
    #expect(play(&dialogs, .offer(callee, sdp: "hold"), .answerReinvite(caller, sdp: "held")).count == 2)
    #expect(play(&dialogs, .bye(callee, nil)) == ["caller byeReceived", "caller legClosed", "callee legClosed"])
    #expect(dialogs.isEmpty)
  }

  @Test func `commands that crossed the end, are repeated or belong to no dialog have no effect`() {
    var dialogs = DirectDialogs()
    #expect(play(&dialogs, .answer(callee, sdp: nil), .bye(caller, nil), .cancel(caller, nil), .modify(callee)).isEmpty)
    #expect(dialogs.isEmpty)
    #expect(play(&dialogs, invite(), invite()) == ["callee inviteReceived"])
    #expect(play(&dialogs, .bye(caller, nil), .offer(callee, sdp: "x")).isEmpty, "not confirmed yet")
    _ = play(&dialogs, .answer(callee, sdp: nil))
    #expect(play(&dialogs, .answer(callee, sdp: nil), .cancel(caller, nil)).isEmpty)
    #expect(play(&dialogs, .ping(caller), .bye(caller, nil), .bye(callee, nil)).count == 4 && dialogs.isEmpty)
    #expect(play(&dialogs, .ping(caller)) == ["caller pingAnswered"])
  }

  @Test func `a test call answers itself`() {
    var dialogs = DirectDialogs()
    #expect(play(&dialogs, invite(Routing.test)) == ["caller answered"])
    #expect(play(&dialogs, .modify(caller), .offer(caller, sdp: "a=sendonly")) == ["caller offerWanted", "caller offerAnswered"])
    #expect(play(&dialogs, .bye(caller, nil), .bye(caller, nil)) == ["caller legClosed"] && dialogs.isEmpty)
  }
}

@Suite struct UserCacheTests {
  private let question = UserQuestion.number("+1555")

  @Test func `the first input asks, others wait, and all continue once in their order`() {
    var cache = UserCache()
    #expect(cache.wait(.hangUp(callID(1)), for: question) == .ask && cache.wait(.hangUp(callID(2)), for: question) == .wait)
    #expect(cache.expect(question) == false && cache.waitingCount == 2)
    let calls = cache.removeWaiting(question).map { if case .hangUp(let call) = $0 { call } else { callID(0) } }
    #expect(calls == [callID(1), callID(2)] && cache.removeWaiting(question).isEmpty && cache.waitingCount == 0)
  }

  @Test func `an answer is valid for its time, also one that no input asked for; none is an answer, too`() {
    var cache = UserCache()
    #expect(!cache.isFresh(question, at: .zero) && !cache.isUnanswered(question) && cache.removeWaiting(question).isEmpty)
    cache.hold(question, until: seconds(5), at: .zero)
    #expect(cache.isFresh(question, at: seconds(4)) && !cache.isFresh(question, at: seconds(5)))
    cache.hold(question, until: seconds(9), isAnswered: false, at: seconds(5))
    #expect(cache.isFresh(question, at: seconds(8)) && cache.isUnanswered(question))
    cache.removeAnswers()
    #expect(!cache.isFresh(question, at: seconds(8)) && !cache.isUnanswered(question))
  }

  @Test func `inputs that wait have a limit, and so has the rate of a user's`() {
    var cache = UserCache()
    for call in 0..<Limits.userQuestionsWaiting { holds(cache.wait(.hangUp(callID(call)), for: question) != .full) }
    #expect(cache.wait(.hangUp(callID(1)), for: .user(alice)) == .full && cache.expect(.user(alice)) == false)
    for _ in 0..<Int(Limits.userQuestionBurst) { holds(cache.mayWait(alice, at: .zero)) }
    #expect(cache.mayWait(alice, at: .zero) == false && cache.mayWait("bob", at: .zero) && cache.mayWait(alice, at: seconds(1)))
  }

  @Test func `the INVITE of a caller who gave up is removed once, and the others stay`() {
    var cache = UserCache()
    let invite = InboundInvite(
      trunk: "carrier", source: Surroundings.peer.flow, callID: "a", from: .init(number: "+1"), to: .init(number: "+2"), sdp: nil)
    #expect(cache.removeInvite(.inbound(1)) == nil)
    _ = cache.wait(.sip(.inviteReceived(.inbound(1), invite)), for: question)
    _ = cache.wait(.hangUp(callID(2)), for: question)
    #expect(cache.removeInvite(.inbound(2)) == nil && cache.removeInvite(.inbound(1))?.callID == "a")
    #expect(cache.removeInvite(.inbound(1)) == nil && cache.removeWaiting(question).count == 1 && cache.waitingCount == 0)
  }
}
