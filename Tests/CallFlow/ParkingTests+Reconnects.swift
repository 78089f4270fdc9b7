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

/// A device whose socket has just broken may come back.
extension ParkingTests {
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
}
