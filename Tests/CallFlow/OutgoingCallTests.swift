import AppSessions
import CallFlow
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

private let phone = Surroundings.phone
private let call = Identifier(high: 5, low: 5)

@Suite struct OutgoingCallTests {
  @Test func `ACC-1: a call belongs to one of its device's accounts, and the snapshot says to which`() throws {
    for (wanted, account) in [("home", "home"), ("work", "work"), (nil, "work"), ("other", nil)] as [(String?, String?)] {
      let world = Surroundings()
      let phone = Surroundings.phone
      let info = DeviceInfo(accounts: ["work", "home"])
      world.feed(.app(.connected(phone, SessionID("phone"), info, resumed: false)))
      let call = Identifier(high: 3, low: 4)
      let start = CallStart(to: Handle(k: .phone, h: "+15557654321"), acct: wanted, sdp: Surroundings.appSDP(setup: "actpass"))
      let answer = world.request(phone, .callStart(start), call: call)
      #expect(world.code(answer) == (account == nil ? .forbidden : nil))
      world.feed(.app(.connected(phone, SessionID("second"), info, resumed: false)))
      #expect(world.welcomes[SessionID("second")]?.calls.map(\.acct) == (account.map { [$0] } ?? []))
    }
  }

  private func caps(_ world: Surroundings) -> [CallCapabilities] {
    world.messages[phone, default: []].compactMap { if case .callUpdate(let update) = $0 { update.caps } else { nil } }
  }

  @Test(arguments: [true, false], [true, false])
  func `what the app may offer in a call that it dialled comes right before call-connected, unless a snapshot told it`(
    transfers: Bool, reconnects: Bool
  ) throws {
    let world = Surroundings { _, routing in routing.trunks[0].rules.allowsTransfer = transfers }
    let expected = CallCapabilities(hold: true, group: true, dtmf: true, transfer: transfers ? true : nil)
    try world.started(call)
    world.openOutgoingGate(call)
    let leg = try #require(world.outgoingLeg)
    world.feed(.sip(.progress(leg, code: 180, sdp: nil)))
    #expect(caps(world) == [])
    if reconnects {
      world.connect(phone, "again")
      #expect(world.welcomes[SessionID("again")]?.calls.map(\.caps) == [expected])
    }
    world.feed(.sip(.answered(leg, sdp: Surroundings.trunkSDP())))
    #expect(caps(world) == (reconnects ? [] : [expected]))
    #expect(
      world.received[phone]?.suffix(2)
        == (reconnects ? ["call.progress ringing", "call.connected"] : ["call.update", "call.connected"]))
    world.connect(phone, "third")
    #expect(world.welcomes[SessionID("third")]?.calls.map(\.caps) == [expected])
    #expect(world.isOK(world.request(phone, .callHold(CallHold(on: true)), call: call, on: "third")))
    #expect(caps(world).count == (reconnects ? 0 : 1), "nothing has changed")
  }

  @Test func `the INVITE leaves when the app's media is ready (sequence 6, OUT-3, OUT-4)`() throws {
    let world = Surroundings()
    try world.started(call)
    #expect(world.trunkReceived == [])
    world.pair(phone)
    world.keys(phone)
    #expect(world.trunkReceived == [])
    world.ready(phone, call)
    #expect(world.trunkReceived == ["INVITE +15557654321"])
    let leg = try #require(world.outgoingLeg)
    world.feed(.sip(.progress(leg, code: 100, sdp: nil)))
    world.feed(.sip(.progress(leg, code: 180, sdp: nil)))
    world.feed(.sip(.progress(leg, code: 180, sdp: nil)))
    world.feed(.sip(.progress(leg, code: 183, sdp: Surroundings.trunkSDP(formats: "8 101"))))
    #expect(world.received[phone] == ["call.progress trying", "call.progress ringing", "call.progress early"])
    world.feed(.sip(.answered(leg, sdp: Surroundings.trunkSDP(formats: "8 101"))))
    #expect(world.received[phone]?.last == "call.connected")
    let connected = world.messages[phone]?.compactMap { if case .callConnected(let connected) = $0 { connected.at } else { nil } }
    #expect(connected == [try #require(world.machine.summaries.first?.times["connected"])], "the time that recents show")
    world.pass(.seconds(5))
    #expect(world.isOK(world.request(phone, .callEnd(CallEnd()), call: call)))
    #expect(world.trunkReceived.last == "BYE")
    #expect(world.received[phone]?.last == "call.ended localEnd")
    world.expectRecord(.localEnd, by: .app, sip: 200)
    let record = try #require(world.records.first)
    #expect(record.direction == .outgoing && record.from == "+15551230001" && record.to == "+15557654321")
    #expect(record.connectedMs == 5_000 && record.codecs.trunk == "PCMA")
    // the record names the Call-ID of the INVITE
    for action in world.actions { if case .sip(.invite(_, let invite)) = action { #expect(invite.callID == record.sipCallId) } }
  }

  @Test(
    arguments: [
      (nil, false, "The Bank", nil), ("Alice", false, "The Bank", "Alice"), ("Alice", false, nil, "Alice"),
      (nil, true, "The Bank", "The Bank"), ("Alice", true, "The Bank", "The Bank"), ("Alice", true, nil, "Alice"),
      ("Alice", true, "", "Alice"),
    ] as [(String?, Bool, String?, String?)])
  func `the trunk is shown the user's name, and the app's own choice only where the user may choose`(
    configured: String?, mayChoose: Bool, asked: String?, shown: String?
  ) throws {
    let world = Surroundings { _, routing in
      (routing.users[0].name, routing.users[0].choosesName) = (configured, mayChoose)
    }
    world.connect(phone)
    let from = Handle(k: .phone, h: "+15551230002", n: asked)
    let start = CallStart(
      from: from, to: Handle(k: .phone, h: "+15557654321"), sdp: Surroundings.appSDP(setup: "actpass"))
    #expect(world.isOK(world.request(phone, .callStart(start), call: call)))
    if let lastRemote = world.lastRemote { world.legs[phone] = lastRemote }
    world.openOutgoingGate(call)
    #expect(world.invites.map(\.from) == ["+15551230002"] && world.invites.map(\.displayName) == [shown])
  }

  @Test func `no media in 5 s: mediaFailed, and no callee is dialled`() throws {
    let world = Surroundings()
    try world.started(call)
    world.pair(phone)
    world.pass(.milliseconds(4_999))
    #expect(world.received[phone] == nil)
    world.pass(.milliseconds(1))
    #expect(world.received[phone] == ["call.ended mediaFailed"])
    #expect(world.trunkReceived == [])
    world.expectRecord(.mediaFailed)
    #expect(world.records.first?.end.sip == nil)
  }

  @Test func `call-end before the INVITE sends none; after it, CANCEL`() throws {
    for sent in [false, true] {
      let world = Surroundings()
      try world.started(call)
      if sent { world.openOutgoingGate(call) }
      world.request(phone, .callEnd(CallEnd()), call: call)
      #expect(world.trunkReceived == (sent ? ["INVITE +15557654321", "CANCEL"] : []))
      #expect(world.received[phone] == ["call.ended localEnd"])
      // a late 2xx or 487 changes nothing
      if let leg = world.outgoingLeg {
        world.feed(.sip(.failed(leg, code: 487, cause: nil, byTransport: false)))
        world.feed(.sip(.legClosed(leg)))
      }
      world.expectRecord(.localEnd, by: .app)
    }
  }

  @Test(arguments: [
    (486, EndReason.busy), (600, .busy), (603, .declined), (404, .notFound), (484, .notFound), (403, .forbidden), (488, .codec),
    (407, .auth), (408, .unanswered), (480, .unanswered), (503, .trunkFailed), (500, .trunkFailed), (599, .trunkFailed),
    (487, .unanswered), (499, .unknown),
  ])
  func `the trunk's refusal is the reason`(code: Int, reason: EndReason) throws {
    let world = Surroundings()
    try world.started(call)
    world.openOutgoingGate(call)
    let leg = try #require(world.outgoingLeg)
    world.feed(.sip(.failed(leg, code: code, cause: nil, byTransport: false)))
    #expect(world.received[phone] == ["call.ended \(reason.rawValue)"])
    guard case .callEnded(let over) = world.messages[phone]?.last else { return #expect(Bool(false)) }
    #expect(over.sip == code && over.by == .trunk)
    world.expectRecord(reason, by: .trunk, sip: code)
    #expect(world.trunkReceived == ["INVITE +15557654321"])
  }

  @Test func `a dead transport is trunkLost`() throws {
    let world = Surroundings()
    try world.started(call)
    world.openOutgoingGate(call)
    world.feed(.sip(.failed(try #require(world.outgoingLeg), code: 503, cause: nil, byTransport: true)))
    world.expectRecord(.trunkLost, by: .trunk, sip: 503)
  }

  @Test(arguments: [(LocalFailure.connectionRefused, 503, true), (.timeout, 408, false), (.noRoute, 503, true)])
  func `an INVITE without an answer has the failure's name in the record, and no code`(
    failure: LocalFailure, code: Int, byTransport: Bool
  ) throws {
    let world = Surroundings()
    try world.started(call)
    world.openOutgoingGate(call)
    let leg = try #require(world.outgoingLeg)
    let request = UnansweredRequest(
      leg: leg, method: .invite, opensDialog: true, trunk: "carrier", callID: "x", flow: Surroundings.peer.flow, contact: nil,
      failure: failure)
    world.feed(.unanswered(request))
    world.feed(.sip(.failed(leg, code: code, cause: nil, byTransport: byTransport)))
    world.feed(.sip(.legClosed(leg)))
    let end = try #require(world.records.first?.end)
    #expect(end.sip == nil && end.detail == failure.rawValue && end.by == .trunk)
  }

  @Test func `a BYE without an answer is told with its call`() throws {
    let world = Surroundings()
    let (leg, call) = try world.connected()
    world.request(phone, .callEnd(CallEnd()), call: call)
    let request = UnansweredRequest(
      leg: leg, method: .bye, trunk: "carrier", callID: "x", flow: Surroundings.peer.flow, contact: nil, failure: .timeout)
    world.feed(.unanswered(request))
    let told = world.actions.compactMap { if case .requestUnanswered(let id, let request) = $0 { (id, request) } else { nil } }
    #expect(told.map(\.0) == [call] && told.map(\.1) == [request])
  }

  @Test func `a trunk that rings for ever is given up after 180 s`() throws {
    let world = Surroundings()
    try world.started(call)
    world.openOutgoingGate(call)
    world.feed(.sip(.progress(try #require(world.outgoingLeg), code: 180, sdp: nil)))
    world.pass(.seconds(180))
    #expect(world.trunkReceived.last == "CANCEL")
    world.expectRecord(.unanswered)
  }

  @Test func `200 without a usable description: BYE and codec`() throws {
    for sdp in [nil, "v=0", Surroundings.trunkSDP(formats: "18")] {
      let world = Surroundings()
      try world.started(call)
      world.openOutgoingGate(call)
      world.feed(.sip(.answered(try #require(world.outgoingLeg), sdp: sdp)))
      #expect(world.trunkReceived.last == "BYE")
      #expect(world.received[phone] == ["call.ended codec"])
      world.expectRecord(.codec, by: .trunk, sip: 200)
    }
  }

  @Test func `the same call from the same device is the same call, from another forbidden`() throws {
    let world = Surroundings()
    try world.started(call)
    let again = CallStart(to: Handle(k: .phone, h: "+15557654321"), sdp: Surroundings.appSDP(setup: "actpass"))
    guard case .ok(let success) = world.request(phone, .callStart(again), call: call) else { return #expect(Bool(false)) }
    #expect(success.sdp?.contains("a=ice-lite") == true)
    world.connect(Surroundings.tablet)
    #expect(world.code(world.request(Surroundings.tablet, .callStart(again), call: call)) == .forbidden)
    world.request(phone, .callEnd(CallEnd()), call: call)
    #expect(world.code(world.request(phone, .callStart(again), call: call)) == .gone)
    #expect(world.code(world.request(Surroundings.tablet, .callStart(again), call: call)) == .forbidden)
    #expect(world.records.count == 1 && world.machine.statistics.outgoing == 1)
  }

  @Test func `an app is told the user's numbers, what was read from a dialled one, and which from is none of them`() throws {
    let world = Surroundings()
    world.connect(phone)
    #expect(world.request(phone, .userGet, call: nil) == nil)
    let told = world.actions.compactMap { action -> UserInformation? in
      if case .app(.notify(phone, .ok(let success), re: _?)) = action { success.user } else { nil }
    }
    #expect(told == [UserInformation(numbers: ["+15551230001", "+15551230002"])])
    var start = CallStart(to: Handle(k: .phone, h: "+1 (555) 765-4321 ext. 12"), sdp: Surroundings.appSDP(setup: "actpass"))
    start.from = Handle(k: .phone, h: "+15551230009")
    guard case .err(let failure)? = world.request(phone, .callStart(start), call: call) else { return #expect(Bool(false)) }
    #expect(failure.code == .callerNumber && failure.msg == "from is not a number of this user")
    #expect(world.refusals.last?.reason == .callerNumber)
    start.from = Handle(k: .phone, h: "+15551230002")
    for _ in 0..<2 {
      guard case .ok(let success)? = world.request(phone, .callStart(start), call: call) else { return #expect(Bool(false)) }
      #expect(success.to == Handle(k: .phone, h: "+15557654321"))
    }
  }

  @Test func `what cannot be called is refused and counted`() throws {
    let world = Surroundings { configuration, _ in configuration.bounds.callsPerUser = 1 }
    world.connect(phone)
    func start(_ to: String, from: String? = nil, kind: Handle.Kind = .phone, acct: String? = nil, sdp: String? = nil)
      -> ErrorCode?
    {
      let start = CallStart(
        from: from.map { Handle(k: .phone, h: $0) }, to: Handle(k: kind, h: to), acct: acct,
        sdp: sdp ?? Surroundings.appSDP(setup: "actpass"))
      return world.code(world.request(phone, .callStart(start), call: Identifier(high: 6, low: world.nextRequest)))
    }
    #expect(start("5551234") == .notFound)
    #expect(start("+1555x") == .notFound)
    #expect(start("a@b", kind: .email) == .notFound)
    #expect(start("112") == .emergency)
    #expect(start("+15557654321", from: "+15551230009") == .callerNumber)
    #expect(start("+15557654321", acct: "other") == .forbidden)
    #expect(start("+15557654321", sdp: "v=0") == .codec)
    #expect(start("+15557654321", sdp: Surroundings.appSDP(setup: "holdconn")) == .codec)
    world.mediaRefusal = "no ports"
    #expect(start("+15557654321") == .overload)
    world.mediaRefusal = nil
    #expect(start("+1 (555) 765-4321", from: "+15551230002") == nil)
    #expect(start("+15557654321") == .tooMany)
    world.feed(.draining)
    #expect(start("+15557654321") == .overload)
    #expect(world.refusals.count == 11 && world.refusals.allSatisfy { $0.direction == .outgoing })
    #expect(world.refusals.allSatisfy { $0.caller.device == phone && $0.caller.number != nil && $0.caller.call != nil })
    #expect(world.machine.statistics.outgoing == 1 && world.records.isEmpty)
    #expect(world.machine.summaries.first?.from == "+15551230002")
  }

  @Test func `the INVITE waits for the journal entry, at most 100 ms`() throws {
    let world = Surroundings()
    world.journals = false
    try world.started(call)
    world.openOutgoingGate(call)
    #expect(world.trunkReceived == [])
    world.pass(.milliseconds(100))
    #expect(world.trunkReceived == ["INVITE +15557654321"])
  }

  @Test func `media-fail before the INVITE ends the call`() throws {
    let world = Surroundings()
    try world.started(call)
    world.notify(phone, .mediaFail(MediaFail(gen: 1, stage: .ice)), call: call)
    #expect(world.received[phone] == ["call.ended mediaFailed"] && world.trunkReceived == [])
    world.expectRecord(.mediaFailed, by: .app)
  }
}
