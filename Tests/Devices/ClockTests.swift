import Devices
import PushPolicy
import Testing
import TrunklineAppProtocol

/// What two nodes say of one device when the clock of one is an hour off. A store keeps the later word of each device.
@Suite struct ClockTests {
  private let phone = key("alice", "phone")
  private let hour: Int64 = 3_600_000

  /// What the cluster's store does with it.
  private func store(_ changes: [DeviceChange], _ stored: inout Device?) {
    func word(_ device: Device) -> Int64 { max(device.lastSeen, device.revokedAt ?? .min) }
    for case .stored(let device) in changes where stored.map({ word($0) <= word(device) }) ?? true { stored = device }
  }

  @Test(arguments: [3_600_000, -3_600_000] as [Int64])
  func `a registration at another node replaces one that a wrong clock dated`(skew: Int64) throws {
    var (first, second) = (Rig(), Rig())
    var stored: Device?
    store(try first.registry.put(DevicePut(push: apns("aa")), by: phone, at: first.now + skew), &stored)
    // the device comes to the other node, and registers its new token
    second.registry.learn(try #require(stored))
    store(try second.registry.put(DevicePut(push: apns("bb")), by: phone, at: second.now + 1_000), &stored)
    #expect(stored?.target?.token.exposed == token("bb"))
    // and back
    first.registry.learn(try #require(stored))
    store(try first.registry.put(DevicePut(push: apns("cc")), by: phone, at: first.now + 2_000 + skew), &stored)
    #expect(stored?.target?.token.exposed == token("cc"))
    second.registry.learn([try #require(stored)], of: "alice", at: second.now + 3_000)
    #expect(second.tokens("alice") == ["phone": token("cc")])
  }

  @Test func `a revocation holds against a registration of an hour later`() throws {
    var (first, second) = (Rig(), Rig())
    var stored: Device?
    store(try first.registry.put(DevicePut(push: apns("aa")), by: phone, at: first.now + hour), &stored)
    second.registry.learn(try #require(stored))
    store(try second.registry.revoke(user: "alice", at: second.now), &stored)
    #expect(stored?.revokedAt != nil && stored?.target == nil)
  }

  @Test func `a logout elsewhere stops pushes here, though the device's last word is of a clock that is ahead`() throws {
    var (first, second) = (Rig(), Rig())
    var stored: Device?
    store(try first.registry.put(DevicePut(push: apns("aa")), by: phone, at: first.now + hour), &stored)
    second.registry.learn([try #require(stored)], of: "alice", at: second.now)
    #expect(second.tokens("alice").count == 1)
    second.registry.learn([], of: "alice", at: second.now + 1_000)
    #expect(second.tokens("alice").isEmpty)
  }

  @Test func `what a device set at one node it has at the next: a new registration keeps its preferences`() throws {
    var (first, second) = (Rig(), Rig())
    var stored: Device?
    store(try first.registry.put(DevicePut(push: apns("aa"), prefs: .init(dnd: true)), by: phone, at: first.now), &stored)
    second.registry.learn(try #require(stored))
    store(try second.registry.put(DevicePut(push: apns("bb")), by: phone, at: second.now + 1_000), &stored)
    #expect(stored?.doNotDisturb == true && stored?.bindings.map(\.target.token.exposed) == [token("bb")])
  }
}
