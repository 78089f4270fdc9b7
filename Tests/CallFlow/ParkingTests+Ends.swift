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

/// How a call ends that no device has, and what devices that come late receive.
extension ParkingTests {
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
}
