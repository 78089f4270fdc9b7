import Testing
import TrunklineAppProtocol
import TrunklineBytes

@Suite struct MessageTableTests {
  static let hello = Hello(
    .resume(.init(sid: "s", token: "t", lastSeq: 4)), device: .init(id: "d", platform: "web", model: "m", os: "o", sdk: "1"),
    caps: ["media.active"], state: .bg)
  static let client: [ClientMessage] = [
    .hello(hello), .hello(Hello(.wake("w"), device: .init(id: "d"))),
    .hello(Hello(.auth("x.y.z"), device: .init(id: "d"), further: true)), .authRefresh(AuthRefresh(auth: "x.y.z")),
    .devicePut(
      DevicePut(push: .init(kind: .apnsVoIP, token: "t", env: "dev", topic: "a"), prefs: .init(ring: true, dnd: false))),
    .deviceDel, .deviceState(DeviceState(state: .bg)), .ping, .pong, .ack, .err(Failure(.server)),
    .bye(Bye(code: 1, url: "wss://n2", afterMs: 9)),
    .callRinging(CallRinging()), .callRinging(CallRinging(pushMs: 420, reportMs: 0, openMs: 600_000)),
    .callUnavailable(CallUnavailable(why: .busyOther)), .callPrepare(CallPrepare(sdp: "v=0\r\n", gen: 2)),
    .callAnswer(CallAnswer(sdp: "v", gen: 1, ageMs: 1, timeoutMs: 2)), .callReject(CallReject(scope: .device, reason: .busy)),
    .callEnd(CallEnd(reason: .mediaFailed)),
    .callStart(
      CallStart(from: Handle(k: .phone, h: "+1"), to: Handle(k: .generic, h: "x", n: "X"), acct: "a", video: false, sdp: "v")),
    .mediaReady(MediaReady(gen: 1, pair: .init(local: "host", remote: "relay"), rttMs: 1.5, dtls: "1.2")),
    .mediaFail(MediaFail(gen: 1, stage: .dtls, detail: "x")), .mediaActive(MediaActive(capture: true, playout: false)),
    .mediaRestart(MediaRestart(sdp: "v", gen: 2, cause: .net)),
    .callHold(CallHold(on: true)), .callMute(CallMute(on: true, mode: .track)),
    .callDTMF(CallDTMF(digits: "1")), .stats(StreamStats(rttMs: 1, loss: 0.5, bytes: 7)),
    .callTransfer(CallTransfer(target: Handle(k: .phone, h: "+1555"), mode: .blind)),
    .callTransfer(CallTransfer(withCall: call, mode: .attended)), .callGroup(CallGroup(with: call)), .callGroup(CallGroup()),
    .callTranslate(CallTranslate(on: true, local: "en-GB", remote: "de", engine: .custom)),
    .dirGet(DirectoryGet(have: 7, version: 8, after: 15_550_000_001)), .dirGet(DirectoryGet()),
    .histList(HistoryList(before: 3, limit: 20)), .histResolve(HistoryResolve(handles: ["+15550000001"])),
    .userGet, .dirFind(DirectoryFind(text: "ann", limit: 5)),
  ]
  static let server: [ServerMessage] = [
    .welcome(
      Welcome(
        sid: "s", resumeToken: "t", resumed: false, replayFrom: 1, time: 5, hb: 15_000,
        ice: [ICEServer(urls: ["turn:x"], username: "u", credential: "c", ttlMs: 1)],
        calls: [
          CallSnapshot(
            call: call, dir: .incoming, state: .ringing, from: Handle(k: .phone, h: "+1"), to: Handle(k: .phone, h: "+2"),
            acct: "default",
            sdp: "v", gen: 1, at: 1, exp: 2)
        ], push: .init(webpush: "BK"), node: "n1", url: "wss://n1", spreadMs: 500)),
    .ok(Success(won: true, sdp: "v")),
    .err(Failure(.gone, reason: .busy, sip: 486, msg: "m", retryMs: 1, fatal: true, url: "wss://n2")),
    .authExpiring(AuthExpiring(at: 1)), .ping, .pong, .ack, .bye(Bye(code: 1, url: "wss://n2", afterMs: 9)),
    .callWake(CallWake(call: call, exp: 9, from: Handle(k: .phone, h: "+1"), gw: "wss://n2/v1/connect", wake: "w")),
    .callOffer(
      CallOffer(
        from: Handle(k: .phone, h: "+1"), to: Handle(k: .phone, h: "+2"), acct: "default", sdp: "v", gen: 1, exp: 9,
        pstn: .init(trunk: "t", privacy: true, attest: "A"))),
    .callConnected(CallConnected(at: 1, codec: "opus")),
    .callUpdate(CallUpdate(video: false, caps: .init(hold: true))), .callCancel(CallOver(.answeredElsewhere)),
    .callEnded(CallOver(.localEnd, by: .app, at: 1, stats: StreamStats(mos: 4.2))), .callGone(CallOver(.unknown)),
    .callProgress(CallProgress(.early, at: 1)), .mediaRestart(MediaRestart(gen: 2, cause: .timeout)),
    .mediaAnswer(MediaAnswer(sdp: "v", gen: 2)), .callHeld(CallHeld(by: .local, on: true)),
    .callHeld(CallHeld(by: .gateway, on: false)), .callMuted(CallMuted(on: true)),
    .callDigit(CallDigit(digit: "#", durMs: 80)),
    .quality(Quality(level: "bad", cause: "loss")), .callTransferred(CallTransferred(.done, sip: 200)),
    .ok(Success(dir: DirectoryAnswer(version: 9, from: 7, parts: 1, next: 15_550_000_001))),
    .ok(
      Success(
        hist: HistoryPage(
          calls: [
            HistoryEntry(
              id: 4, call: call, dir: .incoming, peer: Handle(k: .phone, h: "+1", n: "Ann"), start: 1, connect: 2, end: 3,
              outcome: .answeredElsewhere, reason: .remoteHangup, device: "d2", acct: "default")
          ], next: 4))),
    .ok(Success(names: [Handle(k: .phone, h: "+1", n: "Ann")])),
    .ok(Success(ice: [ICEServer(urls: ["turn:x"], username: "u", credential: "c", ttlMs: 1)])),
    .ok(Success(sdp: "v", call: call, to: Handle(k: .phone, h: "+1"))),
    .ok(Success(user: UserInformation(numbers: ["+15551230001"], name: "Alice"))),
    .dirChanged(DirectoryChanged(version: 9)),
    .dirFull(DirectoryPart(version: 9, block: [1], identify: [.init(15_550_000_001, "Ann")])),
    .dirDelta(DirectoryPart(version: 9, from: 7, block: [1], unblock: [2], identify: [.init(3, "Ann")], unidentify: [4])),
    .histChanged(HistoryChanged(id: 4)),
  ]

  @Test(arguments: client) func `a client message is written and read back`(message: ClientMessage) throws {
    let type = message.type
    let sent = ClientFrame(
      message, id: type.isRequest ? call : nil, seq: type.isNumbered ? 5 : nil, ack: 0, call: type.needsCall ? call : nil)
    #expect(try ClientFrame(decoding: sent.encoded()) == sent)
  }

  @Test(arguments: server) func `a server message is written and read back`(message: ServerMessage) throws {
    let sent = ServerFrame(message, re: call, seq: message.type.isNumbered ? 5 : nil, call: call)
    #expect(try ServerFrame(decoding: sent.encoded()) == sent)
  }

  @Test func `every type stands in the tables above`() {
    #expect(Set(Self.client.map(\.type)) == Set(ClientMessageType.allCases))
    #expect(Set(Self.server.map(\.type)) == Set(ServerMessageType.allCases))
  }

  @Test func `requests and numbered types are those of the protocol`() {
    #expect(
      ClientMessageType.allCases.filter(\.isRequest).map(\.rawValue).sorted() == [
        "auth.refresh", "call.answer", "call.dtmf", "call.end", "call.group", "call.hold", "call.mute", "call.prepare",
        "call.reject", "call.start", "call.transfer", "call.translate", "device.del", "device.put", "device.state", "dir.find",
        "dir.get",
        "hello", "hist.list", "hist.resolve", "media.restart", "user.get",
      ])
    #expect(
      ClientMessageType.allCases.filter { !$0.isNumbered }.map(\.rawValue).sorted() == [
        "ack", "auth.refresh", "bye", "device.del", "device.put", "device.state", "dir.find", "dir.get", "err", "hello",
        "hist.list",
        "hist.resolve", "ping", "pong", "stats", "user.get",
      ])
    #expect(
      ServerMessageType.allCases.filter { !$0.isNumbered }.map(\.rawValue).sorted() == [
        "ack", "auth.expiring", "bye", "call.wake", "dir.changed", "dir.delta", "dir.full", "err", "hist.changed", "ok", "ping",
        "pong", "quality", "welcome",
      ])
  }

  @Test(arguments: ["call.park", "dir.put"])
  func `a type of another version is read as unknown, with its envelope`(type: String) throws {
    let bytes = Array(#"{"t":"\#(type)","id":"\#(callText)","seq":9,"call":"\#(callText)","d":{"version":1}}"#.utf8)
    let (read, there) = (try ClientFrame(decoding: bytes), try ServerFrame(decoding: bytes))
    #expect(read.body == .unknown(type) && read.id == call && read.seq == 9 && read.call == call)
    #expect(there.body == .unknown(type) && there.seq == 9)
  }

  @Test func `reasons map to CallKit and to SIP as the protocol's table says`() {
    #expect(EndReason.busy.callEndedReason == .unanswered)
    #expect(EndReason.declined.callEndedReason == .remoteEnded)
    #expect(EndReason.diverted.callEndedReason == .answeredElsewhere)
    #expect(EndReason.localEnd.callEndedReason == nil)
    #expect(EndReason.trunkFailed.callEndedReason == .failed)
    #expect(EndReason.mediaTimeout.refusal() == .init(status: 480, q850: 41))
    #expect(EndReason.unanswered.refusal() == .init(status: 480, q850: 19))
    #expect(EndReason.busyElsewhere.refusal(declineCode: 603) == .init(status: 603))
    #expect(
      [486, 600, 603, 408, 404, 403, 488, 407, 503, 500, 418].map(EndReason.init(sipStatus:)) == [
        .busy, .busy, .declined, .unanswered, .notFound, .forbidden, .codec, .auth, .trunkFailed, .trunkFailed, .unknown,
      ])
  }
}
