import AppSessions
import CallModel
import Devices
import TrunklineBytes

/// The devices with a socket here, and whether the shared store has them. It sends nothing: the machine writes what changes.
///
/// | input | gives |
/// |---|---|
/// | `connect` | – ; a new session replaces the device's session, and is not entered; the same session keeps its time and is to be entered again |
/// | `disconnect` | false if the device has another session by now, or none |
/// | `entered` | – ; the shared store has the device's session, since a time by its clock |
/// | `unenter`, `unenterAll` | – ; the shared store may not have it. All of them at once cost no more than one |
/// | `forgetTime` | – ; the next write replaces any other session of the device |
struct DeviceTable: Sendable {
  private var devices: [DeviceKey: OwnDevice] = [:]
  private var ofUser: [String: Set<String>] = [:]
  private var order = OrderedKeys<Position>()
  private var last: UInt64 = 0
  /// What was entered in earlier generations does not count: the shared store has lost its data since.
  private var generation: UInt64 = 0

  private struct Position: Comparable, Sendable {
    var number: UInt64
    var key = DeviceKey(user: "", device: "")
    static func < (a: Position, b: Position) -> Bool { a.number < b.number }
    static func == (a: Position, b: Position) -> Bool { a.number == b.number }
  }

  subscript(key: DeviceKey) -> OwnDevice? {
    devices[key].map { device in
      var device = device
      device.isEntered = device.isEntered && device.generation == generation
      return device
    }
  }
  func has(_ key: DeviceKey) -> Bool { devices[key] != nil }
  func hasAny(of user: String) -> Bool { ofUser[user] != nil }
  func isCurrent(_ session: SessionID, of key: DeviceKey) -> Bool { devices[key]?.whereabouts.session == session }

  /// Ascending by the names of the devices.
  func devices(of user: String) -> [OwnDevice] {
    (ofUser[user] ?? []).sorted().compactMap { self[DeviceKey(user: user, device: $0)] }
  }

  /// Devices that connected after the one with this number (0: from the first), at most `most`, in the order of their connecting.
  func page(after number: UInt64, most: Int) -> [OwnDevice] {
    var (out, walk) = ([OwnDevice](), order.walk(after: Position(number: number)))
    while out.count < most, let key = walk.next()?.key { if let own = self[key] { out.append(own) } }
    return out
  }

  /// Whether no other device of its user that is here connected before it: one of each user.
  func isFirstOfUser(_ own: OwnDevice) -> Bool {
    devices(of: own.whereabouts.device.user).allSatisfy { $0.number >= own.number }
  }

  mutating func connect(_ whereabouts: Whereabouts, at now: Instant) {
    let key = whereabouts.device
    last += 1
    let before = self[key]
    let isSame = before?.whereabouts.session == whereabouts.session
    devices[key] = OwnDevice(
      whereabouts: whereabouts, number: before?.number ?? last, came: isSame ? before?.came ?? now : now,
      since: isSame ? before?.since : nil)
    if before == nil { order.insert(Position(number: last, key: key)) }
    ofUser[key.user, default: []].insert(key.device)
  }

  mutating func disconnect(_ key: DeviceKey, _ session: SessionID) -> Bool {
    guard isCurrent(session, of: key), let own = devices.removeValue(forKey: key) else { return false }
    order.remove(Position(number: own.number))
    ofUser[key.user]?.remove(key.device)
    if ofUser[key.user]?.isEmpty ?? false { ofUser[key.user] = nil }
    return true
  }

  mutating func entered(_ key: DeviceKey, since: Int64?) {
    devices[key]?.isEntered = true
    devices[key]?.generation = generation
    devices[key]?.since = since
  }
  mutating func unenter(_ key: DeviceKey) { devices[key]?.isEntered = false }
  mutating func unenterAll() { generation += 1 }
  mutating func forgetTime(of key: DeviceKey) { devices[key]?.since = nil }
}

/// A device with a socket here.
struct OwnDevice: Sendable {
  var whereabouts: Whereabouts
  /// The order of their connecting.
  var number: UInt64
  var came: Instant
  /// The shared store has had it since the last flush.
  fileprivate(set) var isEntered = false
  fileprivate var generation: UInt64 = 0
  /// When its session was entered first, by the shared store's clock.
  var since: Int64?
}
