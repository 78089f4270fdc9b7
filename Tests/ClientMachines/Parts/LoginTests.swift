import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import TrunklineClientMachines

@Suite struct LoginTests {
  private let accepted = Result<Success, Failure>.success(Success())
  private func refused(_ code: ErrorCode) -> Result<Success, Failure> { .failure(Failure(code)) }
  private func outcome(_ refresh: Login.Refresh?) -> String {
    switch refresh {
    case nil: "none"
    case .accepted?: "accepted"
    case .refused(let wake, let isStale)?: "refused\(isStale ? " stale" : "")\(wake == nil ? "" : " wake")"
    }
  }
  /// `a` is in use, `b` was sent.
  private func renewed(wake: PhoneMachine.Push? = nil) -> Login {
    var login = Login()
    _ = login.accept("a", expires: 100, isInUse: false, at: seconds(1))
    if let former = login.accept("b", expires: 200, isInUse: true, at: seconds(2)) {
      login.sent(id(1), replacing: former, wake: wake)
    }
    return login
  }

  @Test func `the app is asked once at a time, and again after its failure`() {
    var login = Login()
    holds(login.mayAskAgain && login.ask(at: seconds(1)) && !login.ask(at: seconds(2)))
    login.tokenFailed(at: seconds(2))
    #expect(login.isWaiting && login.dueAt == seconds(12))
    login.stopAsking()
    #expect(!login.isWaiting && login.dueAt == nil)
  }

  @Test func `a token that does not expire later than the one in a session is stale, and the app is asked later`() {
    for (text, expires, isStale) in [("a", 200, true), ("b", 100, true), ("b", nil, false), ("b", 101, false)]
      as [(String, Int64?, Bool)]
    {
      var login = Login()
      holds(login.accept("a", expires: 100, isInUse: true, at: seconds(1)) != nil, "the first one")
      holds((login.accept(text, expires: expires, isInUse: true, at: seconds(2)) == nil) == isStale)
      #expect(login.isStale == isStale && login.token?.exposed == (isStale ? "a" : "b") && login.isWaiting == isStale)
      holds(login.accept("a", expires: 100, isInUse: false, at: seconds(3)) != nil && !login.isStale, "no session compares")
    }
  }

  @Test func `an accepted token stays; after a refused one the former is in use again, with the push of its session`() {
    var login = renewed()
    #expect(login.isRefresh(id(1)) && !login.isRefresh(id(2)))
    holds(outcome(login.refreshed(accepted, at: seconds(3))) == "accepted" && login.token?.exposed == "b" && !login.isWaiting)
    holds(outcome(login.refreshed(refused(.auth), at: seconds(3))) == "none" && login.token?.exposed == "b", "repeated")
    login = renewed(wake: push(1))
    holds(outcome(login.refreshed(refused(.auth), at: seconds(3))) == "refused stale wake")
    #expect(login.token?.exposed == "a" && login.isStale && login.isWaiting && !login.isRefresh(id(1)))
    holds(login.accept("c", expires: 150, isInUse: true, at: seconds(4)) != nil, "compared with the former token's time")
  }

  @Test(arguments: [ErrorCode.overload, .tooMany, .server])
  func `a gateway that could not check the token has not refused it`(code: ErrorCode) {
    var login = renewed()
    holds(outcome(login.refreshed(refused(code), at: seconds(3))) == "refused")
    #expect(login.token?.exposed == "a" && !login.isStale && login.isWaiting)
  }

  @Test func `the answer to an older token, or of an ended session, is not awaited`() {
    var login = renewed()
    if let former = login.accept("c", expires: 300, isInUse: true, at: seconds(3)) {
      login.sent(id(2), replacing: former, wake: nil)
    }
    #expect(!login.isRefresh(id(1)) && login.isRefresh(id(2)))
    login.sessionEnded()
    holds(!login.isRefresh(id(2)) && outcome(login.refreshed(refused(.auth), at: seconds(4))) == "none")
    #expect(login.token?.exposed == "c")
  }

  @Test func `after the first refusal of a session the app is asked at once, then later, and at once again when one has helped`()
  {
    var login = renewed()
    holds(login.tokenRefused(at: seconds(3)) && login.token == nil && !login.isWaiting)
    holds(!login.tokenRefused(at: seconds(4)) && login.isWaiting)
    login.helped()
    holds(login.tokenRefused(at: seconds(5)))
  }

  @Test func `a logout is requested once, and its removal is sent again if it was not sent or was lost`() {
    var login = renewed()
    login.removalAsked(id(3))
    login.removalLost()
    #expect(!login.isLoggingOut && !login.needsRemoval && !login.isRemoval(id(3)), "none was requested")
    login.logOut()
    login.removalAsked(nil)
    #expect(login.isLoggingOut && login.needsRemoval)
    login.removalAsked(id(3))
    login.logOut()
    login.removalAsked(id(4))
    #expect(login.isLoggingOut && !login.needsRemoval && login.isRemoval(id(3)) && !login.isRemoval(id(4)))
    login.removalLost()
    #expect(login.needsRemoval && !login.isRemoval(id(3)))
    login.loggedOut()
    login.loggedOut()
    #expect(!login.isLoggingOut && login.token == nil)
  }
}
