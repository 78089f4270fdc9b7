import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

@Suite struct ProvisionalResponseTests {
  private let ringing = Provisional(code: 180)
  private let progress = Provisional(code: 183, sdp: "sdp")
  private func reliable(_ number: UInt32, sdp: Bool = true, wantsAnswer: Bool = false) -> ReliableResponse {
    ReliableResponse(bytes: Array("183".utf8), flow: udp, number: number, hasSDP: sdp, wantsAnswer: wantsAnswer)
  }

  @Test func `inputs before any response change nothing`() {
    var (responses, step) = (ProvisionalResponses(), Step.at(0))
    responses.fired(of: leg1, &step)
    responses.acknowledged(of: leg1, &step)
    holds(responses.resume() == nil && !responses.deferAnswer("sdp"))
    #expect(step.isQuiet && responses.response(1) == nil && responses.nextNumber == nil && !responses.isExchangeComplete)
  }

  @Test func `the rule decides what is sent reliably`() {
    for (rule, with, without) in [
      (TrunkRules.Reliability.off, false, false), (.supported, true, false), (.required, true, true),
    ] {
      var responses = ProvisionalResponses(rule)
      #expect(responses.begin(progress) == .init(isReliable: with, sdp: "sdp"))
      #expect(responses.begin(ringing) == .init(isReliable: without, sdp: nil))
    }
  }

  @Test func `one reliable response waits at a time, doubled without bound; further ones are queued up to the limit`() {
    var (responses, step) = (ProvisionalResponses(.required), Step.at(0))
    responses.sent(reliably: reliable(7), of: leg1, &step)
    for _ in 0...Limits.waitingProvisionals { holds(responses.begin(ringing) == nil) }
    for (at, next) in [(500, 1_500), (1_500, 3_500), (3_500, 7_500), (7_500, 15_500)] {
      step = Step.at(at, after: step)
      responses.fired(of: leg1, &step)
      #expect(step.sent.count == 1 && step.due.contains("\(next) reliable") && step.due.contains("32000 unacknowledged"))
    }
    #expect(responses.response(6) == nil && responses.response(7) != nil && responses.nextNumber == 8)
    for _ in 0..<2 { responses.acknowledged(of: leg1, &step) }
    #expect(responses.response(7) == nil && responses.isExchangeComplete && step.timers.count == 0)
    for _ in 0..<Limits.waitingProvisionals { holds(responses.resume() == .provisional(ringing)) }
    holds(responses.resume() == nil)
  }

  @Test func `the 200 waits for the PRACK of a response with SDP only, and takes precedence over queued ones`() {
    var (responses, step) = (ProvisionalResponses(.required), Step.at(0))
    responses.sent(reliably: reliable(7, sdp: false), of: leg1, &step)
    holds(!responses.deferAnswer("answer"))
    responses.acknowledged(of: leg1, &step)
    responses.sent(reliably: reliable(8), of: leg1, &step)
    holds(responses.begin(ringing) == nil && responses.deferAnswer("answer") && responses.hasDeferredAnswer)
    holds(responses.begin(ringing) == nil && responses.resume() == nil)
    responses.acknowledged(of: leg1, &step)
    holds(responses.resume() == .answer(sdp: "answer") && !responses.hasDeferredAnswer)
  }

  @Test func `an offer answered in a PRACK leaves later responses without a description`() {
    var (responses, step) = (ProvisionalResponses(.required), Step.at(0))
    responses.sent(reliably: reliable(7, wantsAnswer: true), of: leg1, &step)
    responses.acknowledged(of: leg1, &step)
    #expect(responses.isAnswered && responses.begin(progress) == .init(isReliable: true, sdp: nil))
  }

  @Test func `after the 200 nothing is repeated, and a late PRACK is recognised once`() {
    var (responses, step) = (ProvisionalResponses(.supported), Step.at(0))
    responses.sent(ringing, of: leg1, &step)
    #expect(step.due == ["60000 provisional"] && responses.repeated == ringing)
    responses.sent(reliably: reliable(7, sdp: false), of: leg1, &step)
    #expect(responses.repeated == nil && !step.due.contains("60000 provisional"))
    for _ in 0..<2 { responses.finish(of: leg1, &step) }
    responses.fired(of: leg1, &step)
    #expect(step.isQuiet && responses.response(7) != nil)
    responses.acknowledged(of: leg1, &step)
    holds(responses.response(7) == nil && responses.resume() == nil)
  }
}

@Suite struct UnacknowledgedAnswerTests {
  private let ok = UnacknowledgedAnswer.Answer(
    bytes: Array("200".utf8), flow: udp, sequence: 4, wantsAnswer: false, isReinvite: false)

  @Test func `without an answer nothing is sent, and no ACK belongs to it`() {
    var (answer, step) = (UnacknowledgedAnswer(), Step.at(0))
    answer.fired(of: leg1, &step)
    answer.move(to: tcp)
    answer.stop(of: leg1, &step)
    #expect(step.isQuiet && !answer.isWaiting && answer.answer(4) == nil)
  }

  @Test func `the 2xx is sent again up to T2 until the ACK with its CSeq; the BYE stays until it is sent`() {
    var (answer, step) = (UnacknowledgedAnswer(), Step.at(0))
    answer.start(ok, of: leg1, &step)
    for (at, next) in [(500, 1_500), (1_500, 3_500), (3_500, 7_500), (7_500, 11_500)] {
      step = Step.at(at, after: step)
      answer.fired(of: leg1, &step)
      #expect(step.sent.count == 1 && step.due.contains("\(next) answer"))
    }
    answer.deferBye(nil)
    #expect(answer.answer(3) == nil && answer.answer(4) != nil)
    for _ in 0..<2 { answer.stop(of: leg1, &step) }
    #expect(step.timers.count == 0 && !answer.isWaiting && answer.deferredBye != nil)
    answer.end(of: leg1, &step)
    #expect(answer.deferredBye == nil)
  }

  @Test func `a later answer begins with T1 again, on a moved flow`() {
    var (answer, step) = (UnacknowledgedAnswer(), Step.at(0))
    answer.start(ok, of: leg1, &step)
    answer.fired(of: leg1, &step)
    answer.start(ok, of: leg1, &step)
    answer.move(to: flow(.udp, "203.0.113.50:5060"))
    #expect(step.due == ["500 answer", "32000 acknowledgement"])
    answer.fired(of: leg1, &step)
    #expect(step.sent.last == "200 203.0.113.50:5060")
  }
}

@Suite struct OfferExchangeTests {
  private let peer = PeerOffer(transaction: 1, method: .invite, sequence: 2, isLateOffer: false)

  @Test func `ends without an offer change nothing`() {
    var offers = OfferExchange()
    offers.accepted()
    offers.failed()
    offers.acknowledged()
    holds(!offers.claim() && !offers.glareOver() && offers.closePeerOffer() == nil)
    #expect(offers.isIdle && !offers.hasOpenOffer && offers.mayRaise)
  }

  @Test func `one offer is open at a time, and a wanted one is claimed once`() {
    var offers = OfferExchange()
    offers.received(peer)
    offers.want()
    holds(!offers.claim() && !offers.begin(.reinvite) && !offers.isIdle && !offers.hasOpenOffer)
    holds(offers.closePeerOffer()?.transaction == 1 && offers.closePeerOffer() == nil)
    holds(offers.claim() && !offers.claim() && offers.begin(.reinvite) && !offers.begin(.reinvite) && !offers.begin(.update))
    #expect(offers.hasOpenOffer && offers.isOurOfferOpen)
    offers.accepted()
    offers.awaitAcknowledgement()
    holds(offers.hasOpenOffer && !offers.begin(.reinvite))
    offers.acknowledged()
    #expect(offers.isIdle)
  }

  @Test func `an UPDATE that refreshes is not an offer, and may cross the peer's`() {
    var offers = OfferExchange()
    offers.received(peer)
    holds(offers.begin(.update) && !offers.begin(.update) && !offers.hasOpenOffer && offers.isOurOfferOpen)
  }

  @Test func `a glare is waited out; an offer is wanted after it, or a refresh is due`() {
    for kind in [OfferExchange.Kind.reinvite, .update] {
      var (offers, step) = (OfferExchange(), Step.at(0))
      holds(offers.begin(kind))
      offers.failed()
      holds(offers.retry(kind, after: .seconds(2), of: leg1, &step) && step.due == ["2000 glare"])
      holds(!offers.begin(.reinvite) && !offers.claim() && offers.isWaitingOutGlare)
      holds(offers.glareOver() == (kind == .update) && !offers.glareOver() && offers.claim() == (kind == .reinvite))
    }
  }

  @Test func `an offer is tried a limited number of times, and a success begins the count again`() {
    var (offers, step) = (OfferExchange(), Step.at(0))
    for round in 0..<2 {
      for n in 0..<Limits.offerTries {
        holds(offers.retry(.reinvite, after: .zero, of: leg1, &step), "round \(round), try \(n)")
      }
      holds(round == 1 || !offers.retry(.reinvite, after: .zero, of: leg1, &step))
    }
    offers.accepted()
    holds(offers.retry(.reinvite, after: .zero, of: leg1, &step))
    offers.wantNothing()
    holds(!offers.glareOver() && !offers.claim())
  }

  @Test func `a 422 to an INVITE is answered a limited number of times`() {
    var offers = OfferExchange()
    for _ in 0..<Limits.sessionRaises { offers.raised() }
    #expect(!offers.mayRaise)
  }
}

@Suite struct SessionExpiryTests {
  @Test func `without a timer nothing is due`() {
    var (session, step) = (SessionExpiry(), Step.at(0))
    session.refreshLater(of: leg1, &step)
    session.stop(of: leg1, &step)
    session.start(nil, isEnding: false, of: leg1, &step)
    #expect(step.isQuiet && !session.isRefresher && session.minimum == Limits.sessionSeconds)
  }

  @Test func `the refresher is due at half, both sides end at a third or 32 s before the end`() {
    var (session, step) = (SessionExpiry(), Step.at(0))
    session.start(SessionTimer(seconds: 1_800, isRefresher: true), isEnding: false, of: leg1, &step)
    #expect(step.due == ["900000 refresh", "1768000 sessionEnd"])
    session.start(SessionTimer(seconds: 90, isRefresher: false), isEnding: false, of: leg1, &step)
    #expect(step.due == ["60000 sessionEnd"])
    session.refreshLater(of: leg1, &step)
    #expect(step.due == ["60000 sessionEnd"], "the peer refreshes")
    session.start(SessionTimer(seconds: 90, isRefresher: true), isEnding: true, of: leg1, &step)
    #expect(step.due.isEmpty)
    session.refreshLater(of: leg1, &step)
    #expect(step.due == ["10000 refresh"])
  }

  @Test func `the interval grows to the peer's minimum, never down and not above the limit`() {
    var (session, step) = (SessionExpiry(minimum: 90), Step.at(0))
    session.start(SessionTimer(seconds: 120, isRefresher: true), isEnding: false, of: leg1, &step)
    holds(!session.raise(to: 90) && !session.raise(to: Limits.sessionSecondsMaximum + 1) && session.raise(to: 100))
    #expect(session.timer?.seconds == 120 && session.minimum == 100)
    holds(session.raise(to: 300) && !session.raise(to: 300))
    #expect(session.timer?.seconds == 300)
  }

  @Test func `Allow of the last message counts, and one without Allow changes nothing`() throws {
    var session = SessionExpiry()
    session.received(try Message(Array(request("INVITE", extra: ["Allow: INVITE, UPDATE"]).utf8)))
    session.received(try Message(Array(request("INVITE").utf8)))
    #expect(session.peerAllowsUpdate)
    session.received(try Message(Array(request("INVITE", extra: ["Allow: INVITE"]).utf8)))
    #expect(!session.peerAllowsUpdate)
  }
}

@Suite struct ReferSubscriptionTests {
  @Test func `inputs without a REFER change nothing`() {
    var (refers, step) = (ReferSubscriptions(), Step.at(0))
    refers.accept()
    refers.refuse()
    refers.unsubscribed()
    refers.accepted(of: leg1, &step)
    refers.notified(isOver: false, of: leg1, &step)
    refers.end(of: leg1, &step)
    holds(refers.notify(100) == nil && !refers.isOurs(nil) && !refers.isOpen && !refers.isBusy && step.isQuiet)
  }

  @Test func `the peer's REFER is answered once, notified, and over with a final status`() {
    var refers = ReferSubscriptions()
    refers.receive(5, sequence: 9)
    refers.receive(6, sequence: 10)
    holds(refers.unanswered == 5 && refers.notify(100) == nil, "no NOTIFY before the 202")
    refers.accept()
    refers.refuse()
    holds(refers.unanswered == nil && refers.isBusy && refers.notify(100) == 9 && refers.notify(200) == 9)
    holds(refers.notify(200) == nil && !refers.isBusy)
    refers.receive(7, sequence: 11)
    refers.refuse()
    #expect(!refers.isBusy)
  }

  @Test func `our REFER waits for a first NOTIFY, then for the outcome`() {
    var (refers, step) = (ReferSubscriptions(), Step.at(0))
    holds(refers.begin(sequence: 3) && !refers.begin(sequence: 4))
    refers.accepted(of: leg1, &step)
    #expect(step.due == ["32000 refer"] && refers.isOurs(nil) && refers.isOurs(3) && !refers.isOurs(2))
    for _ in 0..<2 {
      refers.notified(isOver: false, of: leg1, &step)
      #expect(step.due == ["200000 refer"])
      step = Step.at(1_000, after: step)
    }
    refers.notified(isOver: true, of: leg1, &step)
    holds(step.timers.count == 0 && !refers.isOpen && refers.begin(sequence: 8))
  }

  @Test func `a NOTIFY may overtake the 202, even the last one`() {
    for isOver in [false, true] {
      var (refers, step) = (ReferSubscriptions(), Step.at(0))
      holds(refers.begin(sequence: 3))
      refers.notified(isOver: isOver, of: leg1, &step)
      refers.accepted(of: leg1, &step)
      #expect(step.due == (isOver ? [] : ["200000 refer"]))
    }
  }
}
