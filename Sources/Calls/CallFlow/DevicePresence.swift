import AppSessions
import Bytes

/// A device as its session reports it.
struct DevicePresence {
  let key: DeviceKey
  var session: SessionID
  var isConnected: Bool
  /// When the last socket was lost.
  var lostAt: Instant?
  var info: DeviceInfo
  var announcesActive: Bool { info.caps.contains("media.active") }
  var accounts: [String] { info.accounts }

  init(key: DeviceKey, session: SessionID, info: DeviceInfo) {
    (self.key, self.session, isConnected) = (key, session, true)
    self.info = info
  }
}
