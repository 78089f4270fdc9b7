import AppSessions
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import Devices

/// What apps register, move and take back.
@Suite struct RegistrationTests {
  @Test func `TOK-1: a token is kept in lower case and a rotated one replaces the old`() throws {
    var rig = Rig()
    try rig.put(key("alice", "phone"), apns("AB"))
    #expect(rig.tokens("alice") == ["phone": token("ab")])
    try rig.put(key("alice", "phone"), apns("cd"))
    #expect(rig.tokens("alice") == ["phone": token("cd")])
    #expect(rig.stored[key("alice", "phone")]?.bindings.map(\.target.token.exposed) == [token("cd")])
    #expect(rig.registry.unregistered(PushTarget(.apns, token: token("ab"), topic: "org.example.app.voip"), before: nil) == [])
  }

  @Test func `TOK-1: registering again renews the time, so that an older 410 does not touch it`() throws {
    var rig = Rig()
    try rig.put(key("alice", "phone"), apns("ab"))
    let first = rig.now
    try rig.put(key("alice", "phone"), apns("ab"))
    #expect(rig.registry[key("alice", "phone")]?.bindings.map(\.registeredAt) == [first + 1_000])
  }

  @Test func `TOK-5: several devices of a user have registrations of their own, one for each kind and topic`() throws {
    var rig = Rig()
    try rig.put(key("alice", "phone"), apns("ab"))
    try rig.put(key("alice", "tablet"), apns("cd"))
    try rig.put(key("alice", "desk"), .init(kind: .fcm, token: "fcm:1"))
    try rig.put(key("alice", "phone"), apns("ef", env: "sandbox"))
    try rig.put(key("alice", "phone"), apns("01", topic: "org.example.beta.voip"))
    #expect(rig.registry[key("alice", "phone")]?.bindings.count == 2)
    #expect(rig.tokens("alice") == ["phone": token("01"), "tablet": token("cd"), "desk": "fcm:1"])
    #expect(rig.registry.targets(of: "alice").count == 3, "a device is pushed to once, whatever it registered")
  }

  @Test func `TOK-2: device.del and TOK-3: logout leave nothing to push to`() throws {
    var rig = Rig()
    try rig.put(key("alice", "phone"), apns("ab"))
    rig.take(rig.registry.delete(key("alice", "phone")))
    #expect(rig.registry.targets(of: "alice").isEmpty && rig.registry.count == 0 && rig.stored.isEmpty)
    #expect(rig.registry.delete(key("alice", "phone")).isEmpty, "a second logout is nothing new")
  }

  @Test
  func `TOK-4: a token that another user registers is no longer the first one's: no call after a logout that was never told`()
    throws
  {
    var rig = Rig()
    try rig.put(key("alice", "phone"), apns("ab"))
    try rig.put(key("bob", "phone"), apns("ab"))
    #expect(rig.tokens("alice").isEmpty && rig.tokens("bob") == ["phone": token("ab")])
    #expect(rig.stored.keys.map(\.user) == ["bob"])
    // Back again, with preferences that keep the other's row.
    try rig.put(key("bob", "phone"), prefs: .init(dnd: true))
    try rig.put(key("alice", "phone"), apns("ab"))
    #expect(rig.registry.devices(of: "bob").map(\.bindings) == [[]])
    #expect(rig.stored[key("bob", "phone")]?.bindings == [])
  }

  @Test func `TOK-5: a device of another user with the same id is another device`() throws {
    var rig = Rig()
    try rig.put(key("alice", "phone"), apns("ab"))
    try rig.put(key("bob", "phone"), apns("cd"))
    rig.take(rig.registry.delete(key("bob", "phone")))
    #expect(rig.tokens("alice") == ["phone": token("ab")])
    #expect(throws: DeviceError.unknown) { try rig.registry.revoke(user: "bob", device: "phone", at: 0) }
  }

  @Test func `ACC-1: a call of one account wakes only devices that are logged in to it`() throws {
    var rig = Rig()
    try rig.put(key("alice", "phone"), apns("ab"), info: DeviceInfo(accounts: ["a1", "a2"]))
    try rig.put(key("alice", "tablet"), apns("cd"), info: DeviceInfo(accounts: ["a2"]))
    #expect(rig.registry.targets(of: "alice", account: "a1").map(\.key.device) == ["phone"])
    #expect(rig.registry.targets(of: "alice", account: "a2").map(\.key.device) == ["phone", "tablet"])
    rig.take(rig.registry.seen(key("alice", "phone"), info: DeviceInfo(accounts: ["a2"]), at: rig.now))
    #expect(rig.registry.targets(of: "alice", account: "a1").isEmpty && rig.stored[key("alice", "phone")]?.accounts == ["a2"])
  }

  @Test func `EXC-1: a device that must not ring or not disturb is not woken, and each preference is set alone`() throws {
    var rig = Rig()
    try rig.put(key("alice", "phone"), apns("ab"))
    try rig.put(key("alice", "phone"), prefs: .init(dnd: true))
    #expect(rig.registry.targets(of: "alice").isEmpty && !rig.registry.wantsCalls(key("alice", "phone")))
    try rig.put(key("alice", "phone"), prefs: .init(ring: false))
    try rig.put(key("alice", "phone"), prefs: .init(dnd: false))
    #expect(rig.registry.targets(of: "alice").isEmpty, "ring is still false")
    try rig.put(key("alice", "phone"), prefs: .init(ring: true))
    #expect(rig.tokens("alice").count == 1)
  }

  @Test func `a device that comes back is written at most once an hour unless it says something new`() throws {
    var rig = Rig()
    try rig.put(key("alice", "phone"), apns("ab"), info: DeviceInfo(model: "A"))
    let info = DeviceInfo(model: "A")
    #expect(rig.registry.seen(key("alice", "phone"), info: info, at: rig.now + 60_000).isEmpty)
    #expect(rig.registry[key("alice", "phone")]?.lastSeen == rig.now + 60_000)
    #expect(rig.registry.seen(key("alice", "phone"), info: DeviceInfo(model: "B"), at: rig.now + 61_000).count == 1)
    #expect(rig.registry.seen(key("alice", "phone"), info: DeviceInfo(model: "B"), at: rig.now + 9_000_000).count == 1)
    #expect(
      rig.registry.seen(key("alice", "other"), info: info, at: rig.now).isEmpty, "nothing is known of it that a store should hold"
    )
  }
}
