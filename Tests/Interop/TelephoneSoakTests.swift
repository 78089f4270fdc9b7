import Foundation
import SpeechScore
import Testing
import TrunklineCallKit

@testable import AppleStandIn

extension Interop {
  /// Calls to one telephone, one after the other, most with a fault: the next call lacks what one call does not release.
  @Suite(
    .tags(.audio), .enabled(if: Surroundings.missing == nil || Surroundings.isRequired, "\(Surroundings.missing ?? "")"),
    .serialized)
  struct TelephoneSoakTests {
    private enum Course: CaseIterable {
      case plain, hungUp, cancelled, declined, killed, held, cellular, rerouted, reset
    }

    /// `TELEPHONE_CALLS=100 Scripts/live-tests TelephoneSoak` runs the long form.
    @Test func `calls with faults, one after the other: each one that is answered is heard (AUD-6)`() async throws {
      let count = ProcessInfo.processInfo.environment["TELEPHONE_CALLS"].flatMap(Int.init) ?? 12
      let gateway = try await GatewayUnderTest()
      let site = try await TelephoneUnderTest(gateway, microphone: Tone.middle.samples(seconds: 1))
      try await site.register(isPushed: false)
      for number in 1...count {
        let course = Course.allCases[number % Course.allCases.count]
        try await run(course, gateway, site, "call \(number), \(course)")
        let records = try await gateway.records(number)
        #expect(records.count == number)
        if !site.iphone.isRunning { try await site.register(isPushed: false) }
      }
      #expect(site.iphone.violations == [], "\(site.iphone.log.suffix(100))")
      site.iphone.kill()
      try await gateway.finish()
    }

    private func run(_ course: Course, _ gateway: GatewayUnderTest, _ site: TelephoneUnderTest, _ what: String) async throws {
      let iphone = site.iphone
      let caller = try Peers.caller(
        gateway, says: .low, ["--talk", course == .hungUp ? "1.5" : "60"])
      try #require(await site.rings(), "\(what)\n\(iphone.log.suffix(40))")
      switch course {
      case .cancelled: caller.signal(SIGINT)
      case .declined: iphone.tap(.decline)
      default:
        iphone.tap(.answer)
        #expect(await site.hears(.low), "\(what): not heard\n\(iphone.log.suffix(40))")
      }
      switch course {
      case .plain: iphone.tap(.end)
      case .cancelled, .declined, .hungUp: break
      case .killed:
        iphone.kill()
        try await site.register(isPushed: false)
      case .held, .cellular:
        if course == .held { iphone.tap(.hold(true)) } else { iphone.cellularCall(true) }
        #expect(await eventually(within: 5) { iphone.screen.calls.first?.isHeld == true }, "\(what)")
        if course == .cellular { iphone.cellularCall(false) }
        iphone.tap(.hold(false))
        #expect(await site.hears(.low), "\(what): not heard after the hold\n\(iphone.log.suffix(40))")
        iphone.tap(.end)
      case .rerouted:
        iphone.route(.bluetooth)
        #expect(await site.hears(.low), "\(what): not heard on the new route\n\(iphone.log.suffix(40))")
        iphone.route(.receiver)
        iphone.tap(.end)
      case .reset: iphone.crash(.mediaServices)
      }
      try await caller.finish(within: 15)
      #expect(await site.isIdle(), "\(what)\n\(iphone.log.suffix(40))")
    }
  }
}
