import AppSessions
import CallModel
public import Devices
public import PushPolicy
import TrunklineAppProtocol
import TrunklineBytes

/// One device for the admin endpoint: registered, connected, or both. Times are milliseconds since 1970. Contains only the end of
/// each token.
public struct DeviceSummary: Sendable, Codable, Equatable {
  public struct Push: Sendable, Codable, Equatable {
    public var service: PushService
    public var environment: PushTarget.Environment
    public var topic: String
    /// The last characters of the token.
    public var token: String
    public var registeredAt: Int64
    /// False: the service reported that the token is of another environment or app; the app must register again.
    public var usable: Bool
    /// Pushes contain the caller encrypted for the app.
    public var sealed: Bool
  }
  public var user: String
  public var device: String
  public var connected: Bool
  /// Of the session: `fg` or `bg`.
  public var state: String?
  public var platform: String?
  public var model: String?
  public var os: String?
  public var sdk: String?
  public var accounts: [String]
  public var rings: Bool
  public var dnd: Bool
  public var firstSeen: Int64?
  public var lastSeen: Int64?
  public var revokedAt: Int64?
  /// The configuration does not (or no longer) have this user: the device cannot log in here and gets no calls. The registration
  /// is kept until it is revoked, in case the user is added again.
  public var isUserUnknown: Bool?
  public var push: [Push]

  /// From a registration; not connected.
  public init(_ device: Device) {
    (user, self.device, connected) = (device.key.user, device.key.device, false)
    (platform, model, os, sdk) = (device.platform, device.model, device.os, device.sdk)
    (accounts, rings, dnd) = (device.accounts, device.rings, device.doNotDisturb)
    (firstSeen, lastSeen, revokedAt) = (device.firstSeen, device.lastSeen, device.revokedAt)
    push = device.bindings.map { binding in
      let target = binding.target
      return Push(
        service: target.service, environment: target.environment, topic: target.topic,
        token: "…" + target.token.exposed.suffix(6),
        registeredAt: binding.registeredAt, usable: binding.isUsable, sealed: target.sealKey != nil)
    }
  }

  init(connected presence: DevicePresence) {
    (user, device, connected, accounts, rings, dnd, push) = (presence.key.user, presence.key.device, true, [], true, false, [])
    merge(presence)
  }

  mutating func merge(_ presence: DevicePresence) {
    let info = presence.info
    connected = presence.isConnected
    state = presence.isConnected ? info.state.rawValue : nil
    platform = info.platform
    model = info.model
    os = info.os
    sdk = info.sdk
    accounts = info.accounts
  }
}
