import Testing
import TrunklineBytes
import TrunklineDTLS
import TrunklineICE
import TrunklineSDP
import TrunklineSTUN

@testable import TrunklineClientMachines

/// When a connected call's media takes its path for dead, and when it does not.
@Suite struct ClientMediaSilenceTests {
  private static let phone = SocketAddress(IPAddress(10, 0, 0, 2), 4_000)
  private static let gateway = SocketAddress(IPAddress(198, 51, 100, 7), 40_000)

  /// What the gateway sends.
  enum Sound: CaseIterable { case stream, pause, hold }

  /// Connected media, a gateway that is ICE-lite and answers checks, and a path with seeded loss each way.
  private final class Rig {
    var media: ClientMedia
    var agent: LiteAgent
    var now = Instant.zero
    var output = ClientMedia.Output()
    var random: SplitMix64
    /// In percent, each way; 100: dead.
    var loss: UInt64 = 0
    var silences: [ClientCall.Silence] = []
    var checks = 0
    private var (nextSound, nextReport) = (Instant.zero, Instant.zero)

    init(seed: UInt64) throws {
      let identity = try DTLSIdentity()
      var configuration = try #require(
        ClientMedia.Configuration(localAddresses: [ClientMediaSilenceTests.phone], identity: identity))
      media = ClientMedia(configuration: configuration, random: .seeded(seed))
      random = SplitMix64(seed: seed)
      configuration.localAddresses = [ClientMediaSilenceTests.gateway]
      var gateway = AppNegotiation(
        .gateway, endpoint: ClientMedia.endpoint(configuration, "gateway1", "gatewaypassword123456789", .seeded(2)), sessionID: 1)
      agent = LiteAgent(ufrag: "gateway1", password: "gatewaypassword123456789")
      media.handle(.answer(offer: gateway.makeOffer(), generation: 1), at: now, into: &output)
      run(.stream, for: .seconds(1))
      // as after a handshake and call.connected
      _ = media.path.connected()
      media.handle(.activate(isConnected: true), at: now, into: &output)
    }

    private var isLost: Bool { random.next() % 100 < loss }

    func run(_ sound: Sound, for time: Duration) {
      let end = now + time
      while true {
        let due = min(media.nextDeadline ?? .distantFuture, min(nextSound, nextReport))
        guard due <= end else { break }
        now = max(now, due)
        if nextSound <= now {
          if sound != .hold, !isLost { media.packetReceived(now, isAudio: true, &output) }
          nextSound = now + (sound == .stream ? .milliseconds(20) : .milliseconds(400))
        }
        if nextReport <= now {
          if !isLost { media.packetReceived(now, &output) }
          nextReport = now + .milliseconds(500 + Int64(random.next() % 1_000))
        }
        media.handleTimeout(at: now, into: &output)
        pump()
      }
      now = end
    }

    private func pump() {
      var sent: [[UInt8]] = []
      output.forEachDatagram { bytes, _, _ in sent.append(Array(bytes)) }
      for case .silence(let silence) in output.reports { silences.append(silence) }
      output.removeAll()
      for bytes in sent where bytes[0] < 4 {
        checks += 1
        var reply = [UInt8](repeating: 0, count: 256)
        guard !isLost else { continue }
        let count = bytes.withUnsafeBytes { bytes in
          reply.withUnsafeMutableBytes {
            agent.handle(bytes, from: ClientMediaSilenceTests.phone, at: now, reply: $0).replyCount
          }
        }
        guard count > 0, !isLost else { continue }
        reply.withUnsafeMutableBytes {
          media.receive(
            UnsafeMutableRawBufferPointer(rebasing: $0[..<count]), from: ClientMediaSilenceTests.gateway,
            to: ClientMediaSilenceTests.phone, at: now, into: &output)
        }
      }
      if output.hasDatagrams || !output.reports.isEmpty { pump() }
    }
  }

  @Test(arguments: Sound.allCases, [1, 2, 3] as [UInt64])
  func `an hour of 20 percent loss, of speech, of a pause or of hold, takes no path for dead`(sound: Sound, seed: UInt64) throws {
    let rig = try Rig(seed: seed)
    rig.loss = 20
    rig.run(sound, for: .seconds(3_600))
    #expect(!rig.silences.contains(.stays), "\(rig.silences.count)")
    // Consent every 5 s is 720; asking is for silence.
    #expect(rig.checks < (sound == .hold ? 6_000 : 1_000), "\(rig.checks) checks")
  }

  @Test(arguments: [(Sound.stream, 2_500), (.pause, 4_000), (.hold, 4_000)])
  func `a dead path is asked after 1.5 s and taken for dead where nobody answers`(sound: Sound, milliseconds: Int) throws {
    let rig = try Rig(seed: 5)
    rig.run(sound, for: .seconds(10))
    rig.silences = []
    rig.loss = 100
    rig.run(sound, for: .milliseconds(1_400))
    // in a pause, or of reports, the last one came before the loss
    #expect(rig.silences.isEmpty || sound != .stream)
    rig.run(sound, for: .milliseconds(Int64(milliseconds) - 1_400))
    #expect(rig.silences == [.began, .stays] || sound == .hold && rig.silences.first == .began, "\(rig.silences)")
    rig.run(sound, for: .seconds(20))
    #expect(rig.silences == [.began, .stays], "told once")
    rig.loss = 0
    let checks = rig.checks
    rig.run(.hold, for: .milliseconds(600))
    #expect(rig.silences == [.began, .stays, .ended] && rig.checks - checks <= 2, "the next check is answered")
  }

  @Test func `a call that is not connected, or is over, is not watched`() throws {
    let rig = try Rig(seed: 6)
    rig.media.handle(.close, at: rig.now, into: &rig.output)
    rig.loss = 100
    rig.run(.stream, for: .seconds(10))
    #expect(rig.silences.isEmpty)
  }
}
