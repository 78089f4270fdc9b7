import Foundation
import SpeechScore
import Testing
import TrunklineCallKit

@testable import AppleStandIn

extension Interop {
  /// What happens to a telephone in and around its calls: the SDK on the stand-in in real time, every other party a separate
  /// process.
  @Suite(
    .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct TelephoneCallTests {
    private static func reasons(_ records: [[String: Any]]) -> [String] {
      records.map { ($0["end"] as? [String: Any])?["reason"] as? String ?? "?" }
    }

    @Test(.tags(.audio))
    func `a second call declined, Hold and Accept, ten swaps, End and Accept: one caller is heard, and it is the right one`()
      async throws
    {
      let gateway = try await GatewayUnderTest()
      let site = try await TelephoneUnderTest(gateway, microphone: Tone.middle.samples(seconds: 1))
      let iphone = site.iphone
      try await site.register(isPushed: false)
      let first = try Peers.caller(gateway, says: .low)
      #expect(await site.rings(), "\(iphone.log)")
      iphone.tap(.answer)
      #expect(await site.hears(.low), "\(iphone.log)")

      let declined = try Peers.caller(gateway, says: .high, name: "declined")
      #expect(await site.rings(), "\(iphone.log)")
      iphone.tap(.decline)
      #expect(try await declined.finish(within: 10) != 0, "\(declined.text)")
      #expect(await site.hears(.low), "the first call's sound is gone\n\(iphone.log)")

      let second = try Peers.caller(gateway, says: .high)
      #expect(await site.rings(), "\(iphone.log)")
      iphone.tap(.holdAndAnswer)
      #expect(await site.hears(.high), "\(iphone.log)")
      let ids = iphone.screen.calls.map(\.id)
      try #require(ids.count == 2)
      for swap in 1...10 {
        let (resumed, held) = swap % 2 == 1 ? (ids[0], ids[1]) : (ids[1], ids[0])
        if swap % 3 == 0 {
          // the app's own button: the SDK holds the other call
          await site.resume(resumed)
        } else {
          iphone.tap(exactly: .hold(held, true))
          iphone.tap(exactly: .hold(resumed, false))
        }
        #expect(await site.hears(swap % 2 == 1 ? .low : .high), "swap \(swap)\n\(iphone.log)")
      }
      iphone.tap(exactly: .end(ids[0]))
      #expect(try await first.finish(within: 10) == 0, "\(first.text)")
      #expect(await site.hears(.high), "\(iphone.log)")

      let third = try Peers.caller(gateway, says: .middle)
      #expect(await site.rings(), "\(iphone.log)")
      iphone.tap(.endAndAnswer)
      #expect(await site.hears(.middle), "\(iphone.log)")
      #expect(try await second.finish(within: 10) == 0, "\(second.text)")
      iphone.tap(.end)
      #expect(try await third.finish(within: 10) == 0, "\(third.text)")

      #expect(await site.isIdle())
      #expect(iphone.violations == [] && iphone.recents.count == 4, "\(iphone.log)")
      for tone in [Tone.low, .high] {
        let heard = try Speech.read(gateway.folder + "/\(tone)-heard.wav")
        #expect(Tone.middle.seconds(in: heard) > 0.1, "the caller who says \(tone)")
        #expect(
          Tone.middle.seconds(in: heard) < Double(heard.count) / 8_000 - 0.5, "held, the caller who says \(tone) heard the app")
      }
      iphone.kill()
      #expect(Self.reasons(try await gateway.records(4)) == ["declined", "localEnd", "localEnd", "localEnd"])
      try await gateway.finish()
    }

    @Test(arguments: [true, false])
    func `a cellular call holds ours; the user resumes it, with didActivate and without (R9)`(activates: Bool) async throws {
      let gateway = try await GatewayUnderTest()
      var rules = SystemRules.strict
      rules.activatesAfterUnhold = activates
      let site = try await TelephoneUnderTest(gateway, rules, microphone: Tone.middle.samples(seconds: 1))
      let iphone = site.iphone
      try await site.register(isPushed: false)
      let caller = try Peers.caller(gateway, says: .low)
      #expect(await site.rings(), "\(iphone.log)")
      iphone.tap(.answer)
      #expect(await site.hears(.low), "\(iphone.log)")
      iphone.cellularCall(true)
      #expect(await eventually(within: 5) { iphone.screen.calls.first?.isHeld == true }, "\(iphone.log)")
      #expect(await eventually(within: 5) { try gateway.sum("trunkline_calls", #"state="held""#) >= 0 })
      iphone.cellularCall(false)
      iphone.tap(.hold(false))
      #expect(await site.hears(.low), "\(iphone.log)")
      iphone.tap(.end)
      #expect(try await caller.finish(within: 10) == 0, "\(caller.text)")
      #expect(await site.isIdle() && iphone.violations == [], "\(iphone.log)")
      iphone.kill()
      try await gateway.finish()
    }

    @Test func `a push that comes 20 s late, one that comes twice, and one after the caller hung up`() async throws {
      let service = try await PushServiceUnderTest(.standIn)
      let gateway = try await service.gateway()
      let site = try await TelephoneUnderTest(gateway, microphone: Tone.middle.samples(seconds: 1))
      let iphone = site.iphone
      try await site.register()
      let waiter = try await site.pushes(at: service.apps)
      iphone.lock()
      iphone.kill()

      let patient = try Peers.caller(gateway, says: .low)
      let late = try await waiter.payload()
      try await Task.sleep(for: .seconds(20))  // the case itself
      iphone.push(late)
      #expect(await site.rings(), "\(iphone.log)")
      iphone.push(late)
      iphone.tap(.answer)
      #expect(await site.hears(.low), "\(iphone.log)")
      #expect(iphone.screen.calls.count == 1)
      iphone.tap(.end)
      #expect(try await patient.finish(within: 10) == 0, "\(patient.text)")
      #expect(await site.isIdle())
      iphone.push(late)
      #expect(await eventually(within: 5) { iphone.log.contains { $0.hasSuffix("app pushCompleted id=3") } }, "\(iphone.log)")
      #expect(await site.isIdle(), "\(iphone.log)")

      iphone.kill()
      let short = try Peers.caller(gateway, says: .low, name: "short", ["--talk", "1"])
      let missed = try await waiter.payload()
      short.signal(SIGINT)
      try await short.finish(within: 10)
      _ = try await gateway.records(2, within: 10)
      iphone.push(missed)
      #expect(await eventually(within: 5) { iphone.recents.last?.outcome == .missed }, "\(iphone.log)")
      #expect(await site.isIdle(), "\(iphone.log)")
      #expect(iphone.violations == [], "\(iphone.log)")
      #expect(Self.reasons(gateway.records) == ["localEnd", "callerCancelled"])
      iphone.kill()
      try await gateway.finish()
      try await service.stop()
    }

    @Test func `a browser answers while the telephone rings by push, and the reverse`() async throws {
      let service = try await PushServiceUnderTest(.standIn)
      let gateway = try await service.gateway()
      let site = try await TelephoneUnderTest(gateway, microphone: Tone.middle.samples(seconds: 1))
      let iphone = site.iphone
      try await site.register()
      let waiter = try await site.pushes(at: service.apps)
      iphone.lock()
      iphone.kill()

      let answering = try await Peers.browser(gateway, ["--answer", "--hangup-after", "1"])
      let first = try Peers.caller(gateway, says: .low)
      iphone.push(try await waiter.payload())
      #expect(try await first.finish(within: 20) == 0, "\(first.text)\n\(answering.text)")
      #expect(await site.isIdle(), "\(iphone.log)")
      #expect(try await gateway.records(1).first?["device"] as? String == "web")
      #expect(iphone.recents.last?.outcome == .answeredElsewhere, "\(iphone.log)")
      try await answering.finish(within: 20)

      iphone.kill()
      let watching = try await Peers.browser(gateway, ["--seconds", "60"])
      let second = try Peers.caller(gateway, says: .low)
      _ = try await watching.event("call", within: 10)
      iphone.push(try await waiter.payload())
      #expect(await site.rings(), "\(iphone.log)")
      iphone.tap(.answer)
      #expect(await site.hears(.low), "\(iphone.log)")
      _ = try await watching.event("state", within: 5) { $0["reason"] as? String == "answeredElsewhere" }
      iphone.tap(.end)
      #expect(try await second.finish(within: 10) == 0, "\(second.text)")
      #expect(try await gateway.records(2).last?["device"] as? String == "cell")
      #expect(await site.isIdle() && iphone.violations == [], "\(iphone.log)")
      watching.signal(SIGTERM)
      try await watching.finish(within: 10)
      iphone.kill()
      try await gateway.finish()
      try await service.stop()
    }

    @Test func `the gateway is killed in a call and started again: the call ends with that reason, and the next one is heard`()
      async throws
    {
      let gateway = try await GatewayUnderTest()
      let site = try await TelephoneUnderTest(gateway, microphone: Tone.middle.samples(seconds: 1))
      let iphone = site.iphone
      try await site.register(isPushed: false)
      let cut = try Peers.caller(gateway, says: .low, name: "cut")
      #expect(await site.rings(), "\(iphone.log)")
      iphone.tap(.answer)
      #expect(await site.hears(.low), "\(iphone.log)")
      gateway.process.signal(SIGKILL)
      try await gateway.process.finish(within: 5)
      try await gateway.restart()
      #expect(await site.isIdle(within: 10), "\(iphone.log)")
      cut.signal(SIGKILL)
      try await cut.finish(within: 5)
      #expect(Self.reasons(try await gateway.records(1)) == ["gatewayRestart"])

      let next = try Peers.caller(gateway, says: .high)
      #expect(await site.rings(within: 10), "\(iphone.log)")
      iphone.tap(.answer)
      #expect(await site.hears(.high), "\(iphone.log)")
      iphone.tap(.end)
      #expect(try await next.finish(within: 10) == 0, "\(next.text)")
      #expect(await site.isIdle() && iphone.violations == [], "\(iphone.log)")
      iphone.kill()
      gateway.process.signal(SIGTERM)
      #expect(try await gateway.process.finish(within: 10) == 0)
    }

    @Test func `the login token expires in a call: the call continues, and a new token serves the next one`() async throws {
      let gateway = try await GatewayUnderTest()
      // the gateway accepts a token for 30 s after its expiry
      let short = try await gateway.shortToken("alice", "cell", validFor: -27)
      let (lasting, asked, given) = (try await gateway.token("alice", "cell"), Counter(), Counter())
      let site = try await TelephoneUnderTest(gateway, microphone: Tone.middle.samples(seconds: 1)) {
        if asked.next() == 1 { return short }
        // the backend fails until the token has long expired
        if await !eventually(within: 6, { asked.isOpen }) { throw Spawned.Failure(description: "the backend is away") }
        given.open()
        return lasting
      }
      let iphone = site.iphone
      try await site.register(isPushed: false)
      let caller = try Peers.caller(gateway, says: .low)
      #expect(await site.rings(), "\(iphone.log)")
      iphone.tap(.answer)
      #expect(await site.hears(.low), "\(iphone.log)")
      try await Task.sleep(for: .seconds(4))  // the token has expired now
      #expect(await site.hears(.low), "the token's end ended the call\n\(iphone.log)")
      asked.open()
      iphone.tap(.end)
      #expect(try await caller.finish(within: 10) == 0, "\(caller.text)")
      #expect(await site.isIdle())
      // the backend is asked once in 10 s; by then the session of the old token has ended, or continues with the new one
      #expect(await eventually(within: 30) { given.isOpen }, "\(iphone.log)")
      #expect(await eventually(within: 10) { try gateway.metric(#"trunkline_app_sessions{state="connected"}"#) == 1 })
      let next = try Peers.caller(gateway, says: .high)
      let trace = await site.app?.trace ?? []
      #expect(await site.rings(within: 15), "\(iphone.log)\n\(trace)")
      iphone.tap(.answer)
      #expect(await site.hears(.high), "\(iphone.log)")
      iphone.tap(.end)
      #expect(try await next.finish(within: 10) == 0, "\(next.text)")
      #expect(await site.isIdle() && iphone.violations == [], "\(iphone.log)")
      iphone.kill()
      try await gateway.finish()
    }

    @Test func `logged out: no push is sent, and a late one names no caller and stops ringing`() async throws {
      let service = try await PushServiceUnderTest(.standIn)
      let gateway = try await service.gateway()
      let site = try await TelephoneUnderTest(gateway)
      let iphone = site.iphone
      try await site.register()
      let waiter = try await site.pushes(at: service.apps)
      iphone.background()
      let caller = try Peers.caller(gateway, says: .low)
      let late = try await waiter.payload()
      caller.signal(SIGINT)
      try await caller.finish(within: 10)
      _ = try await gateway.records(1, within: 10)
      #expect(await site.isIdle())
      await site.app?.logOut()
      #expect(await site.app?.state == .loggedOut)
      let pushes = service.requests.count
      let refused = try Peers.caller(gateway, says: .high)
      #expect(try await refused.finish(within: 10) != 0, "\(refused.text)")
      #expect(service.requests.count == pushes)
      let before = iphone.recents.count
      iphone.push(late)
      #expect(await eventually(within: 5) { iphone.recents.count == before + 1 }, "\(iphone.log)")
      #expect(await site.isIdle(), "\(iphone.log)")
      #expect(iphone.recents.last?.caller.name == nil && iphone.recents.last?.caller.handle.contains("555777") == false)
      #expect(iphone.violations == [], "\(iphone.log)")
      iphone.kill()
      try await gateway.finish()
      try await service.stop()
    }
  }
}
