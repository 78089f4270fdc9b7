import Testing
import TrunklineAppProtocol

@testable import CallFlow
@testable import CallModel

@Suite struct CallDiversionTests {
  private let ending = Call.Ending(.unanswered, by: .gateway)

  private func diversions(stated: Int = 0) -> CallDiversions {
    var diversions = CallDiversions(stated: stated)
    diversions.adopt(Diversions([.noAnswer: .init(.user("bob"))]))
    return diversions
  }
  private func to(user: String? = nil, number: String? = nil) -> CallRecord.Diversion {
    var diversion = CallRecord.Diversion(.noAnswer)
    (diversion.user, diversion.number) = (user, number)
    return diversion
  }

  @Test func `only a trigger with a rule plans a diversion, and one at a time`() {
    var diversions = diversions()
    #expect(diversions.plan(.busy, insteadOf: ending) == nil && diversions.planned == nil)
    #expect(diversions.plan(.noAnswer, insteadOf: ending) != nil && diversions.planned?.trigger == .noAnswer)
    #expect(diversions.plan(.noAnswer, insteadOf: ending) == nil, "one is planned")
    diversions.begin(to(user: "bob"), playing: nil)
    #expect(diversions.planned == nil && diversions.made.count == 1 && diversions.recording == nil)
    diversions.adopt(Diversions())
    #expect(diversions.plan(.noAnswer, insteadOf: ending) == nil, "the next user has no rule")
  }

  @Test func `the end of the call cancels what is planned; a cancel of nothing, or again, changes nothing`() {
    var diversions = diversions()
    diversions.cancel()
    _ = diversions.plan(.noAnswer, insteadOf: ending)
    for _ in 0..<2 { diversions.cancel() }
    #expect(diversions.planned == nil && diversions.made.isEmpty)
  }

  @Test func `users and numbers count together with those of the INVITE, codes do not`() {
    var diversions = diversions(stated: Limits.diversions - 2)
    diversions.refuse(.noAnswer, code: 486)
    diversions.begin(to(user: "bob"), playing: nil)
    #expect(!diversions.isTooMany)
    diversions.begin(to(number: "+1"), playing: nil)
    #expect(diversions.isTooMany)
    #expect(diversions.unlisted(beside: 2) == Limits.diversions - 2 && diversions.unlisted(beside: 9) == 0)
  }

  @Test func `another trunk is recorded for the last diversion, and for none nowhere`() {
    var diversions = diversions()
    diversions.continues(over: "b", sipCallID: "x")
    #expect(diversions.made.isEmpty)
    diversions.begin(to(number: "+1"), playing: nil)
    diversions.continues(over: "b", sipCallID: "x")
    #expect(diversions.made.last?.trunk == "b" && diversions.made.last?.sipCallId == "x")
  }
}
