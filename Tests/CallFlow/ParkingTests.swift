import AppSessions
import CallFlow
import CallModel
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineSIPDialogs

private let phone = Surroundings.phone
private let tablet = Surroundings.tablet

/// A caller waits while apps are woken: which devices are pushed to, when and how often, and the responses that the trunk gets
/// meanwhile.
@Suite struct ParkingTests {
  @Test func `SRV-6: an INVITE for a killed app is parked, pushed at once, and rings when the app says so (sequence 2)`() throws {
    let world = Surroundings(pushes: true)
    let (_, call) = try world.parked(accepted: false)
    #expect(world.pushes.count == 1 && world.trunkReceived == [])
    let push = try #require(world.pushes.first)
    #expect(push.key == PushKey(call: call, user: "alice", device: "phone"))
    #expect(push.deadline == world.now + .seconds(45))
    #expect(
      push.content.gateway == "wss://gw.example/v1/connect" && push.content.handle == "+15550000042"
        && push.content.name == "Carol")
    #expect(world.measurements.contains(.inviteToPush(.zero)))
    world.pushed()
    world.pass(.seconds(1))
    world.connect(phone, wake: call)
    let snapshot = try #require(world.welcomes[SessionID("phone")]?.calls.first)
    #expect(snapshot.call == call && snapshot.state == .ringing && snapshot.sdp != nil)
    #expect(world.trunkReceived == [])
    world.notify(phone, .callRinging(CallRinging()), call: call)
    #expect(world.trunkReceived == ["180"])
    world.warm(phone, call)
    #expect(world.request(phone, .callAnswer(CallAnswer()), call: call) == .ok(Success(won: true)))
    #expect(world.trunkReceived == ["180", "200"])
    world.pass(.seconds(60))
    #expect(world.pushes.count == 1)
  }

  @Test func `SRV-4: the push names the call and the caller, and carries a wake token of this call and device`() throws {
    let world = Surroundings(pushes: true)
    let (_, call) = try world.parked([phone, tablet], accepted: false)
    for (key, push) in zip([phone, tablet], world.pushes) {
      let wake = try #require(Surroundings.wakes.read(push.content.wake.exposed))
      #expect(wake.call == call && wake.device == key)
      #expect(wake.firstUseBefore == push.deadline + .seconds(30))
      #expect(push.content.deadline == 1_700_000_046)
    }
    #expect(Set(world.pushes.map(\.content.wake.exposed)).count == 2)
  }

  @Test func `INC-7, SRV-1: a connected device in the foreground is offered the call and not pushed to`() throws {
    let world = Surroundings(pushes: true)
    world.register()
    _ = try world.ringing()
    world.pass(.seconds(40))
    #expect(world.pushes.isEmpty && world.received[phone] == ["call.offer"])
  }

  @Test func `EXC-4: a device that does not ack its offer within 1.5 s is pushed to`() throws {
    let world = Surroundings(pushes: true)
    world.register()
    world.connect(phone)
    world.invite()
    world.pass(.milliseconds(1_499))
    #expect(world.pushes.isEmpty)
    world.pass(.milliseconds(1))
    #expect(world.pushes.count == 1)
    world.pushed()
    world.pass(.seconds(30))
    #expect(world.pushes.count == 1)
  }

  @Test func `EXC-4: one that acks but neither rings nor declines is pushed to 3 s after the offer`() throws {
    for says in ["nothing", "ringing", "unavailable"] {
      let world = Surroundings(pushes: true)
      world.register([phone, tablet])
      world.connect(phone)
      world.connect(tablet)
      world.invite()
      let call = try #require(world.offeredCall())
      world.feed(.app(.offerAcked(tablet, SessionID("tablet"), call: call)))
      world.notify(tablet, .callRinging(CallRinging()), call: call)
      world.pass(.seconds(1))
      world.feed(.app(.offerAcked(phone, SessionID("phone"), call: call)))
      if says == "ringing" { world.notify(phone, .callRinging(CallRinging()), call: call) }
      if says == "unavailable" { world.notify(phone, .callUnavailable(CallUnavailable(why: .dnd)), call: call) }
      world.pass(.milliseconds(1_999))
      #expect(world.pushes.isEmpty, "\(says)")
      world.pass(.milliseconds(1))
      #expect(world.pushes.count == (says == "nothing" ? 1 : 0), "\(says)")
    }
  }

  @Test func `EXC-4: iOS in the background is pushed to at once, beside the offer`() throws {
    for (platform, state, count) in [("ios", AppState.bg, 1), ("ios", .fg, 0), ("web", .bg, 0), ("linux", .fg, 0)] {
      let world = Surroundings(pushes: true)
      world.register()
      world.connect(phone, platform: platform, state: state)
      world.invite()
      #expect(world.received[phone] == ["call.offer"])
      #expect(world.pushes.count == count, "\(platform) \(state)")
    }
    // also if it goes to the background before it rang
    let world = Surroundings(pushes: true)
    world.register()
    world.connect(phone, platform: "ios", state: .fg)
    world.invite()
    world.feed(.app(.stateChanged(phone, .bg)))
    #expect(world.pushes.count == 1)
    world.feed(.app(.stateChanged(phone, .fg)))
    world.feed(.app(.stateChanged(phone, .bg)))
    #expect(world.pushes.count == 1)
  }

  @Test func `a socket that breaks before it rang is pushed to at once, one that rang has the time of a reconnect`() throws {
    for rang in [false, true] {
      for returns in [false, true] {
        let world = Surroundings(pushes: true)
        world.register()
        world.connect(phone)
        world.invite()
        let call = try #require(world.offeredCall())
        world.feed(.app(.offerAcked(phone, SessionID("phone"), call: call)))
        if rang { world.notify(phone, .callRinging(CallRinging()), call: call) }
        world.pass(.milliseconds(500))
        world.disconnect(phone)
        if returns { world.connect(phone, resumed: true) }
        world.pass(.milliseconds(1))
        #expect(world.pushes.count == (rang || returns ? 0 : 1))
        world.pass(.milliseconds(1_500))
        #expect(world.pushes.count == (returns ? 0 : 1))
      }
    }
  }

  @Test func `SRV-3: whatever the push and the device do, a device is pushed to once`() throws {
    let world = Surroundings(pushes: true)
    let (_, call) = try world.parked()
    for round in 0..<5 {
      world.connect(phone, "s\(round)", platform: "ios", state: .bg)
      world.pass(.seconds(4))
      if round == 2 { world.notify(phone, .callRinging(CallRinging()), call: call) }
      world.disconnect(phone, "s\(round)", forGood: round % 2 == 0)
      world.pass(.seconds(2))
    }
    #expect(world.pushes.count == 1)
    world.pass(.seconds(30))
    #expect(world.trunkReceived == ["180", "480 Q.850;cause=19"])
    world.pass(.seconds(1))
    world.expectRecord(.unanswered, by: .gateway)
    #expect(world.pushes.count == 1)
  }

  @Test func `early180: 2 s after the first accepted push, once, and never without one`() throws {
    for early in [Duration?.some(.seconds(2)), nil] {
      let world = Surroundings(pushes: true) { configuration, _ in configuration.timers.early180 = early }
      _ = try world.parked([phone, tablet], accepted: false)
      world.pass(.seconds(3))
      #expect(world.trunkReceived == [])
      world.pushed(to: tablet)
      world.pass(.milliseconds(1_000))
      world.pushed(to: phone)
      world.pass(.milliseconds(999))
      #expect(world.trunkReceived == [])
      world.pass(.milliseconds(1))
      #expect(world.trunkReceived == (early == nil ? [] : ["180"]))
      world.connect(phone)
      world.notify(phone, .callRinging(CallRinging()), call: try #require(world.pushes.last?.key.call))
      #expect(world.trunkReceived == ["180"])
    }
  }

  @Test func `the ring window is 45 s: 480 with cause 19, whatever was pushed`() throws {
    let world = Surroundings(pushes: true)
    _ = try world.parked()
    world.pass(.milliseconds(44_999))
    #expect(world.trunkReceived == ["180"])
    world.pass(.milliseconds(1))
    #expect(world.trunkReceived == ["180", "480 Q.850;cause=19"])
    world.connect(phone)
    #expect(world.gone("phone") == [.unanswered])
    world.pass(.seconds(1))
    world.expectRecord(.unanswered, by: .gateway, sip: 480)
  }

  @Test func `no device and no push target: 480 with cause 20 at once`() throws {
    let world = Surroundings(pushes: true)
    world.invite()
    #expect(world.trunkReceived == ["480 Q.850;cause=20"])
    world.pass(.seconds(1))
    world.expectRecord(.unanswered, by: .app)
    // where no device can be pushed to, a registration does not count
    let silent = Surroundings()
    silent.register()
    silent.invite()
    #expect(silent.trunkReceived == ["480 Q.850;cause=20"] && silent.pushes.isEmpty)
  }

  @Test func `TOK-4: if every push failed and no device is connected the call ends at once, with the service's reason`() throws {
    let world = Surroundings(pushes: true)
    _ = try world.parked([phone, tablet], accepted: false)
    world.pushed(.failed, to: phone, reason: "circuitOpen", attempts: 0)
    #expect(world.trunkReceived == [])
    world.pushed(.unregistered(before: nil), to: tablet, reason: "Unregistered")
    #expect(world.trunkReceived == ["480 Q.850;cause=20"])
    world.pass(.seconds(1))
    world.expectRecord(.unanswered, by: .app, sip: 480)
    #expect(world.records.first?.end.detail == "no device left, no push accepted: Unregistered")
    #expect(world.deviceChanges.contains(.removed(tablet)))
    // no push ever reached these devices
    world.connect(phone)
    world.connect(tablet)
    #expect(world.gone("phone") == [] && world.gone("tablet") == [])
  }

  @Test func `a push that is given up at the ring's end is a call that rang out, whichever thread is first`() throws {
    for isPushFirst in [true, false] {
      let world = Surroundings(pushes: true)
      _ = try world.parked(accepted: false)
      world.now = try #require(world.pushes.last).deadline
      if !isPushFirst { world.feed(.timer) }
      world.pushed(.failed, reason: "tooLate")
      #expect(world.trunkReceived == ["480 Q.850;cause=19"], "push first: \(isPushFirst)")
    }
  }

  @Test func `a device's reject as the ring ends decides the response to the trunk`() throws {
    let world = Surroundings(pushes: true)
    let (_, call) = try world.parked()
    world.now = try #require(world.pushes.last).deadline
    _ = world.reject(phone, call)
    #expect(world.trunkReceived == ["486"])
  }

  @Test func `a device that connects while another's push is open still wins, though its own push failed`() throws {
    let world = Surroundings(pushes: true)
    let (_, call) = try world.parked([phone, tablet], accepted: false)
    world.pushed(.failed, to: phone, reason: "broke", attempts: 2)
    world.pushed(to: tablet)
    world.pass(.seconds(5))
    world.connect(phone)
    #expect(world.welcomes[SessionID("phone")]?.calls.map(\.call) == [call])
    world.warm(phone, call)
    #expect(world.request(phone, .callAnswer(CallAnswer()), call: call) == .ok(Success(won: true)))
    world.connect(tablet, wake: call)
    #expect(world.gone("tablet") == [.answeredElsewhere])
  }

  @Test func `a device that just lost its socket has the time of a reconnect, also when its push fails at once`() throws {
    for returns in [true, false] {
      let world = Surroundings(pushes: true)
      world.register()
      world.connect(phone)
      world.invite()
      world.pass(.milliseconds(200))
      world.disconnect(phone)
      world.pass(.milliseconds(10))
      world.pushed(.failed, reason: "circuitOpen", attempts: 0)
      world.pass(.milliseconds(4_900))
      #expect(world.trunkReceived == [])
      if returns { world.connect(phone, resumed: true) }
      world.pass(.milliseconds(200))
      #expect(world.trunkReceived == (returns ? [] : ["480 Q.850;cause=20"]))
    }
  }

  @Test func `a socket that broke less than 5 s ago is waited for: the offer is kept, 480 only if no device came back`() throws {
    for (gone, returnsAfter) in [(500, 500), (500, nil), (4_900, 90), (4_900, nil), (5_000, nil)] as [(Int, Int?)] {
      let world = Surroundings()
      world.connect(phone)
      world.disconnect(phone)
      world.pass(.milliseconds(gone))
      world.invite()
      guard gone < 5_000 else {
        #expect(world.trunkReceived == ["480 Q.850;cause=20"] && world.received[phone] == nil)
        world.expectRecord(.unanswered, sip: 480)
        continue
      }
      #expect(world.trunkReceived == [] && world.received[phone] == ["call.offer"])
      let call = try #require(world.offeredCall())
      if let returnsAfter {
        world.pass(.milliseconds(returnsAfter))
        world.connect(phone, resumed: true)
        world.pass(.seconds(10))
        #expect(world.trunkReceived == [])
        world.notify(phone, .callRinging(CallRinging()), call: call)
        world.warm(phone, call)
        #expect(world.request(phone, .callAnswer(CallAnswer()), call: call) == .ok(Success(won: true)))
        #expect(world.trunkReceived == ["180", "200"])
      } else {
        world.pass(.milliseconds(5_000 - gone - 1))
        #expect(world.trunkReceived == [])
        world.pass(.milliseconds(1))
        #expect(world.trunkReceived == ["480 Q.850;cause=20"])
        #expect(world.received[phone] == ["call.offer", "call.cancel unanswered"])
        world.expectRecord(.unanswered, sip: 480)
      }
    }
  }

  @Test func `a device whose socket broke a moment ago is pushed to at once and counts as reachable`() throws {
    let world = Surroundings(pushes: true)
    world.register()
    world.connect(phone)
    world.disconnect(phone)
    world.pass(.milliseconds(300))
    world.invite()
    #expect(world.pushes.count == 1 && world.received[phone] == ["call.offer"] && world.trunkReceived == [])
    world.pushed(.failed, reason: "circuitOpen", attempts: 0)
    world.pass(.milliseconds(4_699))
    #expect(world.trunkReceived == [])
    world.pass(.milliseconds(1))
    #expect(world.trunkReceived == ["480 Q.850;cause=20"])
  }

  @Test func `while one device may come back, the refusal of another ends nothing`() throws {
    let world = Surroundings()
    world.connect(phone)
    world.disconnect(phone)
    world.connect(tablet)
    world.invite()
    let call = try #require(world.offeredCall(tablet))
    world.notify(tablet, .callUnavailable(CallUnavailable(why: .dnd)), call: call)
    world.pass(.milliseconds(4_999))
    #expect(world.trunkReceived == [])
    world.pass(.milliseconds(1))
    #expect(world.trunkReceived == ["480"])
  }

  @Test func `a device that no push reaches is waited for 5 s where its socket breaks before it rang, or its session ends`()
    throws
  {
    for (rang, forGood) in [(false, false), (false, true), (true, true)] {
      for returns in [false, true] {
        let world = Surroundings()
        world.connect(phone)
        world.invite()
        let call = try #require(world.offeredCall())
        if rang { world.notify(phone, .callRinging(CallRinging()), call: call) }
        let before = rang ? ["180"] : []
        world.pass(.milliseconds(500))
        world.disconnect(phone, forGood: forGood)
        world.pass(.milliseconds(4_999))
        #expect(world.trunkReceived == before)
        if returns { world.connect(phone, forGood ? "again" : nil, resumed: !forGood) }
        world.pass(.milliseconds(1))
        #expect(world.trunkReceived == (returns ? before : before + ["480 Q.850;cause=20"]), "rang \(rang), for good \(forGood)")
        if returns {
          world.pass(.seconds(10))
          #expect(world.trunkReceived == before)
        } else {
          world.expectRecord(.unanswered, sip: 480)
        }
      }
    }
  }

  /// The device shows the call, and may be moving from one network to another.
  @Test func `a device that rang and whose session can come back keeps the call until the ring's end`() throws {
    let world = Surroundings()
    world.connect(phone)
    world.invite()
    world.notify(phone, .callRinging(CallRinging()), call: try #require(world.offeredCall()))
    world.disconnect(phone)
    world.pass(.seconds(44))
    #expect(world.trunkReceived == ["180"])
    world.pass(.seconds(1))
    #expect(world.trunkReceived == ["180", "480 Q.850;cause=19"])
  }

  @Test func `a session that ended for good is not waited for`() throws {
    let world = Surroundings()
    world.connect(phone)
    world.disconnect(phone, forGood: true)
    world.invite()
    #expect(world.trunkReceived == ["480 Q.850;cause=20"])
  }

  @Test func `a registration that was renewed while the push was refused is pushed to, once`() throws {
    let world = Surroundings(pushes: true)
    _ = try world.parked(accepted: false)
    world.connect(tablet)
    let renewed = DevicePut(push: .init(kind: .fcm, token: String(repeating: "f", count: 40)))
    world.connect(phone, "other")
    #expect(world.request(phone, .devicePut(renewed), call: nil, on: "other") == .ok)
    world.pushed(.unregistered(before: nil), reason: "Unregistered")
    #expect(world.pushes.count == 2 && world.pushes.last?.target.service == .fcm)
    world.pushed()
    world.pass(.seconds(30))
    #expect(world.pushes.count == 2)
  }

  @Test func `if a device answers, open pushes are cancelled and late devices get the reason`() throws {
    let world = Surroundings(pushes: true)
    world.register([tablet])
    world.connect(phone)
    world.invite()
    let call = try #require(world.offeredCall())
    #expect(world.pushes.map(\.key.device) == ["tablet"])
    world.request(phone, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call)
    #expect(world.pushesOver == [call])
    world.pushed(to: tablet)
    world.connect(tablet, wake: call)
    #expect(world.gone("tablet") == [.answeredElsewhere])
    #expect(world.welcomes[SessionID("tablet")]?.calls == [])
    // it gets the reason once
    world.pass(.seconds(5))
    world.connect(tablet, "again", wake: call)
    #expect(world.gone("again") == [])
  }

  @Test func `E2E-2: an app that registered a key gets its caller sealed, until it registers without one`() throws {
    let world = Surroundings(pushes: true)
    // the base point of the curve is a valid key
    let key = "CQ" + String(repeating: "A", count: 41)
    for sealKey in [key, nil] {
      var put = Surroundings.put(phone)
      put.push?.sealKey = sealKey
      world.connect(phone, "login")
      #expect(world.isOK(world.request(phone, .devicePut(put), call: nil, on: "login")))
      // a change of preferences leaves the key as it is
      #expect(world.isOK(world.request(phone, .devicePut(DevicePut(prefs: .init(ring: true))), call: nil, on: "login")))
      world.disconnect(phone, "login", forGood: true)
      let leg = world.invite()
      let push = try #require(world.pushes.last)
      #expect((push.content.sealedCaller?.isEmpty == false) == (sealKey != nil))
      #expect(
        world.machine.devicePage(DeviceFilter(user: "alice"), after: nil, most: 8).rows.first?.summary.push.first?.sealed
          == (sealKey != nil))
      world.feed(.sip(.cancelled(leg, nil)))
      world.feed(.sip(.legClosed(leg)))
    }
    #expect(world.pushes.count == 2)
  }

  @Test func `END-2: the caller hangs up during the push: 487 stands, no second push, the late app learns why (sequence 4)`()
    throws
  {
    let world = Surroundings(pushes: true)
    let (leg, call) = try world.parked()
    world.feed(.sip(.cancelled(leg, nil)))
    world.pass(.seconds(100))
    #expect(world.pushes.count == 1)
    world.connect(phone, wake: call)
    #expect(world.gone("phone") == [.callerCancelled] && world.welcomes[SessionID("phone")]?.calls == [])
    world.expectRecord(.callerCancelled, by: .trunk, sip: 487)
    world.pass(.seconds(60))
    #expect(world.wakesOver == [call])
    world.connect(phone, "later", wake: call)
    #expect(world.gone("later") == [.unknown])
  }

  @Test func `INC-6: whatever a device filters by, the others ring on; all filtered is 480, all blocked the decline code`() throws
  {
    let whys: [CallUnavailable.Why?] = [.dnd, .blocked, .filtered, .busyOther, .noPermission, nil]
    for first in whys {
      for second in whys {
        let world = Surroundings(pushes: true)
        let (_, call) = try world.parked([phone, tablet])
        world.connect(phone, wake: call)
        world.connect(tablet, wake: call)
        world.notify(phone, .callUnavailable(CallUnavailable(why: first)), call: call)
        #expect(world.trunkReceived == [] && world.pushes.count == 2)
        world.notify(tablet, .callRinging(CallRinging()), call: call)
        world.notify(tablet, .callUnavailable(CallUnavailable(why: second)), call: call)
        #expect(world.trunkReceived == ["180", first == .blocked && second == .blocked ? "486" : "480"])
        // the receipt was the terminal message of both
        #expect(world.received[phone] == nil && world.received[tablet] == nil)
        world.pass(.seconds(1))
        #expect(world.records.count == 1)
      }
    }
  }

  @Test func `END-2: every reason that a call can end with while it is parked reaches a device that comes late`() throws {
    let endings: [(String, EndReason, (Surroundings, LegID, CallID) -> Void)] = [
      ("cancel", .callerCancelled, { world, leg, _ in world.feed(.sip(.cancelled(leg, nil))) }),
      (
        "other fork", .answeredElsewhere,
        { world, leg, _ in world.feed(.sip(.cancelled(leg, .init(protocolName: "SIP", cause: 200)))) }
      ),
      ("window", .unanswered, { world, _, _ in world.pass(.seconds(46)) }),
      ("declined", .declinedElsewhere, { world, _, call in _ = world.reject(tablet, call) }),
      ("busy", .busyElsewhere, { world, _, call in _ = world.reject(tablet, call, CallReject(reason: .busy)) }),
      ("operator", .server, { world, _, call in world.feed(.hangUp(call)) }),
      (
        "answered", .answeredElsewhere,
        { world, _, call in
          world.connect(tablet)
          world.request(tablet, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call)
        }
      ),
    ]
    for (name, reason, run) in endings {
      let world = Surroundings(pushes: true)
      let (leg, call) = try world.parked([phone, tablet])
      run(world, leg, call)
      world.connect(phone, wake: call)
      #expect(world.gone("phone") == [reason], "\(name)")
      let tap = world.request(phone, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call)
      #expect(world.code(tap) == (reason == .answeredElsewhere ? .answeredElsewhere : .gone), "\(name)")
      #expect(world.reason(tap) == reason, "\(name)")
    }
  }

  @Test func `after a push that is refused late the device gets no reason; after one without an answer it does`() throws {
    for (outcome, attempts, told) in [
      (PushReport.Outcome.unregistered(before: nil), 1, false), (.tokenMismatch, 1, false), (.failed, 0, false),
      (.failed, 2, true),
      (.accepted, 1, true),
    ] {
      let world = Surroundings(pushes: true)
      let (leg, _) = try world.parked(accepted: false)
      world.feed(.sip(.cancelled(leg, nil)))
      world.pushed(outcome, attempts: attempts)
      world.connect(phone)
      #expect(world.gone("phone") == (told ? [.callerCancelled] : []), "\(outcome)")
    }
  }

  @Test func `INC-12: what is learnt of a caller later goes to devices that have the call, and is never another push`() throws {
    let world = Surroundings(pushes: true)
    world.register([tablet])
    let (leg, call) = try world.parked()
    let named = Handle(k: .phone, h: "+15550000042", n: "Carol of Accounts")
    world.connect(phone, wake: call)
    world.feed(.callerKnown(call, named))
    #expect(world.messages[phone] == [.callUpdate(CallUpdate(from: named))] && world.received[tablet] == nil)
    world.feed(.callerKnown(call, named))
    #expect(world.received[phone] == ["call.update"], "said once")
    world.connect(tablet, wake: call)
    #expect(world.welcomes[SessionID("tablet")]?.calls.first?.from == named)
    world.notify(phone, .callRinging(CallRinging()), call: call)
    world.request(phone, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call)
    world.feed(.sip(.cancelled(leg, nil)))
    world.feed(.callerKnown(call, Handle(k: .phone, h: "+15550000042")))
    world.pass(.seconds(200))
    #expect(world.pushes.count == 2, "one for each device")
    #expect(world.received[phone]?.last == "call.ended callerCancelled")
  }
}
