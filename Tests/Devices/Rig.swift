import AppSessions
import Devices
import PushPolicy
import TrunklineAppProtocol
import TrunklineBytes

/// A registry and a store that does what the changes say.
struct Rig {
  var registry = DeviceRegistry()
  var stored: [DeviceKey: Device] = [:]
  var now: Int64 = 1_800_000_000_000

  mutating func take(_ changes: [DeviceChange]) {
    for change in changes {
      switch change {
      case .stored(let device): stored[device.key] = device
      case .removed(let key): stored[key] = nil
      }
    }
  }

  mutating func put(_ key: DeviceKey, _ push: DevicePut.Push? = nil, prefs: DevicePut.Preferences? = nil, info: DeviceInfo? = nil)
    throws(DeviceError)
  {
    now += 1_000
    take(try registry.put(DevicePut(push: push, prefs: prefs), by: key, info: info, at: now))
  }

  /// What would be pushed to, by device.
  func tokens(_ user: String) -> [String: String] {
    Dictionary(uniqueKeysWithValues: registry.targets(of: user).map { ($0.key.device, $0.target.token.exposed) })
  }
}

func key(_ user: String, _ device: String) -> DeviceKey { DeviceKey(user: user, device: device) }
/// 64 hexadecimal digits made of two.
func token(_ digits: String) -> String { String(repeating: digits, count: 32) }
func apns(_ digits: String, env: String? = nil, topic: String = "org.example.app.voip") -> DevicePut.Push {
  DevicePut.Push(kind: .apnsVoIP, token: token(digits), env: env, topic: topic)
}
