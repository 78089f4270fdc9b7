import Testing
import TrunklineBytes
import TrunklineSRTP

@testable import TrunklineMediaSession

@Suite struct SourcePolicyTests {
  private let other = SocketAddress(IPAddress(192, 0, 2, 1), 31_000)
  private let stranger = SocketAddress(IPAddress(203, 0, 113, 5), 30_000)

  private func taken(_ bench: inout Bench) -> UInt64 { bench.session.statistics().fromTrunk.packets }

  @Test func `signalled_ip takes another port of the signalled address and keeps sending to the SDP address`() throws {
    var bench = try Bench()
    bench.connect()
    for frame in 0..<10 { bench.trunkSays(tone(frame), from: other) }
    #expect(taken(&bench) == 10)
    for frame in 0..<10 { bench.trunkSays(tone(frame), from: Bench.trunkAddress) }
    #expect(taken(&bench) == 10, "a source is learnt once")
    try bench.run(frames: 3)
    #expect(bench.toTrunk.allSatisfy { $0.destination == Bench.trunkAddress })
  }

  @Test func `a stranger's RTP is dropped, counted, and told once with the setting that would take it`() throws {
    var bench = try Bench()
    bench.connect()
    for frame in 0..<10 { bench.trunkSays(tone(frame), from: stranger) }
    #expect(taken(&bench) == 0)
    #expect(bench.session.statistics().fromTrunk.dropped == 10)
    let told = bench.events.compactMap { event -> (SocketAddress, String)? in
      if case .trunkSourceRejected(_, let source, let allowed) = event { (source, allowed) } else { nil }
    }
    #expect(told.count == 1)
    #expect(told.first?.0 == stranger)
    #expect(told.first?.1 == "media_peers: [203.0.113.5]")
  }

  @Test func `media_peers widens what is allowed`() throws {
    let network = try #require(IPNetwork("203.0.113.0/24"))
    var bench = try Bench(peers: [network])
    bench.connect()
    for frame in 0..<10 { bench.trunkSays(tone(frame), from: stranger) }
    #expect(taken(&bench) == 10)
  }

  @Test func `strict takes the signalled address and port only`() throws {
    var bench = try Bench(policy: .strict)
    bench.connect()
    bench.trunkSays(tone(0), from: other)
    #expect(taken(&bench) == 0)
    #expect(
      bench.events.contains {
        if case .trunkSourceRejected(_, _, let allowed) = $0 { allowed == "rtp_source: signalled_ip" } else { false }
      })
    bench.trunkSays(tone(1))
    #expect(taken(&bench) == 1)
  }

  @Test func `symmetric sends to the source it learnt from five packets of a peer`() throws {
    for way in ["peers", "media_peers", "signalling"] {
      var bench = try symmetric {
        switch way {
        case "peers": $0.peers = [IPNetwork("203.0.113.0/24")!]
        case "media_peers": $0.mediaPeers = [IPNetwork("203.0.113.5")!]
        default: $0.signalling = [stranger.ip]
        }
      }
      for frame in 0..<4 { bench.trunkSays(tone(frame), from: stranger) }
      bench.tick()
      #expect(bench.toTrunk.last?.destination == Bench.trunkAddress)
      bench.trunkSays(tone(4), from: stranger)
      bench.tick()
      #expect(bench.toTrunk.last?.destination == stranger, "\(way)")
      for frame in 0..<10 { bench.trunkSays(tone(frame), from: other) }
      #expect(taken(&bench) == 5, "learnt once")
    }
  }

  @Test func `a third host that sends first is neither heard nor sent to, whatever the policy`() throws {
    for policy in [SourcePolicy.signalledIP, .strict, .symmetric] {
      var bench = try Bench(policy: policy) {
        $0.peers = [IPNetwork("192.0.2.0/24")!]
        $0.signalling = [IPAddress(192, 0, 2, 2)]
      }
      bench.connect()
      for frame in 0..<100 {
        bench.trunkSays(tone(frame), from: stranger)
        bench.tick()
      }
      #expect(taken(&bench) == 0 && bench.output.drainDrops(.unexpectedSource) == 100)
      bench.trunkSays(tone(0))
      #expect(taken(&bench) == 1)
      try bench.run(frames: 10, trunk: { tone($0) }, app: { tone($0) })
      #expect(bench.toTrunk.count > 5 && bench.toTrunk.allSatisfy { $0.destination == Bench.trunkAddress }, "\(policy)")
    }
  }

  @Test func `the address that only the SDP names is learnt, and a listed one replaces it from the fifth packet on`() throws {
    let nat = SocketAddress(IPAddress(203, 0, 113, 5), 41_000)
    var bench = try symmetric { $0.signalling = [nat.ip] }
    for frame in 0..<10 { bench.trunkSays(tone(frame), from: other) }
    #expect(taken(&bench) == 10)
    bench.tick()
    #expect(bench.toTrunk.last?.destination == other)
    bench.trunkSays(tone(0), from: nat)
    bench.trunkSays(tone(10), from: other)
    #expect(taken(&bench) == 11, "one stray packet interrupts nothing")
    for frame in 0..<5 { bench.trunkSays(tone(frame), from: nat) }
    for frame in 0..<10 { bench.trunkSays(tone(frame), from: other) }
    #expect(taken(&bench) == 13 && bench.output.sourceTakeovers == 1)
    bench.tick()
    #expect(bench.toTrunk.last?.destination == nat)
    for frame in 0..<10 { bench.trunkSays(tone(frame), from: SocketAddress(nat.ip, 41_002)) }
    #expect(taken(&bench) == 13, "another port is no closer")
  }

  @Test func `of many peers the one that sends the SIP, and before it the SDP's own port, replace another`() throws {
    let (third, pbx) = (SocketAddress(IPAddress(10, 0, 0, 9), 5_000), SocketAddress(IPAddress(10, 0, 0, 5), 40_000))
    var bench = try symmetric {
      $0.peers = [IPNetwork("10.0.0.0/8")!, IPNetwork("192.0.2.1")!]
      $0.signalling = [pbx.ip]
    }
    for (source, accepted) in [(third, 10), (pbx, 16), (third, 0), (Bench.trunkAddress, 16), (pbx, 0), (third, 0)] {
      let before = taken(&bench)
      for frame in 0..<(accepted == 0 ? 20 : accepted == 10 ? 10 : 20) { bench.trunkSays(tone(frame), from: source) }
      #expect(taken(&bench) == before + UInt64(accepted), "\(source)")
    }
  }

  @Test func `a protected trunk spends no decryption on a stranger`() throws {
    let key = SRTPMasterKey(key: [UInt8](repeating: 1, count: 16), salt: [UInt8](repeating: 2, count: 14))
    var bench = try Bench {
      $0.protection = TrunkProtection(profile: .aes128CM_HMAC_SHA1_80, ours: key, theirs: key)
    }
    bench.connect()
    var packet: [UInt8] = [0x80, 0, 0, 1, 0, 0, 0, 1, 0, 0, 9, 9] + [UInt8](repeating: 0x55, count: 170)
    packet.withUnsafeMutableBytes { bench.session.handleTrunk($0, from: stranger, at: bench.now, into: &bench.output) }
    packet = [0x80, 201, 0, 1, 0, 0, 9, 9] + [UInt8](repeating: 0x80, count: 14)
    packet.withUnsafeMutableBytes { bench.session.handleTrunkControl($0, from: stranger, at: bench.now, into: &bench.output) }
    #expect(bench.output.drainDrops(.unexpectedSource) == 2 && bench.output.drainDrops(.badTag) == 0)
  }

  private func symmetric(_ adjust: (inout TrunkLegParameters) -> Void) throws -> Bench {
    var bench = try Bench(policy: .symmetric, adjust: adjust)
    bench.connect()
    return bench
  }

  @Test func `five packets that do not fall in one second teach nothing`() {
    var state = SourcePolicyState(TrunkLegParameters(remote: Bench.trunkAddress, encoding: .pcmu, payloadType: 0))
    var now = Instant.zero
    for _ in 0..<10 {
      let verdict = state.classify(other, at: now)
      #expect(verdict == .accepted)
      now = now + .milliseconds(400)
    }
    #expect(state.learnt == nil)
    for _ in 0..<5 { _ = state.classify(other, at: now) }
    #expect(state.learnt == other)
  }

  @Test func `the signalled address takes over from a candidate, another rival does not`() {
    var state = SourcePolicyState(TrunkLegParameters(remote: Bench.trunkAddress, encoding: .pcmu, payloadType: 0))
    let rival = SocketAddress(Bench.trunkAddress.ip, 31_111)
    #expect(state.classify(other, at: .zero) == .accepted)
    #expect(state.classify(rival, at: .zero) == .rejected)
    #expect(state.classify(Bench.trunkAddress, at: .zero) == .accepted)
    #expect(state.classify(other, at: .zero) == .rejected)
  }

  @Test func `a re-INVITE that moves the media is followed`() throws {
    var bench = try Bench()
    bench.connect()
    try bench.run(frames: 10, trunk: { tone($0) })
    var moved = bench.trunk
    moved.remote = stranger
    bench.command(.setTrunk(Bench.id, moved))
    let before = taken(&bench)
    for frame in 0..<10 { bench.trunkSays(tone(frame), from: stranger) }
    #expect(taken(&bench) == before + 10)
    try bench.run(frames: 2)
    #expect(bench.toTrunk.last?.destination == stranger)
    #expect(bench.toTrunk.isContinuous)
  }
}
