import Testing
import TrunklineAudioCodecs
import TrunklineRTP

@testable import TrunklineMediaSession

/// A receiver is there while something is decoded; commands make it, never packets.
@Suite struct ReceiverLifeTests {
  /// Relaying both ways, after first words that were kept.
  private func relayed() throws -> Bench {
    var bench = try Bench(app: .pcmu)
    bench.prepare()
    bench.command(.lockWinner(Bench.id, Bench.leg))
    try bench.run(frames: 10, app: { tone($0) })
    bench.command(.connect(Bench.id, Bench.leg, keepsFirstWords: true))
    try bench.run(frames: 10, trunk: { tone($0) }, app: { tone($0) })
    #expect(bench.codecFromApp == .pcmu && bench.codecFromTrunk == .pcmu)
    bench.command(.playoutActive(Bench.id))
    try bench.run(frames: 100, trunk: { _ in quiet }, app: { _ in quiet })
    let relays = bench.relaysBothWays
    #expect(relays)
    return bench
  }

  @Test func `a relayed call has none, and what they counted stays`() throws {
    var bench = try relayed()
    #expect(bench.codecFromApp == nil && bench.codecFromTrunk == nil)
    let counts = bench.session.statistics()
    #expect(counts.fromTrunk.playout.fetched >= 10 && counts.fromApp.playout.fetched >= 10)
  }

  @Test func `mute makes one at the command, and it goes when relaying goes on; its counts add up`() throws {
    var bench = try relayed()
    let before = bench.session.statistics().fromApp.playout.fetched
    bench.command(.mute(Bench.id, true))
    #expect(bench.codecFromApp == .pcmu && bench.codecFromTrunk == nil)
    try bench.run(frames: 20, trunk: { tone($0) }, app: { tone($0) })
    let muted = bench.session.statistics().fromApp.playout.fetched
    #expect((before + 15...before + 20).contains(muted))
    bench.command(.mute(Bench.id, false))
    try bench.run(frames: 20, trunk: { tone($0) }, app: { _ in quiet })
    #expect(bench.codecFromApp == nil)
    #expect(bench.session.statistics().fromApp.playout.fetched >= muted)
    let sent = bench.toTrunk.count
    try bench.run(frames: 10, app: { tone($0) })
    #expect(bench.toTrunk.count == sent + 10)
  }

  @Test func `hold makes none towards the app, which hears nothing`() throws {
    var bench = try relayed()
    bench.command(.hold(Bench.id, true))
    #expect(bench.codecFromApp == .pcmu && bench.codecFromTrunk == nil)
    try bench.run(frames: 10, trunk: { tone($0) }, app: { tone($0) })
    bench.command(.hold(Bench.id, false))
    let received = bench.toApp.count
    try bench.run(frames: 10, trunk: { tone($0) }, app: { _ in quiet })
    #expect(bench.toApp.count == received + 10)
    #expect(bench.codecFromApp == nil && bench.codecFromTrunk == nil)
  }

  @Test func `a transcoded call that is held hears the trunk again afterwards`() throws {
    var bench = try Bench()
    bench.connect()
    bench.command(.hold(Bench.id, true))
    try bench.run(frames: 10, trunk: { tone($0) }, app: { tone($0) })
    bench.command(.hold(Bench.id, false))
    bench.heardByApp.removeAll()
    try bench.run(frames: 50, trunk: { tone($0) }, app: { tone($0) })
    #expect(level(bench.heardByApp.suffix(4_000)) > 3_000)
  }

  @Test func `another codec of the trunk gets another receiver at the command`() throws {
    var bench = try relayed()
    var parameters = bench.trunk
    (parameters.encoding, parameters.payloadType) = (.pcma, 8)
    bench.command(.setTrunk(Bench.id, parameters))
    #expect(bench.codecFromApp == .pcmu && bench.codecFromTrunk == .pcma)
  }

  @Test func `legs keep their numbers while memory for more of them is taken`() throws {
    var bench = try Bench()
    bench.prepare()
    for number in 2...17 {
      let local = AppLegLocal(ufrag: "gw\(number)x", password: "gatewaypasswordgateway", ssrc: UInt32(number))
      bench.command(.addAppLeg(Bench.id, AppLegID(raw: UInt32(number)), local))
    }
    for number in 1...16 {
      #expect(bench.session.index(of: AppLegID(raw: UInt32(number))) == number - 1)
      #expect(bench.session.apps.slots[number - 1].id.raw == UInt32(number))
    }
    #expect(bench.session.index(of: AppLegID(raw: 17)) == nil)
    bench.command(.removeAppLeg(Bench.id, AppLegID(raw: 5)))
    let late = AppLegLocal(ufrag: "gwlatex", password: "gatewaypasswordgateway", ssrc: 18)
    bench.command(.addAppLeg(Bench.id, AppLegID(raw: 18), late))
    #expect(bench.session.index(of: AppLegID(raw: 18)) == 4)
    bench.command(.lockWinner(Bench.id, Bench.leg))
    bench.command(.connect(Bench.id, Bench.leg, keepsFirstWords: false))
    try bench.run(frames: 50, trunk: { tone($0) }, app: { tone($0) })
    #expect(level(bench.heardByApp.suffix(4_000)) > 3_000 && level(bench.heardByTrunk.suffix(4_000)) > 3_000)
  }
}

extension Bench {
  /// What is decoded; nil while nothing is.
  fileprivate var codecFromApp: AudioEncoding? { session.uplink.receiver.encoding }
  fileprivate var codecFromTrunk: AudioEncoding? { session.downlink.receiver.encoding }
  fileprivate var relaysBothWays: Bool { session.uplink.relay.isOn && session.downlink.relay.isOn }
}
