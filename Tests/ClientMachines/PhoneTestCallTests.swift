import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

/// The test call of a preflight beside the phone's calls: no screen shows it, and it has one result whatever happens.
@Suite struct PhoneTestCallTests {
  private static let id = PhoneRig.call(9)

  private func online(_ caps: [String] = ["echo"]) -> PhoneRig {
    var rig = PhoneRig()
    rig.give(.start)
    rig.give(.token("a.b.c"))
    _ = rig.welcome(caps: caps)
    return rig
  }
  private func outcomes(_ actions: [PhoneMachine.Action]) -> [TestCallOutcome] {
    actions.compactMap { if case .tested(Self.id, let outcome) = $0 { outcome } else { nil } }
  }
  private func orders(_ actions: [PhoneMachine.Action]) -> [String] {
    actions.compactMap { action in
      guard case .media(Self.id, let order) = action else { return nil }
      return String(String(describing: order).prefix { $0.isLetter })
    }
  }
  /// A phone whose `call.start` the gateway has accepted.
  private func started() -> PhoneRig {
    var rig = online()
    rig.give(.testCall(Self.id))
    rig.give(.media(Self.id, .described(sdp: "v=0", generation: 1)))
    rig.answer("call.start")
    return rig
  }

  @Test func `it is dialled, connected and ended by the gateway with what the gateway received; no call is shown`() throws {
    var rig = online()
    var all = rig.give(.testCall(Self.id))
    #expect(orders(all) == ["offer"])
    all += rig.give(.media(Self.id, .described(sdp: "v=0", generation: 1)))
    let request = try #require(rig.requests.last { $0.message.content.type.rawValue == "call.start" })
    guard case .callStart(let start) = request.message else { return #expect(Bool(false), "\(request)") }
    #expect(start.to == TestCall.destination)
    all += rig.answer("call.start")
    all += rig.give(.media(Self.id, .connected(generation: 1, pair: nil, roundTripMilliseconds: 12, profile: "p")))
    all += rig.receive(.callConnected(CallConnected(at: 1, codec: "opus")), Self.id)
    #expect(orders(all) == ["offer", "apply", "activate"])
    #expect(all.written.contains("media.ready") && all.written.contains("media.active"))
    var over = CallOver(.remoteHangup, by: .gateway)
    over.received = StreamStats(loss: 0.02, mos: 4.1)
    let end = rig.receive(.callEnded(over), Self.id)
    #expect(end.names.suffix(2) == ["media", "tested"] && orders(end) == ["close"])
    #expect(outcomes(end) == [.ended(.remoteHangup, codec: "opus", received: over.received)])
    all += end
    #expect(all.states.isEmpty && all.ends.isEmpty && all.audio.isEmpty, "\(all.names)")
    #expect(!all.names.contains("report") && !all.names.contains("request") && !all.names.contains("listen"))
    #expect(rig.phone.liveCalls.isEmpty && rig.phone.info(of: Self.id) == nil)
    // later inputs have no effect
    #expect(outcomes(rig.receive(.callEnded(CallOver(.unknown)), Self.id) + rig.wait(.seconds(60))).isEmpty)
  }

  @Test func `a gateway without test calls, a phone offline, a call in progress, a running test: no test call is made`() {
    var without = online([])
    #expect(outcomes(without.give(.testCall(Self.id))) == [.unavailable])
    var offline = PhoneRig()
    #expect(outcomes(offline.give(.testCall(Self.id))) == [.unavailable])
    var busy = online()
    busy.ring(PhoneRig.call(1))
    #expect(outcomes(busy.give(.testCall(Self.id))) == [.unavailable])
    var twice = online()
    twice.give(.testCall(PhoneRig.call(3)))
    #expect(outcomes(twice.give(.testCall(Self.id))) == [.unavailable])
  }

  @Test(arguments: [ErrorCode.tooMany, .overload, .notFound]) func `a refusal of the test call is its result`(code: ErrorCode) {
    var rig = online()
    rig.give(.testCall(Self.id))
    rig.give(.media(Self.id, .described(sdp: "v=0", generation: 1)))
    let all = rig.answer("call.start", .err(Failure(code)))
    #expect(outcomes(all) == [.refused(code)] && orders(all) == ["close"])
  }

  @Test func `a gateway that does not end it is left after 20 s, with call.end`() {
    var rig = started()
    #expect(outcomes(rig.wait(.milliseconds(19_999))).isEmpty)
    let all = rig.wait(.milliseconds(1))
    #expect(outcomes(all) == [.ended(.localEnd, codec: nil, received: nil)])
    #expect(orders(all) == ["close"] && all.written.contains("call.end"))
  }

  @Test func `failed media is reported to the gateway, which ends it`() {
    var rig = started()
    #expect(rig.give(.media(Self.id, .failed(.ice, "no pair"))).written == ["media.fail"])
    let all = rig.receive(.callEnded(CallOver(.mediaFailed, by: .gateway)), Self.id)
    #expect(outcomes(all) == [.ended(.mediaFailed, codec: nil, received: nil)])
  }

  @Test func `the loss of the session, and a logout, end it at once`() {
    for input in [PhoneMachine.Input.socket(.socketClosed(1006)), .logOut] {
      var rig = started()
      var all = rig.give(input)
      all += rig.answer("device.del", .ok(Success()))
      #expect(outcomes(all) == [.ended(.networkLost, codec: nil, received: nil)], "\(all.names)")
      #expect(orders(all) == ["close"])
      #expect(outcomes(rig.wait(.seconds(60))).isEmpty)
    }
  }

  @Test func `a call that arrives meanwhile rings, and both continue`() {
    var rig = started()
    #expect(rig.offer(PhoneRig.call(1)).names.contains("report"))
    rig.give(.media(Self.id, .connected(generation: 1, pair: nil, roundTripMilliseconds: nil, profile: "p")))
    let all = rig.receive(.callEnded(CallOver(.remoteHangup)), Self.id)
    #expect(outcomes(all).count == 1 && rig.phone.liveCalls == [PhoneRig.call(1)])
  }
}
