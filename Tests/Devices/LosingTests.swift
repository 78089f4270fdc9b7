import AppSessions
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes

@testable import Devices

/// What push services and operators take away.
@Suite struct LosingTests {
  private func report(_ rig: Rig, _ key: DeviceKey, _ outcome: PushReport.Outcome) -> PushReport {
    PushReport(
      key: PushKey(call: Identifier(high: 1, low: 1), user: key.user, device: key.device),
      target: rig.registry.targets(of: key.user).first { $0.key == key }?.target ?? PushTarget(.apns, token: "none"),
      outcome: outcome)
  }

  @Test func `TOK-4: 410 deletes only a registration that is older than its timestamp`() throws {
    var rig = Rig()
    let phone = key("alice", "phone")
    try rig.put(phone, apns("ab"))
    for before in [rig.now - 1, rig.now] { rig.take(rig.registry.finished(report(rig, phone, .unregistered(before: before)))) }
    #expect(rig.tokens("alice").count == 1, "a fresh registration outlives an old 410")
    rig.take(rig.registry.finished(report(rig, phone, .unregistered(before: rig.now + 1))))
    #expect(rig.tokens("alice").isEmpty && rig.stored.isEmpty)
    try rig.put(phone, apns("ab"))
    rig.take(rig.registry.finished(report(rig, phone, .unregistered(before: nil))))
    #expect(rig.tokens("alice").isEmpty && rig.stored.isEmpty, "FCM and browsers name no time")
  }

  @Test func `TOK-4: a 410 for a token that moved deletes it where it is now, and nothing of its old owner`() throws {
    var rig = Rig()
    try rig.put(key("alice", "phone"), apns("ab"))
    let old = report(rig, key("alice", "phone"), .unregistered(before: rig.now + 500))
    try rig.put(key("bob", "phone"), apns("ab"))
    try rig.put(key("alice", "phone"), apns("cd"))
    rig.take(rig.registry.finished(old))
    #expect(rig.tokens("alice").count == 1 && rig.tokens("bob").count == 1, "registered after the timestamp")
  }

  @Test func `TOK-4: a registration of the wrong environment is left alone until the app renews it`() throws {
    var rig = Rig()
    let phone = key("alice", "phone")
    try rig.put(phone, apns("ab"))
    let wrong = report(rig, phone, .tokenMismatch)
    rig.take(rig.registry.finished(wrong))
    #expect(rig.tokens("alice").isEmpty && rig.stored[phone]?.bindings.map(\.isUsable) == [false])
    #expect(rig.registry.finished(wrong).isEmpty)
    try rig.put(phone, apns("ab", env: "sandbox"))
    #expect(rig.registry.targets(of: "alice").map(\.target.environment) == [.sandbox])
    #expect(rig.registry.finished(wrong).isEmpty, "a late verdict on the old registration does not touch the new one")
    #expect(rig.tokens("alice").count == 1)
  }

  @Test func `TOK-4: when the newest registration is wrong the device's other one is used`() throws {
    var rig = Rig()
    let phone = key("alice", "phone")
    try rig.put(phone, apns("ab"))
    try rig.put(phone, apns("cd", topic: "org.example.beta.voip"))
    rig.take(rig.registry.finished(report(rig, phone, .tokenMismatch)))
    #expect(rig.tokens("alice") == ["phone": token("ab")])
  }

  @Test func `TOK-5: a revoked device is not woken and may not register until it is allowed again`() throws {
    var rig = Rig()
    let phone = key("alice", "phone")
    try rig.put(phone, apns("ab"))
    try rig.put(key("alice", "tablet"), apns("cd"))
    rig.take(try rig.registry.revoke(user: "alice", device: "phone", at: rig.now))
    #expect(rig.tokens("alice") == ["tablet": token("cd")] && rig.registry.isRevoked(phone))
    #expect(throws: DeviceError.revoked) { try rig.put(phone, apns("ab")) }
    rig.take(rig.registry.delete(phone))
    #expect(rig.registry.isRevoked(phone), "logging out does not undo it")
    // Another user's login on the same hardware is its own affair.
    try rig.put(key("bob", "phone"), apns("ab"))
    rig.take(try rig.registry.allow(phone))
    #expect(rig.stored[phone] == nil)
    try rig.put(phone, apns("ab"))
    #expect(rig.tokens("alice").count == 2 && rig.tokens("bob").isEmpty)
  }

  @Test func `TOK-5: revoking a user turns away every device, and one that only connected can be turned away too`() throws {
    var rig = Rig()
    for device in ["a", "b", "c"] { try rig.put(key("alice", device), .init(kind: .fcm, token: "t-" + device)) }
    rig.take(try rig.registry.revoke(user: "alice", at: rig.now))
    #expect(rig.tokens("alice").isEmpty && rig.stored.values.allSatisfy { $0.revokedAt != nil && $0.bindings.isEmpty })
    #expect(throws: DeviceError.unknown) { try rig.registry.revoke(user: "nobody", at: 0) }
    rig.take(rig.registry.revoke(connected: key("alice", "d"), at: rig.now))
    #expect(rig.registry.isRevoked(key("alice", "d")) && rig.stored.count == 4)
    for number in 0..<100 { rig.take(rig.registry.revoke(connected: key("alice", "x\(number)"), at: rig.now + Int64(number))) }
    #expect(rig.registry.devices(of: "alice").count == Limits.revokedPerUser && rig.stored.count == Limits.revokedPerUser)
  }

  @Test func `what a store holds makes the same registry again`() throws {
    var rig = Rig()
    try rig.put(key("alice", "phone"), apns("ab"), info: DeviceInfo(platform: "ios", accounts: ["a1"]))
    try rig.put(key("alice", "phone"), .init(kind: .fcm, token: "both"))
    try rig.put(key("bob", "desk"), prefs: .init(dnd: true))
    rig.take(rig.registry.revoke(connected: key("carol", "x"), at: rig.now))
    var again = DeviceRegistry(Array(rig.stored.values))
    #expect(again.all == rig.registry.all)
    #expect(again.targets(of: "alice") == rig.registry.targets(of: "alice"))
    _ = try again.put(DevicePut(push: apns("ab")), by: key("bob", "desk"), at: rig.now + 1)
    #expect(again.devices(of: "alice").first?.bindings.map(\.target.service) == [.fcm], "token owners are known again")
  }

  @Test func `of two stored devices with one token the later registration keeps it`() {
    func device(_ user: String, _ at: Int64) -> Device {
      var device = Device(key: key(user, "phone"), at: at)
      device.bindings = [PushBinding(PushTarget(.apns, token: token("ab"), topic: "a.voip"), registeredAt: at)]
      return device
    }
    let registry = DeviceRegistry([device("alice", 20), device("bob", 10)])
    #expect(registry.targets(of: "alice").count == 1 && registry.targets(of: "bob").isEmpty)
  }

  @Test func `a full table of its own lets devices go that nobody has heard of for 30 days, and looks once a minute`() throws {
    var registry = DeviceRegistry([], most: 3)
    let day: Int64 = 86_400_000
    let prefs = DevicePut(prefs: .init(dnd: true))
    for (user, at) in [("alice", 0), ("bob", 20 * day), ("carol", 39 * day)] {
      _ = try registry.put(prefs, by: key(user, "phone"), at: at)
    }
    #expect(throws: DeviceError.self) { try registry.put(prefs, by: key("dave", "phone"), at: 29 * day) }
    #expect(throws: DeviceError.self) { try registry.put(prefs, by: key("dave", "phone"), at: 29 * day + 59_000) }
    _ = try registry.put(prefs, by: key("dave", "phone"), at: 40 * day)
    #expect(Set(registry.all.map(\.key.user)) == ["bob", "carol", "dave"])
  }

  @Test func `a registration searches a part of a full table, and the next one goes on behind it`() throws {
    let (most, old) = (2 * Limits.usersPerStaleLook + 10, 31 * 86_400_000 as Int64)
    var registry = DeviceRegistry(
      (0..<most).map { number in
        // the last two in the order of the users are stale
        var device = Device(key: key("u\(10_000 + number)", "phone"), at: number < most - 2 ? old : 0)
        device.doNotDisturb = true
        return device
      }, most: most)
    let prefs = DevicePut(prefs: .init(dnd: true))
    for _ in 0..<2 { #expect(throws: DeviceError.self) { try registry.put(prefs, by: key("new", "phone"), at: old) } }
    _ = try registry.put(prefs, by: key("new", "phone"), at: old)
    _ = try registry.put(prefs, by: key("newer", "phone"), at: old)
    #expect(registry.count == most)
    // the search is over; the next one begins a minute later, at the first user
    #expect(throws: DeviceError.self) { try registry.put(prefs, by: key("newest", "phone"), at: old) }
    #expect(throws: DeviceError.self) { try registry.put(prefs, by: key("newest", "phone"), at: old + 59_000) }
  }

  @Test func `a full table forgets whoever was not heard of for the longest time`() {
    var registry = DeviceRegistry([], most: 3)
    func learn(_ user: String, _ count: Int = 1) {
      registry.learn((0..<count).map { Device(key: key(user, "d\($0)"), at: 5) }, of: user, at: 1_000_000_000)
    }
    func known() -> Set<String> { Set(registry.all.map(\.key.user)) }
    for user in ["alice", "bob", "carol"] { learn(user) }
    learn("alice")
    learn("dave")
    #expect(known() == ["alice", "carol", "dave"])
    _ = registry.seen(key("carol", "d0"), info: DeviceInfo(), at: 1_000_000_001)
    learn("erin")
    #expect(known() == ["carol", "dave", "erin"])
    // many touches of few users cost no memory: the queue is as long as there are users
    for _ in 0..<10_000 { learn("dave") }
    learn("frank")
    #expect(known() == ["dave", "erin", "frank"])
    registry.learn([], of: "dave", at: 1_000_000_000)
    learn("alice")
    #expect(known() == ["alice", "erin", "frank"], "one that is gone gives way before others")
  }
}
