import Bytes
import Testing

@testable import MediaSession

@Suite struct SourcePolicyTests {
  private let other = SocketAddress(IPAddress(192, 0, 2, 1), 31_000)
  private let stranger = SocketAddress(IPAddress(203, 0, 113, 5), 30_000)

  private func taken(_ bench: borrowing Bench) -> UInt64 { bench.session.statistics().fromTrunk.packets }

  @Test func `signalled_ip takes another port of the signalled address and keeps sending to the SDP address`() throws {
    var bench = try Bench()
    bench.connect()
    for frame in 0..<10 { bench.trunkSays(tone(frame), from: other) }
    #expect(taken(bench) == 10)
    for frame in 0..<10 { bench.trunkSays(tone(frame), from: Bench.trunkAddress) }
    #expect(taken(bench) == 10, "a source is learnt once")
    try bench.run(frames: 3)
    #expect(bench.toTrunk.allSatisfy { $0.destination == Bench.trunkAddress })
  }

  @Test func `a stranger's RTP is dropped, counted, and told once with the setting that would take it`() throws {
    var bench = try Bench()
    bench.connect()
    for frame in 0..<10 { bench.trunkSays(tone(frame), from: stranger) }
    #expect(taken(bench) == 0)
    #expect(bench.session.statistics().fromTrunk.dropped == 10)
    let told = bench.events.compactMap { event -> (SocketAddress, String)? in
      if case .trunkSourceRejected(_, let source, let allowed) = event { (source, allowed) } else { nil }
    }
    #expect(told.count == 1)
    #expect(told.first?.0 == stranger)
    #expect(told.first?.1 == "media_peers: [203.0.113.5] or rtp_source: symmetric")
  }

  @Test func `media_peers widens what is allowed`() throws {
    let network = try #require(IPNetwork("203.0.113.0/24"))
    var bench = try Bench(peers: [network])
    bench.connect()
    for frame in 0..<10 { bench.trunkSays(tone(frame), from: stranger) }
    #expect(taken(bench) == 10)
  }

  @Test func `strict takes the signalled address and port only`() throws {
    var bench = try Bench(policy: .strict)
    bench.connect()
    bench.trunkSays(tone(0), from: other)
    #expect(taken(bench) == 0)
    #expect(
      bench.events.contains {
        if case .trunkSourceRejected(_, _, let allowed) = $0 { allowed == "rtp_source: signalled_ip" } else { false }
      })
    bench.trunkSays(tone(1))
    #expect(taken(bench) == 1)
  }

  @Test func `symmetric sends to the source it learnt from five packets`() throws {
    var bench = try Bench(policy: .symmetric)
    bench.connect()
    for frame in 0..<4 { bench.trunkSays(tone(frame), from: stranger) }
    bench.tick()
    #expect(bench.toTrunk.last?.destination == Bench.trunkAddress)
    bench.trunkSays(tone(4), from: stranger)
    bench.tick()
    #expect(bench.toTrunk.last?.destination == stranger)
    for frame in 0..<10 { bench.trunkSays(tone(frame), from: other) }
    #expect(taken(bench) == 5, "learnt once")
  }

  @Test func `five packets that do not fall in one second teach nothing`() {
    var state = SourcePolicyState(TrunkLegParameters(remote: Bench.trunkAddress, encoding: .pcmu, payloadType: 0))
    var now = Instant.zero
    for _ in 0..<10 {
      let verdict = state.judge(other, at: now)
      #expect(verdict == .accepted)
      now = now + .milliseconds(400)
    }
    #expect(state.learnt == nil)
    for _ in 0..<5 { _ = state.judge(other, at: now) }
    #expect(state.learnt == other)
  }

  @Test func `the signalled address takes over from a candidate, another rival does not`() {
    var state = SourcePolicyState(TrunkLegParameters(remote: Bench.trunkAddress, encoding: .pcmu, payloadType: 0))
    let rival = SocketAddress(Bench.trunkAddress.ip, 31_111)
    #expect(state.judge(other, at: .zero) == .accepted)
    #expect(state.judge(rival, at: .zero) == .rejected)
    #expect(state.judge(Bench.trunkAddress, at: .zero) == .accepted)
    #expect(state.judge(other, at: .zero) == .rejected)
  }

  @Test func `a re-INVITE that moves the media is followed`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 10, trunk: { tone($0) })
    var moved = bench.trunk
    moved.remote = stranger
    bench.command(.setTrunk(Bench.id, moved))
    let before = taken(bench)
    for frame in 0..<10 { bench.trunkSays(tone(frame), from: stranger) }
    #expect(taken(bench) == before + 10)
    try bench.run(frames: 2)
    #expect(bench.toTrunk.last?.destination == stranger)
    #expect(bench.toTrunk.isContinuous)
  }
}
