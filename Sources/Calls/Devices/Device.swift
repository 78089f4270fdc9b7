public import AppSessions
public import PushPolicy

/// One push registration of one device.
public struct PushBinding: Hashable, Sendable {
  public var target: PushTarget
  /// Milliseconds since 1970 at which the app last registered it; a 410 for an older registration does not touch it.
  public var registeredAt: Int64
  /// False after the service reported that the token belongs to another environment or topic, until the app renews it.
  public var isUsable: Bool
  public init(_ target: PushTarget, registeredAt: Int64, isUsable: Bool = true) {
    (self.target, self.registeredAt, self.isUsable) = (target, registeredAt, isUsable)
  }
}

/// The registry's entry of a device: how to wake it, and its user's preferences. Times are milliseconds since 1970.
public struct Device: Hashable, Sendable {
  public var key: DeviceKey
  public var platform: String?
  public var model: String?
  public var os: String?
  public var sdk: String?
  /// Accounts of its last login token.
  public var accounts: [String]
  /// `prefs` of `device.put`: whether calls ring here, and whether this device must not be disturbed.
  public var rings = true
  public var doNotDisturb = false
  public var firstSeen: Int64
  public var lastSeen: Int64
  /// An operator revoked it: no push and no registration, until it is allowed again.
  public var revokedAt: Int64?
  /// The newest last.
  public var bindings: [PushBinding] = []

  public init(key: DeviceKey, accounts: [String] = ["default"], at now: Int64) {
    (self.key, self.accounts, firstSeen, lastSeen) = (key, accounts, now, now)
  }

  /// A device without any of these has no content worth a row.
  var isWorthKeeping: Bool { !bindings.isEmpty || !rings || doNotDisturb || revokedAt != nil }

  /// The registration to push to: the newest that works.
  public var target: PushTarget? { revokedAt == nil ? bindings.last(where: \.isUsable)?.target : nil }

  /// Whether a call may make it ring, by its user's preferences.
  public var wantsCalls: Bool { rings && !doNotDisturb && revokedAt == nil }

  mutating func update(_ info: DeviceInfo) {
    platform = info.platform
    model = info.model
    os = info.os
    sdk = info.sdk
    // A wake token has no accounts: those of the login stay.
    if info.onlyCall == nil { accounts = info.accounts }
  }
}

/// A device to wake: at most one registration each, because a call is pushed to a device once.
public struct PushDestination: Hashable, Sendable {
  public var key: DeviceKey
  public var target: PushTarget
  public var accounts: [String]
  public init(key: DeviceKey, target: PushTarget, accounts: [String] = ["default"]) {
    (self.key, self.target, self.accounts) = (key, target, accounts)
  }
}

/// A change that a store must apply to hold the same as the registry. In order.
public enum DeviceChange: Hashable, Sendable {
  /// The device as it is now, with all its bindings; replaces all that is stored of it.
  case stored(Device)
  case removed(DeviceKey)
}
