import Testing
import TrunklineBytes

@testable import TrunklineClientMachines

@Suite struct CallLinkTests {
  private func waiting() -> CallLink {
    var link = CallLink()
    link.waits(from: seconds(1))
    return link
  }

  @Test func `a pushed call waits 15 s, 20 s from its tap, and no longer once it is offered`() {
    var link = waiting()
    #expect(link.deadline == seconds(16))
    link.tapped(at: seconds(3))
    #expect(link.deadline == seconds(23))
    link.offered()
    link.tapped(at: seconds(4))
    #expect(link.deadline == nil, "the tap has its own deadline")
    link = waiting()
    link.started(at: "n1")
    #expect(link.deadline == nil && link.node == "n1" && link.session == SessionTable.own)
  }

  @Test func `a call without its session ends soon, if it is connected only without media`() {
    for (isConnected, hasFailedMedia, end) in [(false, false, 17), (false, true, 17), (true, true, 32), (true, false, nil)]
      as [(Bool, Bool, Double?)]
    {
      var link = CallLink()
      link.belongs(to: 3, at: "n1")
      link.lost(isConnected: isConnected, hasFailedMedia: hasFailedMedia, at: seconds(2))
      link.lost(isConnected: false, hasFailedMedia: false, at: seconds(9))
      #expect(link.deadline == end.map(seconds) && link.hasNoSession && link.isUnreachable, "repeated")
      #expect(link.session == SessionTable.own && link.node == "n1")
    }
  }

  @Test func `media without a session delays the end, and ends the wait; with a session it does neither`() {
    var link = waiting()
    link.mediaFailed(at: seconds(5))
    link.mediaConnected()
    #expect(link.deadline == seconds(16))
    link.lost(isConnected: true, hasFailedMedia: false, at: seconds(6))
    link.mediaFailed(at: seconds(7))
    #expect(link.deadline == seconds(37))
    link.mediaConnected()
    #expect(link.deadline == nil && link.hasNoSession)
  }

  @Test func `a session that names the call has it, and its wait ends only if it had none`() {
    var link = waiting()
    link.missing()
    link.belongs(to: 2, at: "n2")
    #expect(link.session == 2 && link.node == "n2" && !link.isMissing && link.deadline == seconds(16))
    link.lost(isConnected: false, hasFailedMedia: false, at: seconds(3))
    link.belongs(to: 4, at: nil)
    #expect(link.session == 4 && link.node == nil && !link.hasNoSession && link.deadline == nil)
    link.assigned(to: 5)
    #expect(link.session == 5)
  }

  @Test func `a call rings alone for 60 s, unless it waits already, and rings on when its session is back`() {
    var link = CallLink()
    link.ringsOn()
    #expect(link.deadline == nil)
    link.ringsAlone(at: seconds(1))
    link.ringsAlone(at: seconds(9))
    #expect(link.deadline == seconds(61) && link.isUnreachable && !link.hasNoSession)
    link.ringsOn()
    #expect(link.deadline == nil && !link.isUnreachable)
    link = waiting()
    link.ringsAlone(at: seconds(2))
    link.ringsOn()
    #expect(link.deadline == seconds(16) && !link.isUnreachable, "it had its own deadline")
  }

  @Test func `a call that was given up is rejected once`() {
    var link = waiting()
    holds(!link.claimGivenUp())
    link.giveUp()
    holds(link.claimGivenUp() && !link.claimGivenUp())
  }

  @Test func `a call that its session does not name is missing, until a session names it or its node is another`() {
    var link = CallLink()
    link.missing()
    #expect(link.isMissing)
    link.notMissing()
    #expect(!link.isMissing)
  }
}
