import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

private func types(_ actions: [ClientCall.Action]) -> [String] {
  actions.map { action in
    switch action {
    case .request(let message, _), .notify(let message): message.type.rawValue
    case .media(let order): "media:" + String(describing: order).prefix { $0 != "(" }
    case .stateChanged(let state): "→" + state.rawValue
    case .digit(let digit): "digit:\(digit)"
    case .quality: "quality"
    }
  }
}

@Suite struct ClientCallTests {
  var call = ClientCall(incoming: Identifier(random: .seeded(1)), from: Handle(k: .phone, h: "+15550001"), audio: .running)
  var actions: [ClientCall.Action] = []

  mutating func give(_ input: ClientCall.Input) -> [String] {
    actions.removeAll()
    call.handle(input, into: &actions)
    return types(actions)
  }

  @Test mutating func `an incoming call prepares while it rings and opens audio only when connected`() {
    #expect(give(.offered(sdp: "o", generation: 1)) == ["call.ringing", "media:answer"])
    #expect(give(.media(.described(sdp: "a", generation: 1))) == ["call.prepare"])
    #expect(give(.answered(.prepare, .success(Success()))).isEmpty)
    let up = ClientCall.Input.media(.connected(generation: 1, pair: nil, roundTripMilliseconds: 1, profile: "x"))
    #expect(give(up) == ["media.ready"])
    #expect(give(up).isEmpty)
    #expect(give(.answer(ageMilliseconds: 5)) == ["→answering", "call.answer"])
    #expect(
      give(.message(.callConnected(CallConnected(at: 1, codec: "opus")))) == ["→connected", "media:activate", "media.active"])
    #expect(give(.hangUp()) == ["call.end", "media:close", "→ended"])
    #expect(give(.hangUp()).isEmpty)
  }

  @Test mutating func `a lost race for the answer ends the call as answered elsewhere`() {
    _ = give(.offered(sdp: "o", generation: 1))
    _ = give(.answered(.prepare, .success(Success())))
    _ = give(.answer(ageMilliseconds: 0))
    #expect(give(.answered(.answer, .failure(Failure(.answeredElsewhere)))) == ["media:close", "→ended"])
    #expect(call.reason == .answeredElsewhere)
  }

  @Test mutating func `no answer goes out before the description is accepted`() {
    _ = give(.offered(sdp: "o", generation: 1))
    #expect(give(.answer(ageMilliseconds: 5)) == ["→answering"])
    #expect(give(.media(.described(sdp: "a", generation: 1))) == ["call.prepare"])
    #expect(give(.answered(.prepare, .success(Success()))) == ["call.answer"])
    #expect(give(.answered(.prepare, .success(Success()))).isEmpty)
  }

  @Test mutating func `a refused description ends the call, before the tap and after it`() {
    for isTapped in [false, true] {
      call = ClientCall(incoming: Identifier(random: .seeded(1)), from: Handle(k: .phone, h: "+15550001"), audio: .running)
      _ = give(.offered(sdp: "o", generation: 1))
      _ = give(.media(.described(sdp: "a", generation: 1)))
      if isTapped { _ = give(.answer(ageMilliseconds: 5)) }
      #expect(give(.answered(.prepare, .failure(Failure(.codec)))) == ["media:close", "→ended"])
      #expect(call.reason == .codec)
      #expect(give(.answer(ageMilliseconds: 5)).isEmpty)
    }
  }

  @Test mutating func `an answer that fails for good says that this device is out`() {
    for code in [ErrorCode.badRequest, .server, .tooMany, .badState] {
      call = ClientCall(incoming: Identifier(random: .seeded(1)), from: Handle(k: .phone, h: "+15550001"), audio: .running)
      _ = give(.offered(sdp: "o", generation: 1))
      _ = give(.media(.described(sdp: "a", generation: 1)))
      _ = give(.answered(.prepare, .success(Success())))
      _ = give(.answer(ageMilliseconds: 5))
      #expect(give(.answered(.answer, .failure(Failure(code)))) == ["call.reject", "media:close", "→ended"])
      guard case .request(.callReject(let reject), _) = actions.first else { return #expect(Bool(false), "no call.reject") }
      #expect(reject.scope == .device)
    }
  }

  @Test mutating func `without a description of its own a device does not answer but is out`() {
    for isTappedFirst in [false, true] {
      call = ClientCall(incoming: Identifier(random: .seeded(1)), from: Handle(k: .phone, h: "+15550001"), audio: .running)
      _ = give(.offered(sdp: "o", generation: 1))
      if isTappedFirst { _ = give(.answer(ageMilliseconds: 5)) }
      let failed = give(.media(.failed(.ice, "offer")))
      let tapped = isTappedFirst ? [] : give(.answer(ageMilliseconds: 5))
      #expect(failed + tapped == ["media.fail", "call.reject", "media:close", "→ended"])
      #expect(call.reason == .mediaFailed)
    }
  }

  @Test mutating func `a restart offers the next generation and a stale one is ignored`() {
    _ = give(.offered(sdp: "o", generation: 1))
    _ = give(.answered(.prepare, .success(Success())))
    _ = give(.answer(ageMilliseconds: 0))
    _ = give(.message(.callConnected(CallConnected(at: 1, codec: "opus"))))
    #expect(give(.message(.mediaRestart(MediaRestart(gen: 3)))).isEmpty)
    #expect(give(.message(.mediaRestart(MediaRestart(gen: 2, cause: .timeout)))) == ["media:offer"])
    #expect(give(.media(.described(sdp: "n", generation: 2))) == ["media.restart"])
    #expect(give(.restarted(MediaAnswer(sdp: "a", gen: 2))) == ["media:apply"])
    #expect(give(.media(.connected(generation: 1, pair: nil, roundTripMilliseconds: nil, profile: "x"))).isEmpty)
    #expect(give(.media(.connected(generation: 2, pair: nil, roundTripMilliseconds: nil, profile: "x"))) == ["media.ready"])
  }

  @Test(arguments: [0, -1, Int.max]) mutating func `an offer of a generation that is none is not answered`(generation: Int) {
    #expect(give(.offered(sdp: "o", generation: generation)).isEmpty)
    #expect(give(.offered(sdp: "o", generation: 1)) == ["call.ringing", "media:answer"])
  }

  @Test mutating func `a path that changes while it rings is left at once, or as soon as the gateway has a description`() {
    _ = give(.offered(sdp: "o", generation: 1))
    #expect(give(.restart(.net)).isEmpty)
    #expect(give(.media(.described(sdp: "a", generation: 1))) == ["call.prepare"])
    #expect(give(.answered(.prepare, .success(Success()))) == ["media:offer"])
    #expect(give(.media(.described(sdp: "b", generation: 2))) == ["media.restart"])
    #expect(give(.restart(.net)) == ["media:offer"])
    #expect(give(.answer(ageMilliseconds: 5)) == ["→answering", "call.answer"])
    #expect(give(.media(.described(sdp: "c", generation: 3))) == ["media.restart"])
  }

  @Test mutating func `what the app says of a call is in call.start`() throws {
    let options = CallOptions(from: Handle(k: .phone, h: "+15550001"), account: "work", location: "<presence/>")
    call = ClientCall(outgoing: Identifier(random: .seeded(1)), to: Handle(k: .phone, h: "112"), options, audio: .running)
    _ = give(.media(.described(sdp: "o", generation: 1)))
    let start = try #require(
      actions.compactMap { if case .request(.callStart(let start), _) = $0 { start } else { nil } }.first)
    #expect(start.from == options.from && start.acct == "work" && start.location == "<presence/>")
  }

  @Test mutating func `an outgoing call offers, applies the answer and follows the progress`() {
    call = ClientCall(outgoing: Identifier(random: .seeded(1)), to: Handle(k: .phone, h: "+15550002"), audio: .running)
    actions.removeAll()
    call.dial(into: &actions)
    #expect(types(actions) == ["media:offer"])
    #expect(give(.media(.described(sdp: "o", generation: 1))) == ["call.start"])
    #expect(give(.answered(.start, .success(Success(sdp: "a")))) == ["media:apply"])
    #expect(give(.message(.callProgress(CallProgress(.trying, at: 1)))) == ["→ready"])
    #expect(give(.message(.callProgress(CallProgress(.ringing, at: 1)))) == ["→progress"])
    #expect(give(.message(.callEnded(CallOver(.busy)))) == ["media:close", "→ended"])
    #expect(call.reason == .busy)
  }
}
