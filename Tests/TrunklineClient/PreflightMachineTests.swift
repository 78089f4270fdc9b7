import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineSTUN
import TrunklineTURN

@testable import TrunklineClient

/// What a call needs, tried on virtual time before servers that the test plays.
@Suite struct PreflightMachineTests {
  private static let relayed = SocketAddress("192.0.2.15:50000")!

  private final class Rig {
    var machine: PreflightMachine
    var now = Instant.zero
    var actions: [PreflightMachine.Action] = []

    init(
      _ urls: [String] = [], error: PhoneError? = nil, microphone: MicrophonePermission = .granted, routes: AudioRouteList? = nil
    ) {
      let servers = urls.compactMap { TURNServer(url: $0, username: "u", password: "p") }
      let situation = PreflightMachine.Situation(
        networkError: error, microphone: microphone, routes: routes, servers: servers)
      machine = PreflightMachine(situation, random: .seeded(3), at: .zero, into: &actions)
    }
    func give(_ input: PreflightMachine.Input) { machine.handle(input, at: now, into: &actions) }
    func wait(_ time: Duration) {
      let end = now + time
      while let due = machine.nextDeadline, due <= end {
        now = max(now, due)
        give(.timer)
        #expect(machine.nextDeadline.map { $0 > now } ?? true)
      }
      now = end
    }
    func echo(_ time: Duration) {
      now = now + time
      give(.echoed(true))
    }
    func online() { for _ in 0..<3 { echo(.milliseconds(20)) } }

    var calls: Int { actions.count { if case .call = $0 { true } else { false } } }
    var echoes: Int { actions.count { if case .echo = $0 { true } else { false } } }
    var results: [Preflight] { actions.compactMap { if case .finished(let result) = $0 { result } else { nil } } }
    var result: Preflight? { results.count == 1 ? results[0] : nil }
    func sent(_ number: Int) -> [[UInt8]] {
      actions.compactMap { if case .send(number, let bytes) = $0 { bytes } else { nil } }
    }
    var connects: [(Int, TURNServer)] {
      actions.compactMap { if case .connect(let number, let server) = $0 { (number, server) } else { nil } }
    }
    var disconnects: [Int] { actions.compactMap { if case .disconnect(let number) = $0 { number } else { nil } } }

    func answer(_ number: Int, _ kind: STUNClass = .success, _ body: (inout STUNWriter) -> Void) {
      guard let request = sent(number).last else { return }
      var bytes = [UInt8](repeating: 0, count: 500)
      let count = bytes.withUnsafeMutableBytes { buffer -> Int in
        request.withUnsafeBytes { request in
          guard let asked = try? STUNMessage(request) else { return 0 }
          var writer = STUNWriter(kind, method: asked.method, transaction: asked.transaction, into: buffer)
          body(&writer)
          return writer.finish() ?? 0
        }
      }
      give(.received(number, Array(bytes[..<count])))
    }
  }

  @Test func `the best of three round trips counts, and a granted microphone is good`() throws {
    let rig = Rig()
    for time in [80, 40, 60] { rig.echo(.milliseconds(time)) }
    rig.give(.called(nil))
    let result = try #require(rig.result)
    #expect(rig.echoes == 3 && result.network == .init(isGood: true, roundTripMilliseconds: 40, error: nil))
    #expect(result.isReady && result.microphone == .init(isGood: true) && result.servers.isEmpty && result.call == nil)
    #expect(rig.machine.nextDeadline == nil)
  }

  @Test func `the test call comes behind all others, and its result counts; a refused one says nothing`() throws {
    for (isGood, isReady) in [(true, true), (false, false), (nil, true)] as [(Bool?, Bool)] {
      let rig = Rig(["turn:a.example"])
      rig.online()
      #expect(rig.calls == 0 && rig.results.isEmpty, "a server is open")
      rig.give(.closed(0, "gone"))
      #expect(rig.calls == 1 && rig.results.isEmpty)
      let call = Preflight.TestCall(isGood: isGood, score: 4, error: nil)
      rig.give(.called(call))
      rig.give(.called(nil))
      let result = try #require(rig.result)
      #expect(result.call == call && result.isReady == isReady && rig.calls == 1)
    }
  }

  @Test func `no test call is made without a network, and one without an end is not good after 30 s`() throws {
    let offline = try #require(Rig(error: .notConnected).result)
    #expect(offline.call == nil)
    let rig = Rig()
    rig.online()
    rig.wait(.milliseconds(29_999))
    #expect(rig.results.isEmpty && rig.calls == 1)
    rig.wait(.milliseconds(1))
    #expect(rig.result?.call == Preflight.TestCall(isGood: false, error: .noResources) && rig.result?.isReady == false)
    rig.give(.called(nil))
    #expect(rig.results.count == 1 && rig.machine.nextDeadline == nil)
  }

  @Test func `a test call is good where sound came both ways with a score of 3.1, else it says what was wrong`() throws {
    var counts = ClientMedia.Statistics()
    (counts.receivedPackets, counts.lostPackets, counts.roundTripMilliseconds) = (250, 0, 40)
    let received = StreamStats(jitterMs: 2, loss: 0.01, mos: 4.2, audio: true)
    func call(_ outcome: TestCallOutcome, _ counts: ClientMedia.Statistics, _ loudest: Double = -23) throws -> Preflight.TestCall
    {
      try #require(Preflight.TestCall(outcome, counts, loudest: loudest))
    }
    let good = try call(.ended(.remoteHangup, codec: "opus", received: received), counts)
    #expect(good.isGood == true && good.error == nil && good.roundTripMilliseconds == 40)
    #expect(good.sent == .init(score: 4.2, lossFraction: 0.01, jitterMilliseconds: 2, isHeard: true))
    let own = try #require(good.received?.score)
    #expect(own > 4 && own < 4.5 && good.score == min(own, 4.2))
    #expect(try call(.ended(.remoteHangup, codec: "opus", received: received), counts, -127).isGood == false, "silence came")
    let unheard = StreamStats(loss: 0, mos: 4.4, audio: false)
    #expect(try call(.ended(.remoteHangup, codec: "opus", received: unheard), counts).isGood == false, "silence went")
    let poor = StreamStats(loss: 0.3, mos: 2.1, audio: true)
    let bad = try call(.ended(.remoteHangup, codec: "opus", received: poor), counts)
    #expect(bad.isGood == false && bad.score == 2.1)
    counts.lostPackets = 100
    let lossy = try call(.ended(.remoteHangup, codec: "opus", received: received), counts)
    #expect(lossy.isGood == false && (lossy.received?.score ?? 5) < 3.1, "\(lossy)")
    let ended = try call(.ended(.mediaTimeout, codec: nil, received: nil), ClientMedia.Statistics(), -127)
    #expect(ended.isGood == false && ended.score == nil && ended.error == .noMedia(.mediaTimeout))
    let refused = try call(.refused(.tooMany), counts)
    #expect(refused.isGood == nil && refused.error == .gateway(.tooMany))
    #expect(Preflight.TestCall(.unavailable, counts, loudest: 0) == nil)
  }

  @Test func `a gateway that is silent is not good after 5 s, and an answer behind that is nothing`() throws {
    let rig = Rig()
    rig.echo(.milliseconds(20))
    rig.wait(.milliseconds(4_999))
    #expect(rig.results.isEmpty)
    rig.wait(.milliseconds(1))
    let result = try #require(rig.result)
    #expect(result.network == .init(isGood: false, roundTripMilliseconds: nil, error: .notConnected) && !result.isReady)
    rig.echo(.zero)
    #expect(rig.results.count == 1 && rig.echoes == 2)
  }

  @Test func `a phone that is not online says why at once`() throws {
    let result = try #require(Rig(error: .loginRefused).result)
    #expect(result.network == .init(isGood: false, roundTripMilliseconds: nil, error: .loginRefused))
    let rig = Rig()
    rig.give(.echoed(false))
    #expect(rig.result?.network.error == .notConnected)
  }

  @Test(arguments: [MicrophonePermission.denied, .undetermined])
  func `a microphone that is not granted is not good`(permission: MicrophonePermission) {
    let result = Rig(error: .notConnected, microphone: permission).result
    #expect(result?.microphone == .init(isGood: false, route: nil, error: .noMicrophone))
  }

  @Test func `a device without a microphone is not good, whatever is granted; its route is named`() {
    let speaker = AudioRoute(id: "speaker", kind: .speaker, name: "Speaker")
    let routes = AudioRouteList(available: [speaker], current: speaker, hasMicrophone: false)
    let result = Rig(error: .notConnected, routes: routes).result
    #expect(result?.microphone == .init(isGood: false, route: speaker, error: .noMicrophone))
  }

  @Test func `each server is asked for an allocation, which is given back`() throws {
    let rig = Rig(["turn:a.example", "turns:b.example:443"], error: .notConnected)
    #expect(rig.connects.map(\.0) == [0, 1] && rig.results.isEmpty)
    rig.now = .zero + .milliseconds(30)
    rig.give(.opened(0))
    rig.give(.opened(1))
    rig.now = .zero + .milliseconds(50)
    rig.answer(0) { $0.addRelayedAddress(Self.relayed) }
    #expect(rig.sent(0).count == 2 && rig.disconnects == [0], "Allocate, and Refresh of no lifetime")
    // in two pieces
    rig.answer(1) { $0.addRelayedAddress(Self.relayed) }
    let result = try #require(rig.result)
    #expect(result.servers.map(\.url) == ["turn:a.example:3478?transport=udp", "turns:b.example:443?transport=tcp"])
    #expect(result.servers.map(\.isGood) == [true, true] && result.servers.map(\.milliseconds) == [50, 50])
    #expect(result.servers.allSatisfy { $0.failure == nil } && rig.disconnects == [0, 1])
  }

  @Test func `servers that refuse, that are not there, that are silent, and that send garbage say so, and nothing stays open`()
    throws
  {
    let urls = ["turn:refuses", "turn:away?transport=tcp", "turn:silent", "turns:garbage"]
    let rig = Rig(urls, error: .notConnected)
    for number in [0, 2, 3] { rig.give(.opened(number)) }
    rig.answer(0, .error) { $0.addError(.forbidden) }
    rig.give(.closed(1, "Connection refused"))
    rig.give(.received(3, Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)))
    #expect(rig.results.isEmpty)
    rig.wait(.seconds(5))
    let result = try #require(rig.result)
    #expect(result.servers.map(\.isGood) == [false, false, false, false])
    #expect(result.servers[1].failure == "Connection refused" && result.servers[2].failure == "no answer")
    #expect(result.servers[0].failure == "forbidden" && result.servers[3].failure != nil, "\(result.servers)")
    #expect(Set(rig.disconnects) == [0, 2, 3])
    for number in 0..<4 {
      rig.give(.opened(number))
      rig.give(.received(number, [1, 2, 3]))
      rig.give(.closed(number, "late"))
    }
    rig.give(.timer)
    #expect(rig.results.count == 1 && rig.machine.nextDeadline == nil)
  }

  @Test func `a server that points to another is followed once`() throws {
    let rig = Rig(["turn:a.example"], error: .notConnected)
    let other = try #require(SocketAddress("203.0.113.9:3479"))
    rig.give(.opened(0))
    rig.answer(0, .error) {
      $0.addError(.tryAlternate)
      $0.addAlternateServer(other)
    }
    #expect(rig.connects.map(\.0) == [0, 1] && rig.connects.last?.1.alternate == other && rig.disconnects == [0])
    rig.give(.opened(1))
    rig.answer(1, .error) {
      $0.addError(.tryAlternate)
      $0.addAlternateServer(other)
    }
    #expect(rig.result?.servers.map(\.isGood) == [false] && rig.connects.count == 2)
  }

  @Test func `six servers at most are asked`() {
    #expect(Rig((0..<20).map { "turn:s\($0)" }, error: .notConnected).connects.count == 6)
  }
}
