import Testing
import TrunklineBytes
import TrunklineRTP
import TrunklineSRTP

@testable import TrunklineMediaSession

@Suite struct LegLifeTests {
  private func names(_ bench: borrowing Bench) -> [String] { bench.events.map { "\($0)".split(separator: "(")[0].description } }

  @Test func `a nominated pair and keys are told once each`() throws {
    var bench = try Bench()
    bench.prepare()
    bench.check(nominate: true)
    #expect(names(bench).filter { $0 == "nominated" }.count == 1)
    #expect(names(bench).filter { $0 == "keysInstalled" }.count == 1)
    #expect(bench.toAppOther.count == 2, "each check was answered")
  }

  @Test func `a check with a wrong password is dropped and counted`() throws {
    var bench = try Bench()
    bench.prepare()
    bench.check(nominate: true, from: SocketAddress(IPAddress(203, 0, 113, 1), 1), password: "wrong")
    let dropped = bench.output.drainDrops(.badIntegrity)
    #expect(dropped == 1)
    #expect(names(bench).filter { $0 == "nominated" }.count == 1)
  }

  @Test func `DTLS is taken from validated addresses only`() throws {
    var bench = try Bench()
    bench.prepare()
    bench.handshakes = []
    var hello: [UInt8] = [20, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]  // one that a client sends
    hello.withUnsafeMutableBytes { bench.appDatagram($0, from: SocketAddress(IPAddress(203, 0, 113, 1), 1)) }
    #expect(bench.handshakes.isEmpty)
    hello.withUnsafeMutableBytes { bench.appDatagram($0) }
    #expect(bench.handshakes.count == 1)
  }

  @Test func `a forged packet neither counts as life nor ends the call`() throws {
    var bench = try Bench()
    bench.connect()
    var forged = [UInt8](repeating: 0x80, count: 60)
    for _ in 0..<10 {
      forged.withUnsafeMutableBytes { bench.appDatagram($0) }
      bench.now = bench.now + .seconds(2)
      bench.tick()
    }
    #expect(bench.session.statistics().fromApp.dropped == 10)
    #expect(names(bench).contains("appLegSilent"))
  }

  @Test func `an app leg is silent after 15 s and back with its next authentic packet`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 10, app: { tone($0) })
    let last = bench.now
    while !names(bench).contains("appLegSilent"), bench.now - last < .seconds(30) { bench.tick() }
    #expect(abs((bench.now - last).milliseconds - 15_000) <= 60)
    bench.check(nominate: false)
    #expect(names(bench).contains("appLegBack"))
  }

  @Test func `a trunk is silent after 20 s, not while held, not before it was ever heard`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 1_100)
    #expect(!names(bench).contains("trunkSilent"), "never seen")
    try bench.run(frames: 5, trunk: { tone($0) })
    bench.command(.hold(Bench.id, true))
    try bench.run(frames: 1_100)
    #expect(!names(bench).contains("trunkSilent"), "held")
    bench.command(.hold(Bench.id, false))
    try bench.run(frames: 5, trunk: { tone($0) })
    try bench.run(frames: 990)
    #expect(!names(bench).contains("trunkSilent"))
    try bench.run(frames: 20)
    #expect(names(bench).filter { $0 == "trunkSilent" }.count == 1)
    bench.trunkSays(tone(0))
    #expect(names(bench).contains("trunkBack"))
  }

  @Test func `after the process was stopped no leg is silent at once: packets that arrived meanwhile wait in the sockets`() throws
  {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 5, trunk: { tone($0) }, app: { tone($0) })
    bench.now = bench.now + .seconds(25)
    let resumed = bench.now
    bench.tick()
    #expect(!names(bench).contains("appLegSilent") && !names(bench).contains("trunkSilent"))
    while !names(bench).contains("trunkSilent"), bench.now - resumed < .seconds(30) { bench.tick() }
    #expect(abs((bench.now - resumed).milliseconds - 20_000) <= 60)
  }

  @Test func `new keys take over at their first valid packet`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 10, app: { tone($0) })
    var moved = bench.app
    moved.generation = 2
    bench.command(.setAppRemote(Bench.id, Bench.leg, moved, newLocal: nil, newAssociation: true))
    let fresh = Bench.keyMaterial(77)
    bench.complete(Bench.keyMaterial(88), association: 0)  // of the association that is gone
    bench.complete(fresh, association: 1)
    try bench.run(frames: 10, trunk: { tone($0) }, app: { tone($0) })
    let before = bench.session.statistics().fromApp.packets
    #expect(before == 20, "the old keys still serve")
    bench.appSender = try SRTPSender(fresh.profile, fresh.client)
    bench.appReceiver = try SRTPReceiver(fresh.profile, fresh.server)
    try bench.run(frames: 10, trunk: { tone($0) }, app: { tone($0) })
    #expect(bench.session.statistics().fromApp.packets == 30)
    #expect(bench.toApp.isContinuous)
  }

  @Test func `a restart with the same fingerprint keeps the keys and answers both names`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 10, trunk: { tone($0) }, app: { tone($0) })
    var moved = bench.app
    (moved.generation, moved.ufrag) = (2, "app2")
    let local = AppLegLocal(ufrag: "gwu9", password: "anotherpasswordanother", ssrc: 0xabcd_0001)
    bench.command(.setAppRemote(Bench.id, Bench.leg, moved, newLocal: local, newAssociation: false))
    #expect(bench.session.localUfrags(of: Bench.leg) == ["gwuf", "gwu9"])
    let newPath = SocketAddress(IPAddress(198, 51, 100, 77), 6_000)
    bench.check(nominate: true, from: newPath, ufrag: "gwu9", sender: "app2", password: "anotherpasswordanother")
    try bench.run(frames: 10, trunk: { tone($0) }, app: { tone($0) })
    #expect(bench.toApp.last?.destination == newPath)
    #expect(bench.toApp.isContinuous)
    let generations = bench.events.compactMap { if case .nominated(_, _, let generation, _) = $0 { generation } else { nil } }
    #expect(generations == [1, 2])
  }

  @Test func `a device that prepares again before the call starts over: pair and keys`() throws {
    var bench = try Bench()
    bench.prepare()
    var again = bench.app
    (again.generation, again.ufrag) = (2, "app2")
    bench.command(.setAppRemote(Bench.id, Bench.leg, again, newLocal: nil, newAssociation: true))
    bench.command(.lockWinner(Bench.id, Bench.leg))
    bench.command(.connect(Bench.id, Bench.leg, keepsFirstWords: false))
    try bench.run(frames: 10, trunk: { tone($0) })
    #expect(bench.toApp.isEmpty, "no pair, no keys")
    bench.check(nominate: true)  // of the process that is gone
    bench.check(nominate: true, sender: "app2")
    let fresh = Bench.keyMaterial(77)
    bench.complete(fresh, association: 1)
    bench.appReceiver = try SRTPReceiver(fresh.profile, fresh.server)
    try bench.run(frames: 10, trunk: { tone($0) })
    #expect(bench.toApp.count >= 9, "the new keys serve at once")
    // the gate waits for the pair of the description that it was given last
    let generations = bench.events.compactMap { if case .nominated(_, _, let generation, _) = $0 { generation } else { nil } }
    #expect(generations == [1, 2])
  }

  @Test func `a failed handshake is told once`() throws {
    var bench = try Bench()
    bench.prepare()
    let key = HandshakeKey(session: Bench.id, leg: Bench.leg, association: 0)
    for _ in 0..<2 { bench.session.handle(.failed(key, .fingerprintMismatch), at: bench.now, into: &bench.output) }
    bench.collect()
    #expect(names(bench).filter { $0 == "appLegFailed" }.count == 1)
  }

  @Test func `close answers once with statistics and ends the association`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 50, trunk: { tone($0) }, app: { tone($0) })
    bench.handshakes = []
    bench.command(.close(Bench.id))
    bench.command(.close(Bench.id))
    try bench.run(frames: 5, trunk: { tone($0) }, app: { tone($0) })
    let closed = bench.events.compactMap { if case .closed(_, let statistics) = $0 { statistics } else { nil } }
    #expect(closed.count == 1)
    #expect(closed.first?.fromTrunk.packets == 50 && closed.first?.fromApp.packets == 50)
    #expect(closed.first?.srtpProfile == "SRTP_AEAD_AES_128_GCM")
    #expect((closed.first?.fromTrunk.meanOpinionScore ?? 0) > 4)
    #expect(bench.handshakes.count == 1)
  }

  @Test func `firstAudio is told once per direction, for sound and not for silence`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 20, trunk: { _ in quiet }, app: { _ in quiet })
    #expect(!names(bench).contains("firstAudio"))
    try bench.run(frames: 20, trunk: { tone($0) }, app: { tone($0) })
    #expect(names(bench).filter { $0 == "firstAudio" }.count == 2)
  }
}

@Suite struct ReportTests {
  @Test func `a trunk has a sender report about every five seconds, an app each second; both measure the round trip`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 1_000, trunk: { tone($0) }, app: { tone($0) })
    #expect((3...8).contains(bench.toTrunkControl.count))
    // 20 s of one every 0.5 to 1.5 s.
    #expect((13...40).contains(bench.toAppControl.count))
    var reader = RTCPReader()
    let report = try #require(bench.toTrunkControl.last)
    guard case .senderReport(let source, let info, let blocks) = try reader.next(in: report.span) else {
      Issue.record("no sender report")
      return
    }
    #expect(source.raw == bench.toTrunk.last?.header.ssrc.raw)
    #expect(info.packets > 0)
    #expect(blocks.block(0, in: report.span)?.source.raw == 0x1234)
    // The trunk's report about our stream, 40 ms after ours.
    let block = ReportBlock(
      source: source, fractionLost: 26, cumulativeLost: 3, highestSequence: 9, jitter: 8, lastSenderReport: info.ntp.middle,
      delaySinceLastSenderReport: 0)
    var writer = RTCPWriter()
    var datagram = [UInt8](repeating: 0, count: 200)
    var span = datagram.mutableSpan
    _ = writer.report(from: SSRC(raw: 0x1234), sender: nil, block: block, into: &span)
    let sentAt = Double(info.ntp.middle) / 65_536
    let nowAt = Double(bench.session.wallClock(bench.now).middle) / 65_536
    datagram[..<writer.count].withUnsafeBytes {
      bench.session.handleTrunkControl($0, from: SocketAddress(Bench.trunkAddress.ip, 30_001), at: bench.now, into: &bench.output)
    }
    let statistics = bench.session.statistics().fromTrunk
    #expect(abs((statistics.roundTripMilliseconds ?? -1) - (nowAt - sentAt) * 1_000) < 2)
    #expect(abs((statistics.reportedLossFraction ?? 0) - 0.1) < 0.01)
  }

  @Test func `quality is told every five seconds with loss and a score that falls with it`() throws {
    var bench = try Bench()
    bench.connect()
    for frame in 0..<500 {
      if frame % 10 == 5 {
        bench.trunkSequence &+= 1
        bench.trunkTimestamp &+= 160
      } else {
        bench.trunkSays(speech[frame % speech.count])
      }
      try bench.appSays(speech[frame % speech.count])
      bench.tick()
    }
    let quality = bench.events.compactMap { if case .quality(_, let statistics) = $0 { statistics } else { nil } }
    #expect((1...2).contains(quality.count))
    let last = bench.session.statistics()
    #expect(last.fromTrunk.lost == 50)
    #expect(last.fromTrunk.playout.concealedMilliseconds > 500)
    #expect((last.fromTrunk.meanOpinionScore ?? 9) < (last.fromApp.meanOpinionScore ?? 0))
  }
}
