import AppSessions
import Cluster
import Devices
import Foundation
import PushPolicy

/// The script prepends `"t":since,`.
struct StoredWhereabouts: StoredValue {
  var format = Cluster.Limits.format
  var incarnation: String
  var session: String
  var isBackground: Bool?
  var caps: [String]?
  var accounts: [String]?

  /// `s` is read by the scripts too.
  enum CodingKeys: String, CodingKey {
    case format = "v"
    case incarnation = "i"
    case session = "s"
    case isBackground = "bg"
    case caps
    case accounts = "a"
  }

  init(_ location: Whereabouts) {
    (incarnation, session) = (location.incarnation.description, location.session.text)
    isBackground = location.state == .bg ? true : nil
    caps = location.caps.isEmpty ? nil : location.caps.sorted()
    accounts = location.accounts == ["default"] ? nil : location.accounts
  }

  func value(_ device: DeviceKey) -> Whereabouts? {
    guard let incarnation = Incarnation(incarnation) else { return nil }
    return Whereabouts(
      device, at: incarnation, session: SessionID(session), state: isBackground == true ? .bg : .fg, caps: Set(caps ?? []),
      accounts: accounts ?? ["default"])
  }
}

/// A device and its push bindings. Here, and in the devices' own file, tokens are in clear text: the shared store is as
/// confidential as that file.
struct StoredDevice: StoredValue {
  struct Binding: Codable {
    var service: String
    var token: String
    var environment: PushTarget.Environment?
    var topic: String?
    var sealKey: Data?
    var registeredAt: Int64
    var isUnusable: Bool?

    enum CodingKeys: String, CodingKey {
      case service = "s"
      case token = "t"
      case environment = "e"
      case topic = "o"
      case sealKey = "k"
      case registeredAt = "at"
      case isUnusable = "off"
    }

    init(_ binding: PushBinding) {
      let target = binding.target
      (service, token, registeredAt) = (target.service.rawValue, target.token.exposed, binding.registeredAt)
      environment = target.environment == .production ? nil : target.environment
      topic = target.topic.isEmpty ? nil : target.topic
      (sealKey, isUnusable) = (target.sealKey.map { Data($0) }, binding.isUsable ? nil : true)
    }

    /// Nil: a service that this version does not know, or a binding that no app could have registered; the others are kept.
    var value: PushBinding? {
      guard let service = PushService(rawValue: service), isPlausible(registeredAt) else { return nil }
      // an invalid key seals nothing, and to check it here would cost more than all the rest
      let bare = PushTarget(service, token: token, environment: environment ?? .production, topic: topic ?? "")
      guard (try? bare.checked()) != nil else { return nil }
      let target = PushTarget(
        service, token: token, environment: bare.environment, topic: bare.topic, sealKey: sealKey.map { [UInt8]($0) })
      return PushBinding(target, registeredAt: registeredAt, isUsable: isUnusable != true)
    }
  }
  var format = Cluster.Limits.format
  var platform: String?
  var model: String?
  var os: String?
  var sdk: String?
  var accounts: [String]?
  var isSilent: Bool?
  var doNotDisturb: Bool?
  var firstSeen: Int64
  var lastSeen: Int64
  var revokedAt: Int64?
  var bindings: [Binding]?

  /// `x` is read by the scripts too.
  enum CodingKeys: String, CodingKey {
    case format = "v"
    case platform = "p"
    case model = "m"
    case os, sdk
    case accounts = "a"
    case isSilent = "silent"
    case doNotDisturb = "dnd"
    case firstSeen = "f"
    case lastSeen = "l"
    case revokedAt = "x"
    case bindings = "b"
  }

  init(_ device: Device) {
    (platform, model, os, sdk) = (device.platform, device.model, device.os, device.sdk)
    accounts = device.accounts == ["default"] ? nil : device.accounts
    (isSilent, doNotDisturb) = (device.rings ? nil : true, device.doNotDisturb ? true : nil)
    (firstSeen, lastSeen, revokedAt) = (device.firstSeen, device.lastSeen, device.revokedAt)
    bindings = device.bindings.isEmpty ? nil : device.bindings.map(Binding.init)
  }

  func value(_ key: DeviceKey) -> Device? {
    guard isPlausible(firstSeen, lastSeen, revokedAt) else { return nil }
    var device = Device(key: key, accounts: accounts ?? ["default"], at: firstSeen)
    device.platform = platform
    device.model = model
    device.os = os
    device.sdk = sdk
    device.rings = isSilent != true
    device.doNotDisturb = doNotDisturb == true
    device.lastSeen = lastSeen
    device.revokedAt = revokedAt
    device.bindings = (bindings ?? []).compactMap(\.value)
    return device
  }
}

extension Device {
  /// The time of the last change: of two values the later stays.
  var lastChange: Int64 { max(lastSeen, revokedAt ?? .min) }
}
