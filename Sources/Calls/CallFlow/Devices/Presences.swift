import AppSessions
import CallModel
import Devices
import TrunklineAppProtocol
import TrunklineBytes

/// Devices with a live session, connected or not, by user. Users are in order, too, so that all of them can be visited in parts.
///
/// | input | effect |
/// |---|---|
/// | `connect` | the device is connected with this session; an earlier one of the device is forgotten |
/// | `disconnect` | true: the session, which stays, has no socket since now; of another session: false |
/// | `end` | the session is forgotten; another one stays |
/// | `report`, `upgrade` | the device as it is now, whatever its session; nil: it has none |
/// | `move` | true: the device is connected here. If its session is for all calls, it is at the other node once its socket is closed |
/// | `popMove` | that node's device, once |
struct Presences {
  /// Never empty lists; a device is in its user's list once.
  private var ofUser: [String: [DevicePresence]] = [:]
  private(set) var users = OrderedKeys<String>()

  var isEmpty: Bool { ofUser.isEmpty }

  /// In the order in which they connected.
  subscript(user: String) -> [DevicePresence] { ofUser[user] ?? [] }
  subscript(key: DeviceKey) -> DevicePresence? { ofUser[key.user]?.first { $0.key == key } }

  mutating func connect(_ device: DevicePresence) {
    let user = device.key.user
    if ofUser[user] == nil { users.insert(user) }
    ofUser[user, default: []].removeAll { $0.key == device.key }
    ofUser[user, default: []].append(device)
  }

  mutating func disconnect(_ key: DeviceKey, _ session: SessionID, at now: Instant) -> Bool {
    change(key) {
      guard $0.session == session else { return false }
      $0.isConnected = false
      $0.lostAt = now
      return true
    } ?? false
  }

  mutating func end(_ key: DeviceKey, _ session: SessionID) {
    ofUser[key.user]?.removeAll { $0.key == key && $0.session == session }
    guard ofUser[key.user]?.isEmpty == true else { return }
    ofUser[key.user] = nil
    users.remove(key.user)
  }

  mutating func report(_ state: AppState, of key: DeviceKey) -> DevicePresence? {
    change(key) {
      $0.info.state = state
      return $0
    }
  }

  mutating func upgrade(_ key: DeviceKey, _ info: DeviceInfo) -> DevicePresence? {
    change(key) {
      $0.info = info
      return $0
    }
  }

  mutating func move(to remote: RemoteDevice) -> Bool {
    change(remote.key) {
      guard $0.isConnected else { return false }
      // the newer login ends the one here; a session that a wake token began stays
      if $0.info.onlyCall == nil { $0.movedTo = remote }
      return true
    } ?? false
  }

  mutating func popMove(_ key: DeviceKey) -> RemoteDevice? {
    change(key) { device in
      defer { device.movedTo = nil }
      return device.movedTo
    } ?? nil
  }

  private mutating func change<Result>(_ key: DeviceKey, _ body: (inout DevicePresence) -> Result) -> Result? {
    guard let index = ofUser[key.user]?.firstIndex(where: { $0.key == key }) else { return nil }
    return body(&ofUser[key.user, default: []][index])
  }
}
