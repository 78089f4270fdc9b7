import AppSessions
import JSONWebToken
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

@testable import CallFlow
@testable import CallModel

private let phone = Surroundings.phone
private let tablet = Surroundings.tablet

@Suite struct DeviceTests {
  private func gone(_ world: Surroundings, _ session: String) -> [EndReason]? {
    world.welcomes[SessionID(session)]?.gone.map(\.over.reason)
  }

  @Test func `a message that may have gone with its socket is told again, an acked one not (INC-9)`() throws {
    for isAcked in [true, false] {
      let world = Surroundings()
      let (leg, call) = try world.ringing()
      world.feed(.sip(.cancelled(leg, nil)))
      if isAcked { world.feed(.app(.overAcked(phone, SessionID("phone"), call: call))) }
      let isTold = !isAcked
      world.feed(.app(.disconnected(phone, SessionID("phone"))))
      world.feed(.app(.ended(phone, SessionID("phone"))))
      world.connect(phone, "second")
      #expect(gone(world, "second") == (isTold ? [.callerCancelled] : []))
      world.feed(.app(.overAcked(phone, SessionID("second"), call: call)))
      world.disconnect(phone, "second")
      world.connect(phone, "third")
      #expect(gone(world, "third") == [])
    }
  }

  @Test func `a user who is erased has no devices, no grant and no session; another user's stay`() throws {
    let world = Surroundings(pushes: true) { _, routing in
      routing.directory = UserDirectory(routing.users, anyone: .init(id: "", numbers: []), grantRules: .init(numbers: ["+1"]))
    }
    let carol = DeviceKey(user: "carol", device: "cell")
    world.feed(.app(.granted(carol, SessionID("cell"), TokenGrant(numbers: ["+15559990000"], issuedAt: 5))))
    for key in [carol, tablet] {
      world.connect(key)
      let token = String(repeating: key == carol ? "ab" : "cd", count: 32)
      let put = DevicePut(push: .init(kind: .apnsVoIP, token: token, env: "sandbox", topic: "com.example.app.voip"))
      #expect(world.request(key, .devicePut(put), call: nil) == .ok)
    }
    #expect(Set(world.machine.devicePage(DeviceFilter(), after: nil, most: 256).rows.map(\.key.user)) == ["alice", "carol"])
    let gone = world.operate { .devices(.forget(user: "carol", $0)) }
    #expect(gone == .forgotten(devices: 1, grants: 1) && world.revoked == [carol])
    world.disconnect(carol, forGood: true)
    #expect(Set(world.machine.devicePage(DeviceFilter(), after: nil, most: 256).rows.map(\.key.user)) == ["alice"])
    #expect(world.machine.routing.directory.grants.isEmpty)
    #expect(world.operate { .devices(.forget(user: "nobody", $0)) } == .forgotten(devices: 0, grants: 0))
  }

  @Test func `a session that resumes replays the message itself`() throws {
    let world = Surroundings()
    let (leg, _) = try world.ringing()
    world.feed(.app(.disconnected(phone, SessionID("phone"))))
    world.feed(.sip(.cancelled(leg, nil)))
    world.connect(phone, resumed: true)
    world.pass(.seconds(5))
    world.connect(phone, "second")
    #expect(gone(world, "second") == [])
  }

  @Test func `a device that rejected or was unavailable is not told again`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing([phone, tablet])
    world.request(phone, .callReject(CallReject(scope: .device)), call: call)
    world.feed(.app(.disconnected(phone, SessionID("phone"))))
    world.connect(phone, "second")
    #expect(gone(world, "second") == [] && world.welcomes[SessionID("second")]?.calls == [])
  }

  @Test func `a new device joins a call that rings`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing()
    world.connect(tablet)
    let snapshot = try #require(world.welcomes[SessionID("tablet")]?.calls.first)
    #expect(snapshot.call == call && snapshot.state == .ringing && snapshot.gen == 1 && snapshot.exp != nil)
    #expect(snapshot.sdp?.contains("a=setup:actpass") == true)
    #expect(world.welcomes[SessionID("tablet")]?.live == [call])
    // offered by the snapshot: 20 s, not 10
    world.request(tablet, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call)
    world.pass(.milliseconds(19_999))
    #expect(world.records.isEmpty)
    world.pass(.milliseconds(1))
    world.expectRecord(.mediaTimeout)
  }

  @Test func `the snapshot names the state of the device's own call, and no others`() throws {
    let world = Surroundings()
    let (leg, call) = try world.connected()
    world.connect(phone, "second")
    #expect(world.welcomes[SessionID("second")]?.calls.map(\.state) == [.connected])
    world.connect(tablet)
    #expect(world.welcomes[SessionID("tablet")]?.calls == [] && gone(world, "tablet") == [.answeredElsewhere])
    world.connect(DeviceKey(user: "bob", device: "b"))
    #expect(world.welcomes[SessionID("b")]?.calls == [] && gone(world, "b") == [])
    #expect(world.code(world.request(DeviceKey(user: "bob", device: "b"), .callAnswer(CallAnswer()), call: call)) == .gone)
    _ = leg
  }

  @Test func `states of an outgoing call in the snapshot`() throws {
    let world = Surroundings()
    let call = Identifier(high: 5, low: 6)
    try world.started(call)
    func state(_ session: String) -> [CallSnapshot.State]? {
      world.connect(phone, session)
      return world.welcomes[SessionID(session)]?.calls.map(\.state)
    }
    #expect(state("a") == [.starting])
    world.openOutgoingGate(call)
    #expect(state("b") == [.ready])
    let leg = try #require(world.outgoingLeg)
    world.feed(.sip(.progress(leg, code: 180, sdp: nil)))
    #expect(state("c") == [.progress])
    world.feed(.sip(.answered(leg, sdp: Surroundings.trunkSDP())))
    #expect(state("d") == [.connected])
    // another device of the user has no part in it
    world.connect(tablet)
    #expect(world.welcomes[SessionID("tablet")]?.calls == [] && gone(world, "tablet") == [])
  }

  @Test func `a device that leaves for good while it rings is out after 5 s`() throws {
    let world = Surroundings()
    _ = try world.ringing()
    world.feed(.app(.disconnected(phone, SessionID("phone"))))
    world.pass(.seconds(10))
    #expect(world.records.isEmpty, "it may come back")
    world.feed(.app(.ended(phone, SessionID("phone"))))
    world.pass(.milliseconds(4_999))
    #expect(world.records.isEmpty, "a page that is loaded again opens its next session by then")
    world.pass(.milliseconds(1))
    #expect(world.trunkReceived == ["180", "480 Q.850;cause=20"])
    world.expectRecord(.unanswered)
  }

  @Test func `a warm device that moved to another socket is cold`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing()
    world.connect(phone, resumed: true)
    world.request(phone, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call)
    world.pass(.milliseconds(19_999))
    #expect(world.records.isEmpty)
    world.pass(.milliseconds(1))
    world.expectRecord(.mediaTimeout)
  }

  @Test func `more devices than may ring are told nothing`() throws {
    let world = Surroundings()
    let keys = (0..<Limits.devicesPerCall + 2).map { DeviceKey(user: "alice", device: "d\($0)") }
    for key in keys { world.connect(key) }
    let leg = world.invite()
    #expect(keys.count { world.received[$0] == ["call.offer"] } == Limits.devicesPerCall)
    world.feed(.sip(.cancelled(leg, nil)))
    #expect(keys.count { world.received[$0]?.last == "call.cancel callerCancelled" } == Limits.devicesPerCall)
    world.expectRecord(.callerCancelled)
  }

  @Test func `what comes after the end changes nothing`() throws {
    let world = Surroundings()
    world.closesMedia = false
    let (leg, call) = try world.connected()
    let session = try #require(world.session)
    let appLeg = try #require(world.legs[phone]).0
    world.feed(.sip(.byeReceived(leg, nil)))
    let (trunk, received) = (world.trunkReceived, world.received[phone])
    let late: [CallMachine.Input] = [
      .sip(.byeReceived(leg, nil)), .sip(.cancelled(leg, nil)), .sip(.ackTimedOut(leg)), .sip(.acknowledged(leg, sdp: nil)),
      .sip(.pingAnswered(leg, alive: false)), .sip(.legClosed(leg)), .hangUp(call), .journalled(call), .timer,
      .media(.appLegSilent(session, appLeg)), .media(.trunkSilent(session)),
      .media(.appLegFailed(session, appLeg, .fingerprintMismatch)),
      .media(.quality(session, MediaStatistics())),
      .media(.digit(session, from: .trunkToApp, digit: "1", durationMilliseconds: 100)),
      .media(.keysInstalled(session, appLeg, generation: 9, profile: "x")),
      .media(.firstAudio(session, .trunkToApp, at: world.now)),
    ]
    for input in late { world.feed(input) }
    for message in [ClientMessage.mediaReady(MediaReady()), .mediaFail(MediaFail(stage: .ice)), .callRinging(CallRinging())] {
      world.notify(phone, message, call: call)
    }
    #expect(world.code(world.request(phone, .callMute(CallMute(on: true)), call: call)) == .gone)
    world.feed(.sip(.reinviteReceived(leg, sdp: Surroundings.trunkSDP())))
    #expect(world.trunkReceived == trunk + ["481 re-INVITE"])
    #expect(world.received[phone] == received)
    world.pass(.seconds(1))
    world.expectRecord(.remoteHangup)
  }

  @Test func `after the lock only the winner has a leg`() throws {
    let world = Surroundings()
    let (_, call) = try world.ringing([phone, tablet])
    world.request(tablet, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call)
    #expect(world.machine.summaries.first?.devices.map(\.device) == ["tablet"])
    let removed = world.actions.compactMap { if case .media(.removeAppLeg(_, let leg)) = $0 { leg } else { nil } }
    #expect(removed.count == 1)
  }

  @Test func `every call that a device was told of holds its session until the terminal message`() throws {
    let world = Surroundings()
    let (leg, call) = try world.ringing([phone, tablet])
    func live(_ key: DeviceKey) -> Int {
      world.actions.reduce(0) {
        switch $1 {
        case .app(.callLive(key, call)): $0 + 1
        case .app(.callDead(key, call)): $0 - 1
        default: $0
        }
      }
    }
    #expect(live(phone) == 1 && live(tablet) == 1)
    world.request(phone, .callAnswer(CallAnswer(sdp: Surroundings.appSDP())), call: call)
    #expect(live(phone) == 1 && live(tablet) == 0)
    world.feed(.sip(.cancelled(leg, nil)))
    #expect(live(phone) == 0)
  }
}
