public import AppSessions
import CallModel
import Devices
public import PushPolicy

/// A filter of devices: those that match all given values.
public struct DeviceFilter: Hashable, Sendable {
  public var user: String?
  public var device: String?
  public init(user: String? = nil, device: String? = nil) { (self.user, self.device) = (user, device) }
}

/// A copy of a device, made by the thread that owns it; the thread that requested it makes the summary.
public struct DeviceRow: Sendable {
  public let key: DeviceKey
  private let device: Device?
  private let presence: DevicePresence?
  private let isUserUnknown: Bool

  fileprivate init(_ key: DeviceKey, device: Device?, presence: DevicePresence?, isUserUnknown: Bool) {
    (self.key, self.device, self.presence, self.isUserUnknown) = (key, device, presence, isUserUnknown)
  }

  /// Any thread.
  public var summary: DeviceSummary {
    var out: DeviceSummary
    if let device {
      out = DeviceSummary(device)
      if let presence { out.merge(presence) }
    } else if let presence {
      out = DeviceSummary(connected: presence)
    } else {
      out = DeviceSummary(Device(key: key, at: 0))
    }
    if isUserUnknown { out.isUserUnknown = true }
    return out
  }
}

/// A part of the devices: whole users, in the order of their ids; of one user in any order.
public struct DevicePage: Sendable {
  public var rows: [DeviceRow] = []
  /// The user after which the next page begins; nil: this was the last.
  public var next: String?
  /// Number of devices that were visited, matching or not.
  public var looked = 0
  public init() {}
}

/// The target of pushes to a device, whatever its preferences; nil target: it cannot be woken.
public struct PushRow: Sendable {
  public var key: DeviceKey
  public var target: PushTarget?
}

extension CallMachine {
  /// Devices that are registered or connected and match the filter, of users after `last` (nil: from the first). Visits about
  /// `most` devices at most, even if none matches: a user's devices are visited together, and one user has no more than the
  /// registry and the sessions allow, some hundred.
  public func devicePage(_ filter: DeviceFilter, after last: String?, most: Int) -> DevicePage {
    var page = DevicePage()
    if let user = filter.user {
      look(at: user, filter, &page)
      return page
    }
    var (registered, present) = (devices.users.walk(after: last), presences.users.walk(after: last))
    var previous: String?
    while let user = Self.first(registered.peek(), present.peek()) {
      let count = devices.devices(of: user).count + presences[user].count
      guard page.looked == 0 || page.looked + count <= most else {
        page.next = previous
        break
      }
      if registered.peek() == user { _ = registered.next() }
      if present.peek() == user { _ = present.next() }
      look(at: user, filter, &page)
      previous = user
    }
    return page
  }

  private static func first(_ a: String?, _ b: String?) -> String? {
    guard let a, let b else { return a ?? b }
    return min(a, b)
  }

  private func look(at user: String, _ filter: DeviceFilter, _ page: inout DevicePage) {
    let (known, present) = (devices.devices(of: user), presences[user])
    page.looked += known.count + present.count
    let isUserUnknown = !routing.directory.contains(user)
    func fits(_ key: DeviceKey) -> Bool { filter.device.map { $0 == key.device } ?? true }
    for device in known where fits(device.key) {
      page.rows.append(
        DeviceRow(device.key, device: device, presence: present.first { $0.key == device.key }, isUserUnknown: isUserUnknown))
    }
    for presence in present where presence.isConnected && fits(presence.key) && devices[presence.key] == nil {
      page.rows.append(DeviceRow(presence.key, device: nil, presence: presence, isUserUnknown: isUserUnknown))
    }
  }

  /// The targets of pushes to a user's devices.
  public func pushTargets(of user: String) -> [PushRow] {
    devices.devices(of: user).map { PushRow(key: $0.key, target: $0.target) }
  }
}
