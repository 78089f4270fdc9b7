import AppSessions
import CallFlow
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes

private let phone = Surroundings.phone
private let tablet = Surroundings.tablet
private let bob = DeviceKey(user: "bob", device: "b")

/// Devices that were woken, or cannot be: sessions for one call, rejects of killed apps, preferences and revocations.
@Suite struct WakeTests {
  @Test func `a session for one call has no part in others, until its login makes it one for all (INC-9)`() throws {
    let world = Surroundings(pushes: true)
    let (_, first) = try world.parked()
    world.connect(phone, wake: first)
    world.notify(phone, .callRinging(CallRinging()), call: first)
    world.invite(to: "+15551230002")
    let second = try #require(world.pushes.last?.key.call)
    #expect(second != first && world.pushes.count == 2, "the second call is pushed, not offered")
    #expect(world.received[phone] == nil)
    world.pushed()
    world.feed(.app(.upgraded(phone, SessionID("phone"), DeviceInfo(caps: ["media.active"]))))
    #expect(world.received[phone] == ["call.offer"] && world.offeredCall() == second)
    #expect(world.pushes.count == 2)
    world.notify(phone, .callRinging(CallRinging()), call: second)
    #expect(world.trunkReceived == ["180", "180"])
  }

  @Test func `a woken device that may show two calls gets both`() throws {
    let world = Surroundings(pushes: true)
    let (leg, first) = try world.parked()
    world.invite(to: "+15551230002")
    let second = try #require(world.pushes.last?.key.call)
    world.pushed()
    world.feed(.sip(.cancelled(leg, nil)))
    world.connect(phone, wake: second)
    #expect(world.welcomes[SessionID("phone")]?.calls.map(\.call) == [second])
    #expect(world.welcomes[SessionID("phone")]?.gone.map(\.call) == [first])
    #expect(world.gone("phone") == [.callerCancelled])
  }

  @Test func `a resume of the session for one call does not swallow the end of another that was only pushed`() throws {
    let world = Surroundings(pushes: true)
    let (_, first) = try world.parked()
    world.connect(phone, wake: first)
    let leg = world.invite(to: "+15551230002")
    let second = try #require(world.pushes.last?.key.call)
    world.pushed()
    world.feed(.sip(.cancelled(leg, nil)))
    world.disconnect(phone)
    world.connect(phone, resumed: true, wake: first)
    world.connect(phone, "second", wake: second)
    #expect(world.gone("second") == [.callerCancelled])
    // a message reported the end, which a resume replays: it is not reported again
    world.disconnect(phone, "second")
    world.connect(phone, "second", resumed: true, wake: second)
    world.connect(phone, "third", wake: second)
    #expect(world.gone("third") == [])
  }

  @Test func `a wake for another user's call, or for none, reports nothing but unknown`() throws {
    let world = Surroundings(pushes: true)
    let (_, call) = try world.parked()
    world.connect(bob, wake: call)
    #expect(world.welcomes[SessionID("b")]?.calls == [] && world.gone("b") == [.unknown])
    world.connect(bob, "b2", wake: Identifier(high: 9, low: 9))
    #expect(world.gone("b2") == [.unknown])
  }

  @Test func `an offer that the winner acks after its answer, and one that is due when pushes are switched off, stop no timer`()
    throws
  {
    for isWinner in [true, false] {
      let world = Surroundings(pushes: true)
      world.register()
      world.connect(phone)
      world.invite()
      let call = try #require(world.offeredCall())
      if isWinner {
        world.warm(phone, call)
        #expect(world.isOK(world.request(phone, .callAnswer(CallAnswer()), call: call)))
        world.feed(.app(.offerAcked(phone, SessionID("phone"), call: call)))
      } else {
        world.feed(.push(nil))
      }
      world.pass(.seconds(6))
      #expect(world.pushes.isEmpty && world.trunkReceived == (isWinner ? ["200"] : []))
    }
  }

  @Test func `a killed app rejects over HTTP: declined everywhere, ok again when repeated`() throws {
    let world = Surroundings(pushes: true)
    world.register()
    world.connect(tablet)
    world.invite()
    let call = try #require(world.offeredCall(tablet))
    world.pushed(to: phone)
    #expect(world.reject(phone, call) == .ok)
    #expect(world.trunkReceived == ["486"] && world.received[tablet] == ["call.offer", "call.cancel declinedElsewhere"])
    #expect(world.reject(phone, call) == .ok)
    #expect(world.code(world.reject(tablet, call)) == .gone)
    #expect(world.reason(world.reject(tablet, call)) == .declinedElsewhere)
    #expect(world.code(world.reject(bob, call)) == .gone && world.reason(world.reject(bob, call)) == .unknown)
    world.pass(.seconds(1))
    world.expectRecord(.declined, by: .app, sip: 486)
    // the reject was its own: it gets no reason
    world.connect(phone, wake: call)
    #expect(world.gone("phone") == [])
  }

  @Test func `a reject of one device only leaves the others ringing; busy reaches the trunk as busy`() throws {
    let world = Surroundings(pushes: true)
    let (_, call) = try world.parked([phone, tablet])
    #expect(world.reject(phone, call, CallReject(scope: .device, reason: .busy)) == .ok)
    #expect(world.trunkReceived == [])
    world.connect(tablet, wake: call)
    world.notify(tablet, .callRinging(CallRinging()), call: call)
    #expect(world.reject(tablet, call, CallReject(scope: .device, reason: .busy)) == .ok)
    #expect(world.trunkReceived == ["180", "486"])
    world.pass(.seconds(1))
    world.expectRecord(.busy, by: .app)
  }

  @Test(arguments: [true, false], [CallReject.Scope.all, .device])
  func `a reject by socket and one by HTTP have one effect, in either order, and both are ok`(
    socketFirst: Bool, scope: CallReject.Scope
  ) throws {
    for other in [false, true] {
      let world = Surroundings(pushes: true)
      let (_, call) = try world.ringing(other ? [phone, tablet] : [phone])
      let reject = CallReject(scope: scope, reason: .busy)
      let bySocket = { world.request(phone, .callReject(reject), call: call) }
      let byHTTP = { world.reject(phone, call, reject) }
      for way in socketFirst ? [bySocket, byHTTP, bySocket] : [byHTTP, bySocket, byHTTP] { #expect(way() == .ok) }
      #expect(world.received[phone] == ["call.offer"], "its ok is the terminal message")
      let isOver = !other || scope == .all
      #expect(world.trunkReceived == (isOver ? ["180", "486"] : ["180"]))
      if other { #expect(world.received[tablet] == ["call.offer"] + (isOver ? ["call.cancel busyElsewhere"] : [])) }
      // also once only the tombstone is left
      world.pass(.seconds(1))
      #expect(bySocket() == .ok && byHTTP() == .ok)
      guard isOver else {
        world.warm(tablet, call)
        #expect(world.isOK(world.request(tablet, .callAnswer(CallAnswer()), call: call)), "the other one rings on")
        continue
      }
      world.expectRecord(.busy, by: .app, sip: 486)
      // a device that had no part in it gets the reason
      if other { #expect(world.reason(world.request(tablet, .callReject(reject), call: call)) == .busyElsewhere) }
    }
  }

  @Test func `a device that cannot take a call is out alone: the others ring on, and the last one out is not a decline`() throws {
    let world = Surroundings()
    world.connect(phone)
    world.connect(tablet)
    world.invite()
    let call = try #require(world.offeredCall(tablet))
    world.notify(phone, .callRinging(CallRinging()), call: call)
    world.notify(tablet, .callRinging(CallRinging()), call: call)
    #expect(world.request(phone, .callReject(CallReject(scope: .all, reason: .mediaFailed)), call: call) == .ok)
    #expect(world.trunkReceived == ["180"] && world.received[tablet] == ["call.offer"])
    #expect(world.request(tablet, .callReject(CallReject(scope: .device, reason: .mediaFailed)), call: call) == .ok)
    #expect(world.trunkReceived == ["180", "480 Q.850;cause=41"])
    world.pass(.seconds(1))
    world.expectRecord(.mediaFailed, by: .app, sip: 480)
  }

  @Test func `a reject after the lock is too late, for the winner and for others`() throws {
    let world = Surroundings(pushes: true)
    let (_, call) = try world.parked([phone, tablet])
    world.connect(phone, wake: call)
    world.request(phone, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call)
    #expect(world.code(world.reject(phone, call)) == .badState)
    #expect(world.code(world.reject(tablet, call)) == .gone)
    #expect(world.machine.summaries.first?.state == .answering)
  }

  @Test func `TOK-2, TOK-3: after device-del or a revocation nothing is pushed`() throws {
    for how in ["del", "revoke", "revoke all"] {
      let world = Surroundings(pushes: true)
      world.register()
      switch how {
      case "del":
        world.connect(phone, "logout")
        #expect(world.request(phone, .deviceDel, call: nil, on: "logout") == .ok)
        world.disconnect(phone, "logout", forGood: true)
        #expect(world.deviceChanges.last == .removed(phone))
      default:
        #expect(world.operate { .devices(.revoke(user: "alice", device: how == "revoke" ? "phone" : nil, $0)) } == .done)
        #expect(world.revoked == [phone])
      }
      world.invite()
      #expect(world.pushes.isEmpty && world.trunkReceived == ["480 Q.850;cause=20"], "\(how)")
    }
  }

  @Test func `a logout or revocation while the app has not rung yet stops its push`() throws {
    for isRevoked in [false, true] {
      let world = Surroundings(pushes: true)
      world.register()
      world.connect(phone)
      world.invite()
      if isRevoked {
        #expect(world.operate { .devices(.revoke(user: "alice", device: "phone", $0)) } == .done)
      } else {
        world.request(phone, .deviceDel, call: nil)
      }
      world.pass(.seconds(44))
      #expect(world.pushes.isEmpty && world.trunkReceived == [])
    }
  }

  @Test func `a revoked device that logs in again is turned away again, and no call is offered to it`() throws {
    let world = Surroundings(pushes: true)
    world.register()
    #expect(world.operate { .devices(.revoke(user: "alice", device: "phone", $0)) } == .done)
    world.connect(phone)
    #expect(world.revoked == [phone] && world.turnedAway == [SessionID("phone")])
    world.invite()
    #expect(world.received[phone] == nil && world.trunkReceived.count == 1 && world.trunkReceived[0].hasPrefix("480"))
    #expect(world.operate { .devices(.allow(phone, $0)) } == .done)
    world.connect(phone, "again")
    #expect(world.revoked == [phone] && world.turnedAway.count == 1)
    world.invite()
    #expect(world.received[phone] == ["call.offer"])
  }

  @Test func `an operator sees who was woken and who was not reached`() throws {
    let world = Surroundings(pushes: true)
    _ = try world.parked([phone, tablet], accepted: false)
    world.pushed(to: phone)
    world.pushed(.failed, to: tablet, reason: "circuitOpen", attempts: 0)
    let devices = try #require(world.machine.summaries.first?.devices)
    #expect(devices.map(\.device) == ["phone", "tablet"] && devices.map(\.state) == ["pushed", "notReached"])
    #expect(world.machine.summaries.first?.state == .parked)
  }

  @Test func `TOK-1: a rotated token replaces the old one, also between two calls`() throws {
    let world = Surroundings(pushes: true)
    world.register()
    world.connect(phone)
    let token = String(repeating: "ab", count: 32)
    let put = DevicePut(push: .init(kind: .apnsVoIP, token: token, env: "sandbox", topic: "com.example.app.voip"))
    #expect(world.request(phone, .devicePut(put), call: nil) == .ok)
    world.disconnect(phone, forGood: true)
    world.invite()
    #expect(world.pushes.map(\.target.token.exposed) == [token])
    #expect(world.pushes.first?.target.environment == .sandbox)
  }

  @Test func `TOK-5: every registered device of the user is woken, and no other user's`() throws {
    let world = Surroundings(pushes: true)
    world.register([phone, tablet, bob])
    world.invite()
    #expect(world.pushes.map(\.key.device) == ["phone", "tablet"])
    let bad = DevicePut(push: .init(kind: .apnsVoIP, token: "not hex", topic: "com.example.app.voip"))
    world.connect(bob)
    #expect(world.code(world.request(bob, .devicePut(bad), call: nil)) == .badRequest)
  }

  @Test func `EXC-1: a device that does not want calls is neither offered nor pushed to; alone it is 480`() throws {
    for prefs in [DevicePut.Preferences(dnd: true), .init(ring: false)] {
      let world = Surroundings(pushes: true)
      world.register([phone, tablet])
      world.connect(phone)
      #expect(world.request(phone, .devicePut(DevicePut(prefs: prefs)), call: nil) == .ok)
      world.invite()
      #expect(world.received[phone] == nil && world.pushes.map(\.key.device) == ["tablet"])
      world.request(tablet, .deviceDel, call: nil)
      world.connect(tablet)
      world.request(tablet, .deviceDel, call: nil)
      world.disconnect(tablet, forGood: true)
      world.invite()
      #expect(world.trunkReceived.last == "480" && world.pushes.count == 1)
    }
  }

  @Test func `stored registrations are there after the start; those registered meanwhile stay`() throws {
    let world = Surroundings(pushes: true)
    world.register()
    let stored = world.deviceChanges.compactMap { if case .stored(let device) = $0 { device } else { nil } }
    let later = Surroundings(pushes: true)
    later.register([tablet])
    later.feed(.devices(.loaded(stored)))
    later.invite()
    #expect(Set(later.pushes.map(\.key.device)) == ["phone", "tablet"])
  }
}
