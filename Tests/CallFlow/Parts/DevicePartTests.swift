import AppSessions
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import CallFlow

private let phone = Surroundings.phone
private let bob = DeviceKey(user: "bob", device: "desk")

@Suite struct PresenceTests {
  @Test func `a device is in its user's list once, with its last session, and users are in order`() {
    var presences = Presences()
    presences.connect(makePresence(bob, "b"))
    presences.connect(makePresence(phone, "s1"))
    presences.connect(makePresence(DeviceKey(user: alice, device: "tablet"), "t"))
    presences.connect(makePresence(phone, "s2"))
    #expect(presences[alice].map(\.session) == [SessionID("t"), SessionID("s2")] && presences[phone]?.session == SessionID("s2"))
    var walk = presences.users.walk(after: nil)
    #expect(walk.next() == alice && walk.next() == "bob" && walk.next() == nil)
  }

  @Test func `the end of an earlier session changes nothing, a second one neither`() {
    var presences = Presences()
    presences.connect(makePresence(phone, "s1"))
    presences.connect(makePresence(phone, "s2"))
    holds(!presences.disconnect(phone, SessionID("s1"), at: seconds(1)))
    presences.end(phone, SessionID("s1"))
    #expect(presences[phone]?.isConnected == true && presences.disconnect(phone, SessionID("s2"), at: seconds(2)))
    #expect(presences[phone]?.isConnected == false && presences[phone]?.lostAt == seconds(2))
    presences.end(phone, SessionID("s2"))
    presences.end(phone, SessionID("s2"))
    #expect(presences.isEmpty && presences[phone] == nil && presences.users.isEmpty)
  }

  @Test func `inputs of a device without a session have no effect`() {
    var presences = Presences()
    presences.connect(makePresence(bob, "b"))
    #expect(!presences.disconnect(phone, SessionID("s1"), at: .zero) && presences.report(.bg, of: phone) == nil)
    #expect(presences.upgrade(phone, DeviceInfo()) == nil && presences.popMove(phone) == nil)
    holds(!presences.move(to: RemoteDevice(phone, at: "n1")))
    presences.end(phone, SessionID("b"))
    #expect(presences[alice].isEmpty && presences["bob"].count == 1)
  }

  @Test func `what a session reports counts at once`() {
    var presences = Presences()
    presences.connect(makePresence(phone, "s1", only: callID(1)))
    #expect(presences.report(.bg, of: phone)?.info.state == .bg && presences[phone]?.info.state == .bg)
    #expect(presences.upgrade(phone, DeviceInfo(model: "x"))?.info.onlyCall == nil && presences[phone]?.info.model == "x")
  }

  @Test func `a device that logged in elsewhere is there once its socket here is closed, unless it came for one call`() {
    var presences = Presences()
    let remote = RemoteDevice(phone, at: "n1")
    presences.connect(makePresence(phone, "s1", only: callID(1)))
    #expect(presences.move(to: remote) && presences.popMove(phone) == nil)
    _ = presences.upgrade(phone, DeviceInfo())
    #expect(presences.move(to: RemoteDevice(phone, at: "n2")) && presences.move(to: remote))
    holds(presences.disconnect(phone, SessionID("s1"), at: .zero))
    holds(!presences.move(to: RemoteDevice(phone, at: "n2")), "it is not connected here")
    #expect(presences.popMove(phone)?.node == "n1" && presences.popMove(phone) == nil)
    holds(presences.move(to: remote) == false)
    presences.connect(makePresence(phone, "s2"))
    #expect(presences.popMove(phone) == nil)
  }
}

@Suite struct TombstoneTests {
  private func tombstone(
    _ users: [String] = [alice], expires: Double = 120, wasPushed: Bool = true, ofDeadNode: Bool = false
  ) -> Tombstone {
    Tombstone(
      users: users, direction: .incoming, owner: nil, over: CallOver(.callerCancelled, by: .trunk, at: 1),
      terminals: ofDeadNode
        ? [:] : [phone: Terminal(over: CallOver(.declined, by: .app, at: 1), isByDevice: true, isUnseen: false)],
      wasPushed: wasPushed, expires: seconds(expires), isOfDeadNode: ofDeadNode)
  }

  @Test func `a call is remembered until its time is over, and a second insert changes nothing`() {
    var tombstones = Tombstones()
    holds(tombstones.insert(tombstone(), for: callID(1)).isEmpty)
    holds(tombstones.insert(tombstone(["bob"], expires: 500), for: callID(1)).isEmpty)
    _ = tombstones.insert(tombstone(expires: 121, wasPushed: false), for: callID(2))
    #expect(tombstones.count == 2 && tombstones.nextExpiry == seconds(120) && tombstones.calls(of: "bob").isEmpty)
    #expect(tombstones.removeExpired(at: seconds(119)).isEmpty && tombstones.calls(of: alice) == [callID(1), callID(2)])
    #expect(tombstones.removeExpired(at: seconds(121)) == [callID(1)], "only one was pushed")
    #expect(tombstones.removeExpired(at: seconds(121)).isEmpty && tombstones.count == 0 && tombstones.calls(of: alice).isEmpty)
    #expect(tombstones.nextExpiry == nil)
  }

  @Test func `the oldest is forgotten first if there are too many`() {
    var tombstones = Tombstones()
    for call in 1...Limits.tombstones { holds(tombstones.insert(tombstone(), for: callID(call)).isEmpty) }
    #expect(tombstones.insert(tombstone(), for: callID(0)) == [callID(1)])
    #expect(tombstones.count == Limits.tombstones && tombstones[callID(1)] == nil && tombstones[callID(0)] != nil)
    #expect(tombstones.calls(of: alice).first == callID(2))
  }

  @Test func `inputs of an unknown call or device have no effect`() {
    var tombstones = Tombstones()
    var changes = 0
    tombstones.update(callID(1), phone) { _ in changes += 1 }
    tombstones.add(alice, to: callID(1))
    _ = tombstones.insert(tombstone(), for: callID(2))
    tombstones.update(callID(2), bob) { _ in changes += 1 }
    tombstones.add("bob", to: callID(2))
    #expect(changes == 0 && tombstones.popLost(callID(1), phone) == nil && tombstones.popLost(callID(2), bob) == nil)
    #expect(tombstones.calls(of: "bob").isEmpty)
    tombstones.update(callID(2), phone) { _ in changes += 1 }
    #expect(changes == 1)
  }

  @Test func `each device of a dead node's call gets its end once, also of a user that is named later`() {
    var tombstones = Tombstones()
    _ = tombstones.insert(tombstone(ofDeadNode: true), for: callID(1))
    #expect(tombstones.popLost(callID(1), bob) == nil, "not a user of the call yet")
    tombstones.add("bob", to: callID(1))
    tombstones.add("bob", to: callID(1))
    #expect(tombstones.calls(of: "bob") == [callID(1)] && tombstones.popLost(callID(1), bob)?.reason == .callerCancelled)
    #expect(tombstones.popLost(callID(1), bob) == nil && tombstones.popLost(callID(1), phone) != nil)
    _ = tombstones.removeExpired(at: seconds(120))
    #expect(tombstones.calls(of: "bob").isEmpty && tombstones.popLost(callID(1), phone) == nil)
  }
}
