import AppSessions
import CallModel
import TrunklineAppProtocol

/// How the call is over for each device that was notified of it: exactly one message, or the answer instead of it.
///
/// | state of a device | input | → | returns |
/// |---|---|---|---|
/// | not over | `end` | over | true: the first end counts |
/// | over | `end` | over | false |
/// | over | `acked`, `resumed`, `socketLost`, `pushRefused` | over; seen or unseen as in `Terminal` | – |
/// | over, unseen | `popUnseen` | over, seen | the message, once |
/// | not over | any but `end` | not over | nil |
struct Terminals {
  private(set) var all: [DeviceKey: Terminal] = [:]

  subscript(key: DeviceKey) -> Terminal? { all[key] }
  /// A device that connects late gets no reason: the call keeps as many as it may.
  var isFull: Bool { all.count >= Limits.terminalsPerCall }

  @discardableResult mutating func end(_ key: DeviceKey, _ terminal: Terminal) -> Bool {
    guard all[key] == nil else { return false }
    all[key] = terminal
    return true
  }

  mutating func acked(_ key: DeviceKey) { all[key]?.acked() }
  mutating func socketLost(_ key: DeviceKey) { all[key]?.socketLost() }
  mutating func pushRefused(_ key: DeviceKey) { all[key]?.pushRefused() }
  mutating func resumed(_ key: DeviceKey) { all[key]?.resumed() }
  mutating func popUnseen(_ key: DeviceKey) -> CallOver? { all[key]?.popUnseen() }
}

/// The message, or the answer instead of it, that ended the call for a device.
struct Terminal {
  let over: CallOver
  /// The device itself ended it (`call.reject`, `call.unavailable`), so it knows.
  let isByDevice: Bool
  /// The device was not connected, or lost its socket before its ack: a new session gets `call.gone` instead.
  private var isUnseen: Bool
  /// The device was notified of the call by a push only, and no session has the message in its outbox.
  private var isOfPushOnly: Bool
  private var isAcked = false

  init(over: CallOver, isByDevice: Bool, isUnseen: Bool, isOfPushOnly: Bool = false) {
    (self.over, self.isByDevice, self.isUnseen, self.isOfPushOnly) = (over, isByDevice, isUnseen, isOfPushOnly)
  }

  mutating func acked() { isAcked = true }

  /// The socket was lost, and messages without an ack may be lost with it.
  mutating func socketLost() { if !isAcked { isUnseen = true } }

  /// The push was refused for certain: the device knows nothing of the call.
  mutating func pushRefused() { if isOfPushOnly { isUnseen = false } }

  /// The session continues and replays messages without an ack.
  mutating func resumed() { if !isOfPushOnly { isUnseen = false } }

  /// The terminal message for a new session, once.
  mutating func popUnseen() -> CallOver? {
    guard isUnseen, !isByDevice else { return nil }
    isUnseen = false
    isOfPushOnly = false
    return over
  }
}
