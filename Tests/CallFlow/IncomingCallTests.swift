import AppSessions
import CallFlow
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineRTP

private let phone = Surroundings.phone
private let tablet = Surroundings.tablet

@Suite struct IncomingCallTests {
  @Test func `a warm call is answered when media is ready (sequence 1, INC-7, ANS-5)`() throws {
    let world = Surroundings()
    let (leg, call) = try world.ringing()
    #expect(world.received[phone] == ["call.offer"])
    #expect(world.trunkReceived == ["180"])
    world.warm(phone, call)
    #expect(world.trunkReceived == ["180"])
    let answer = world.request(phone, .callAnswer(CallAnswer(ageMs: 20)), call: call)
    #expect(answer == .ok(Success(won: true)))
    #expect(world.trunkReceived == ["180", "200"])
    #expect(world.received[phone] == ["call.offer", "call.connected"])
    world.feed(.sip(.acknowledged(leg, sdp: nil)))
    world.notify(phone, .mediaActive(MediaActive(capture: true, playout: true)), call: call)
    world.pass(.seconds(12))
    world.feed(.sip(.byeReceived(leg, nil)))
    #expect(world.received[phone]?.last == "call.ended remoteHangup")
    world.expectRecord(.remoteHangup, by: .trunk, sip: 200)
    let record = try #require(world.records.first)
    #expect(record.connectedMs == 12_000)
    #expect(record.device == "phone" && record.user == "alice" && record.trunk == "carrier")
    #expect(record.sipCallId == "call-2@carrier")
    #expect(record.codecs.trunk == "PCMU" && record.codecs.app == "opus")
    #expect(record.srtp == "AEAD_AES_128_GCM")
    #expect(record.times["tap"].map { record.times["answered", default: 0] - $0 } == 20)
  }

  @Test func `media is asked for with the flow of the INVITE, which states which of our addresses the trunk knows`() throws {
    let world = Surroundings()
    _ = try world.ringing()
    let requests = world.actions.compactMap { if case .reserveMedia(let request) = $0 { request } else { nil } }
    #expect(requests.map(\.asked) == [Surroundings.peer.flow])
  }

  @Test func `prefer relay offers an app its trunk's codec first, but never L16`() throws {
    for (codec, formats) in [(AudioEncoding.pcma, "8 111 0"), (.g722, "9 111 0 8"), (.l16, "111 0 8")] {
      let world = Surroundings { _, routing in
        (routing.trunks[0].codecs, routing.trunks[0].prefersRelay) = ([codec], true)
      }
      let sdp = Surroundings.trunkSDP(formats: "\(codec.row.payloadType) 101")
        .replacing("a=sendrecv", with: "a=rtpmap:\(codec.row.payloadType) \(codec.row.rtpmap)\r\na=sendrecv")
      _ = try world.ringing(sdp: sdp)
      let offers = world.messages[phone, default: []].compactMap { if case .callOffer(let offer) = $0 { offer.sdp } else { nil } }
      #expect(offers.first?.contains("RTP/SAVPF \(formats) 110") == true, "\(codec): \(offers)")
    }
  }

  @Test func `a call of a codec that has no row is refused, and no app rings`() {
    let world = Surroundings()
    world.connect(phone)
    world.invite(sdp: Surroundings.trunkSDP(formats: "96").replacing("a=sendrecv", with: "a=rtpmap:96 EVS/16000\r\na=sendrecv"))
    #expect(world.received[phone, default: []].isEmpty)
    #expect(world.trunkReceived == ["488"])
  }

  @Test func `no 200 before pair, keys and media-ready all hold, in any order (ANS-5)`() throws {
    let steps = ["answer", "pair", "keys", "ready"]
    for order in permutations(steps) {
      let world = Surroundings()
      let (_, call) = try world.ringing()
      _ = world.prepare(phone, call)
      for (index, step) in order.enumerated() {
        #expect(!world.trunkReceived.contains("200"), "\(order) after \(index) steps")
        switch step {
        case "answer": world.request(phone, .callAnswer(CallAnswer()), call: call)
        case "pair": world.pair(phone)
        case "keys": world.keys(phone)
        default: world.ready(phone, call)
        }
      }
      #expect(world.trunkReceived == ["180", "200"], "\(order)")
    }
  }

  @Test func `180 waits for the journal entry, at most 100 ms (SRV-6)`() throws {
    let world = Surroundings()
    world.journals = false
    let (_, call) = try world.ringing()
    #expect(world.trunkReceived == [])
    world.pass(.milliseconds(99))
    #expect(world.trunkReceived == [])
    world.pass(.milliseconds(1))
    #expect(world.trunkReceived == ["180"])
    #expect(world.machine.statistics.journalLate == 1)
    world.feed(.journalled(call))
    #expect(world.trunkReceived == ["180"])
  }

  @Test func `two devices answer: one wins, the other is notified (sequence 8)`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing([phone, tablet])
    #expect(world.request(phone, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call) == .ok(Success(won: true)))
    let late = world.request(tablet, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call)
    #expect(world.code(late) == .answeredElsewhere)
    #expect(world.received[tablet] == ["call.offer", "call.cancel answeredElsewhere"])
    let rejected = world.request(tablet, .callReject(CallReject()), call: call)
    #expect(world.code(rejected) == .gone && world.reason(rejected) == .answeredElsewhere)
    // a third device connects late
    world.connect(Surroundings.browser)
    let welcome = try #require(world.welcomes[SessionID("browser")])
    #expect(welcome.calls.isEmpty)
    #expect(welcome.gone.map(\.over.reason) == [.answeredElsewhere])
    // and gets the reason once
    world.connect(Surroundings.browser, "again")
    #expect(world.welcomes[SessionID("again")]?.gone.isEmpty == true)
  }

  @Test func `CANCEL ends the call for every device (END-2)`() throws {
    let world = Surroundings()
    let (leg, call) = try world.ringing([phone, tablet])
    world.feed(.sip(.cancelled(leg, nil)))
    #expect(world.received[phone] == ["call.offer", "call.cancel callerCancelled"])
    #expect(world.received[tablet] == ["call.offer", "call.cancel callerCancelled"])
    #expect(world.trunkReceived == ["180"])
    let late = world.request(phone, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call)
    #expect(world.code(late) == .gone && world.reason(late) == .callerCancelled)
    world.expectRecord(.callerCancelled, by: .trunk, sip: 487)
  }

  @Test func `CANCEL between lock and 200 is call-ended`() throws {
    let world = Surroundings()
    let (leg, call) = try world.ringing()
    world.request(phone, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call)
    world.feed(.sip(.cancelled(leg, .sip(200, "Call completed elsewhere"))))
    #expect(world.received[phone] == ["call.offer", "call.ended answeredElsewhere"])
    world.expectRecord(.answeredElsewhere, by: .trunk)
  }

  @Test func `no device answers in 45 s`() throws {
    let world = Surroundings()
    _ = try world.ringing([phone, tablet])
    world.pass(.milliseconds(44_999))
    #expect(world.trunkReceived == ["180"])
    world.pass(.milliseconds(1))
    #expect(world.trunkReceived == ["180", "480 Q.850;cause=19"])
    #expect(world.received[tablet] == ["call.offer", "call.cancel unanswered"])
    world.expectRecord(.unanswered, sip: 480)
  }

  @Test func `no device: 480 with cause 20`() throws {
    let world = Surroundings()
    world.invite()
    #expect(world.trunkReceived == ["480 Q.850;cause=20"])
    world.expectRecord(.unanswered, sip: 480)
  }

  @Test func `unknown number: 404 and a record`() throws {
    let world = Surroundings()
    world.connect(phone)
    world.invite(to: "+15559999999")
    #expect(world.trunkReceived == ["404 Q.850;cause=1"])
    world.expectRecord(.notFound, sip: 404)
    #expect(world.records.first?.user == nil)
  }

  @Test func `no codec in common: 488 and a record; no SDP at all: 400`() throws {
    let world = Surroundings()
    world.connect(phone)
    world.invite(sdp: Surroundings.trunkSDP(formats: "18"))
    #expect(world.trunkReceived == ["488"])
    world.expectRecord(.codec, by: .trunk, sip: 488)
    world.invite(sdp: "nonsense")
    #expect(world.trunkReceived == ["488", "400"])
    #expect(world.records.count == 2)
  }

  @Test func `a device that is unavailable is out, the other rings on (INC-6)`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing([phone, tablet])
    world.notify(phone, .callUnavailable(CallUnavailable(why: .dnd)), call: call)
    #expect(world.trunkReceived == ["180"])
    world.notify(tablet, .callUnavailable(CallUnavailable(why: .blocked)), call: call)
    #expect(world.trunkReceived == ["180", "480"])
    // the receipt of call.unavailable was the terminal message
    #expect(world.received[phone] == ["call.offer"])
    world.expectRecord(.dnd)
  }

  @Test func `all devices block the caller: decline code`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing()
    world.notify(phone, .callUnavailable(CallUnavailable(why: .blocked)), call: call)
    #expect(world.trunkReceived == ["180", "486"])
    world.expectRecord(.blocked, sip: 486)
  }

  @Test(arguments: [CallReject.Reason.busy, .declined])
  func `reject for all ends the call for the others`(reason: CallReject.Reason) throws {
    let world = Surroundings()
    let (_, call) = try world.ringing([phone, tablet])
    #expect(world.isOK(world.request(phone, .callReject(CallReject(reason: reason)), call: call)))
    #expect(world.trunkReceived == ["180", "486"])
    #expect(world.received[phone] == ["call.offer"])
    #expect(world.received[tablet] == ["call.offer", "call.cancel \(reason.rawValue)Elsewhere"])
    world.expectRecord(reason == .busy ? .busy : .declined, by: .app, sip: 486)
  }

  @Test func `reject for the device: the last one gives 486`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing([phone, tablet])
    world.request(phone, .callReject(CallReject(scope: .device)), call: call)
    #expect(world.trunkReceived == ["180"])
    world.request(tablet, .callReject(CallReject(scope: .device, reason: .busy)), call: call)
    #expect(world.trunkReceived == ["180", "486"])
    #expect(world.received[tablet] == ["call.offer"])
    world.expectRecord(.declined)
  }

  @Test func `an unusable description in call-answer does not take the lock; the last one out gives 488`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing([phone, tablet])
    let unusable = Surroundings.appSDP(setup: "holdconn")
    #expect(world.code(world.request(phone, .callAnswer(CallAnswer(sdp: unusable)), call: call)) == .codec)
    #expect(world.trunkReceived == ["180"])
    #expect(world.code(world.request(tablet, .callAnswer(CallAnswer(sdp: "v=0")), call: call)) == .codec)
    #expect(world.trunkReceived == ["180", "488"])
    // the err that refused was the terminal message of each
    #expect(world.received[phone] == ["call.offer"] && world.received[tablet] == ["call.offer"])
    world.expectRecord(.codec, by: .app, sip: 488)
  }

  @Test func `a device with a refused description is out; its bare answer gets the reason, the last one out gives 488 at once`()
    throws
  {
    for bad in [Surroundings.appSDP(setup: "holdconn"), "v=0", ""] {
      let world = Surroundings()
      let (_, call) = try world.ringing([phone, tablet])
      let prepare = ClientMessage.callPrepare(CallPrepare(sdp: bad, gen: 1))
      #expect(world.code(world.request(phone, prepare, call: call)) == .codec)
      #expect(world.trunkReceived == ["180"])
      #expect(world.code(world.request(phone, .callAnswer(CallAnswer()), call: call)) == .codec)
      #expect(world.trunkReceived == ["180"])
      #expect(world.code(world.request(tablet, prepare, call: call)) == .codec)
      #expect(world.trunkReceived == ["180", "488"])
      #expect(world.code(world.request(tablet, .callAnswer(CallAnswer()), call: call)) == .codec)
      // the err that refused was the terminal message of each
      #expect(world.received[phone] == ["call.offer"] && world.received[tablet] == ["call.offer"])
      world.expectRecord(.codec, by: .app, sip: 488)
    }
  }

  @Test func `an answer without a preparation is an error that the device can correct`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing()
    #expect(world.code(world.request(phone, .callAnswer(CallAnswer()), call: call)) == .badRequest)
    let whole = CallAnswer(sdp: Surroundings.appSDP())
    #expect(world.request(phone, .callAnswer(whole), call: call) == .ok(Success(won: true)))
  }

  @Test func `call-end before the lock rejects for all, and is ok at any time`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing([phone, tablet])
    #expect(world.isOK(world.request(phone, .callEnd(CallEnd()), call: call)))
    #expect(world.trunkReceived == ["180", "486"])
    #expect(world.received[tablet]?.last == "call.cancel declinedElsewhere")
    #expect(world.isOK(world.request(phone, .callEnd(CallEnd()), call: call)))
    #expect(world.isOK(world.request(phone, .callEnd(CallEnd()), call: Identifier(high: 9, low: 9))))
    world.expectRecord(.declined)
  }

  @Test func `two-minute tombstone, then nothing is known`() throws {
    let world = Surroundings()
    let (leg, call) = try world.ringing()
    world.feed(.sip(.cancelled(leg, nil)))
    world.pass(.seconds(119))
    #expect(world.reason(world.request(phone, .callAnswer(CallAnswer()), call: call)) == .callerCancelled)
    world.pass(.seconds(1))
    let late = world.request(phone, .callAnswer(CallAnswer()), call: call)
    #expect(world.code(late) == .gone && world.reason(late) == nil)
    #expect(world.machine.statistics.tombstones == 0)
  }

  @Test func `what is refused before a call exists is counted and has no record`() throws {
    let world = Surroundings { configuration, routing in
      configuration.bounds.calls = 2
      configuration.bounds.callsPerUser = 1
      routing.trunks[0].maximumCalls = 2
    }
    world.connect(phone)
    world.connect(DeviceKey(user: "bob", device: "b"))
    world.invite(trunk: "stranger")
    world.invite(diversions: 4)
    world.invite()
    world.invite()
    world.invite(to: "+15551230009")
    world.invite(to: "+15551230009")
    world.mediaRefusal = "no ports"
    world.feed(.hangUp(try #require(world.offeredCall(DeviceKey(user: "bob", device: "b")))))
    world.invite(to: "+15551230009")
    world.isMediaOverloaded = true
    world.invite(to: "+15551230009")
    world.feed(.draining)
    world.invite()
    #expect(
      world.refusals.map(\.reason) == [.unknownTrunk, .diversions, .userLimit, .overload, .mediaPorts, .mediaOverload, .draining])
    #expect(world.refusals.allSatisfy { $0.caller.number != nil && $0.caller.call != nil && $0.caller.device == nil })
    #expect(world.trunkReceived.filter { $0 == "503" }.count == 5)
    #expect(world.machine.statistics.incoming == 2)
  }

  @Test func `numbers are found however the carrier writes them`() {
    let routing = Surroundings.routing
    var world = 0
    for number in ["+15551230001", "15551230001", "0015551230001"] {
      let surroundings = Surroundings()
      surroundings.connect(phone)
      surroundings.invite(to: number)
      if surroundings.received[phone] == ["call.offer"] { world += 1 }
    }
    #expect(world == 3 && routing.users.count == 2)
  }

  @Test func `a caller who withholds the number stays unknown to the app`() throws {
    let world = Surroundings()
    world.connect(phone)
    world.invite(isPrivate: true)
    guard case .callOffer(let offer) = world.messages[phone]?.first else { return #expect(Bool(false)) }
    #expect(offer.from == Handle(k: .generic, h: "anonymous") && offer.pstn?.privacy == true)
    #expect(offer.gen == 1 && offer.sdp.contains("a=ice-lite") && offer.to.h == "+15551230001")
  }
}

/// All permutations of a few elements.
func permutations<T>(_ items: [T]) -> [[T]] {
  guard items.count > 1 else { return [items] }
  return items.indices.flatMap { index -> [[T]] in
    var rest = items
    let first = rest.remove(at: index)
    return permutations(rest).map { [first] + $0 }
  }
}
