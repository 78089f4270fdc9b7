import AppSessions
import CallModel
import Devices

/// Devices with a live session, connected or not, by user. Users are in order, too, so that all of them can be visited in parts.
struct Presences {
  private var ofUser: [String: [DevicePresence]] = [:]
  private(set) var users = OrderedKeys<String>()

  var isEmpty: Bool { ofUser.isEmpty }

  /// In the order in which they connected; nil: the user has none.
  subscript(user: String) -> [DevicePresence]? { ofUser[user] }

  /// Replaces an earlier presence of the device.
  mutating func put(_ device: DevicePresence) {
    let user = device.key.user
    if ofUser[user] == nil { users.insert(user) }
    ofUser[user, default: []].removeAll { $0.key == device.key }
    ofUser[user, default: []].append(device)
  }

  mutating func change(_ index: Int, of user: String, _ body: (inout DevicePresence) -> Void) {
    guard ofUser[user]?.indices.contains(index) == true else { return }
    body(&ofUser[user, default: []][index])
  }

  mutating func remove(_ index: Int, of user: String) {
    guard ofUser[user]?.indices.contains(index) == true else { return }
    ofUser[user]?.remove(at: index)
    guard ofUser[user]?.isEmpty == true else { return }
    ofUser[user] = nil
    users.remove(user)
  }
}
