import AppSessions
import CallModel
import TrunklineBytes

/// The devices with a socket here, and whether the shared store has them. It sends nothing: the machine writes what changes.
///
/// | input | gives |
/// |---|---|
/// | `connect` | – ; a new session replaces the device's session, and is not entered; the same session keeps its time and is to be entered again |
/// | `disconnect` | false if the device has another session by now, or none |
/// | `entered` | – ; the shared store has the device's session, since a time by its clock |
/// | `unenter`, `unenterAll` | – ; the shared store may not have it |
/// | `forgetTime` | – ; the next write replaces any other session of the device |
struct DeviceTable: Sendable {
  private var devices: [DeviceKey: OwnDevice] = [:]
  private var ofUser: [String: Set<String>] = [:]
  private var last: UInt64 = 0

  subscript(key: DeviceKey) -> OwnDevice? { devices[key] }
  func has(_ key: DeviceKey) -> Bool { devices[key] != nil }
  func hasAny(of user: String) -> Bool { ofUser[user] != nil }
  func isCurrent(_ session: SessionID, of key: DeviceKey) -> Bool { devices[key]?.whereabouts.session == session }

  /// Ascending by the names of the devices.
  func devices(of user: String) -> [OwnDevice] {
    (ofUser[user] ?? []).sorted().compactMap { devices[DeviceKey(user: user, device: $0)] }
  }

  /// In the order of their connecting.
  var inOrder: [OwnDevice] { devices.values.sorted { $0.number < $1.number } }

  mutating func connect(_ whereabouts: Whereabouts, at now: Instant) {
    let key = whereabouts.device
    last += 1
    let before = devices[key]
    let isSame = before?.whereabouts.session == whereabouts.session
    devices[key] = OwnDevice(
      whereabouts: whereabouts, number: before?.number ?? last, came: isSame ? before?.came ?? now : now,
      since: isSame ? before?.since : nil)
    ofUser[key.user, default: []].insert(key.device)
  }

  mutating func disconnect(_ key: DeviceKey, _ session: SessionID) -> Bool {
    guard isCurrent(session, of: key) else { return false }
    devices[key] = nil
    ofUser[key.user]?.remove(key.device)
    if ofUser[key.user]?.isEmpty ?? false { ofUser[key.user] = nil }
    return true
  }

  mutating func entered(_ key: DeviceKey, since: Int64?) {
    devices[key]?.isEntered = true
    devices[key]?.since = since
  }
  mutating func unenter(_ key: DeviceKey) { devices[key]?.isEntered = false }
  mutating func unenterAll() { for key in devices.keys { devices[key]?.isEntered = false } }
  mutating func forgetTime(of key: DeviceKey) { devices[key]?.since = nil }
}

/// A device with a socket here.
struct OwnDevice: Sendable {
  var whereabouts: Whereabouts
  /// The order of their connecting.
  var number: UInt64
  var came: Instant
  /// The shared store has had it since the last flush.
  var isEntered = false
  /// When its session was entered first, by the shared store's clock.
  var since: Int64?
}
