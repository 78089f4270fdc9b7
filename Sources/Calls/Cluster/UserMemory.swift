import AppSessions
import CallModel
import Devices
import TrunklineBytes

/// Registrations of users, as the shared store had them last: used while it is away. Each is kept for `Limits.remembered`.
///
/// | input | gives |
/// |---|---|
/// | `remember` a user | – ; replaces the user's devices; a user without devices is not begun |
/// | `remember` a device | – ; replaces the device, and ends its revocation unless it is revoked itself |
/// | `revoke` | – ; the device has no bindings any longer, known or not |
/// | `forget` | – ; the device is no longer registered |
struct UserMemory: Sendable {
  private var users = BoundedTable<String, [Device]>(most: Limits.rememberedUsers)
  private var revocations = BoundedTable<DeviceKey, Void>(most: Limits.revocations)

  func has(_ user: String) -> Bool { users[user] != nil }
  /// Users below an index (nil: all), at most `most`, and the index to go on below: 0 at the end. In no particular order.
  func page(below index: Int?, most: Int) -> (users: ArraySlice<String>, below: Int) {
    let page = users.page(below: index, most: most)
    return (page.keys, page.below)
  }
  /// With the bindings of revoked devices.
  func all(of user: String) -> [Device] { users[user] ?? [] }
  func device(_ key: DeviceKey) -> Device? { users[key.user]?.first { $0.key == key } }

  /// Revoked devices have no bindings; nil: the user is unknown.
  func devices(of user: String) -> [Device]? {
    users[user]?.map { device in
      var device = device
      if revocations[device.key] != nil { device.bindings = [] }
      return device
    }
  }

  func isRevoked(_ key: DeviceKey, _ registration: Device?) -> Bool {
    registration?.revokedAt != nil || revocations[key] != nil
  }

  mutating func remember(_ located: LocatedUser, at now: Instant) {
    guard !located.devices.isEmpty || has(located.user) else { return }
    let devices = located.devices.filter { $0.key.user == located.user }.prefix(Limits.devicesPerUser)
    users.set(located.user, Array(devices), until: now + Limits.remembered, at: now)
    for device in devices { noteRevocation(of: device, now) }
  }

  mutating func remember(_ device: Device, at now: Instant) {
    var known = users[device.key.user] ?? []
    known.removeAll { $0.key == device.key }
    if known.count < Limits.devicesPerUser { known.append(device) }
    users.set(device.key.user, known, until: now + Limits.remembered, at: now)
    noteRevocation(of: device, now)
  }

  private mutating func noteRevocation(of device: Device, _ now: Instant) {
    if device.revokedAt != nil {
      revocations.set(device.key, (), until: now + Limits.remembered, at: now)
    } else if revocations[device.key] != nil {
      revocations.remove(device.key)
    }
  }

  mutating func revoke(_ key: DeviceKey, at now: Instant) {
    revocations.set(key, (), until: now + Limits.remembered, at: now)
    users.change(key.user) { devices in
      for index in devices.indices where devices[index].key == key { devices[index].bindings = [] }
    }
  }

  mutating func forget(_ key: DeviceKey) { users.change(key.user) { $0.removeAll { $0.key == key } } }
}
