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
