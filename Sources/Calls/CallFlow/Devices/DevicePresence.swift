import AppSessions
import CallModel
import TrunklineBytes

/// A device as its session reports it.
struct DevicePresence {
  let key: DeviceKey
  var session: SessionID
  var isConnected: Bool
  /// When the last socket was lost.
  var lostAt: Instant?
  var info: DeviceInfo
  /// It has logged in at another node: calls wake it there when this session's socket is closed for it.
  var movedTo: RemoteDevice?
  var announcesActive: Bool { info.caps.contains("media.active") }
  var accounts: [String] { info.accounts }

  /// Until when a client that lost its socket is waited for; nil: it is connected, or lost it too long ago.
  func awaitedUntil(_ now: Instant) -> Instant? {
    guard !isConnected, let until = lostAt.map({ $0 + Limits.reconnect }), until > now else { return nil }
    return until
  }

  /// Connected, or likely to be again at once: a call can ring here.
  func isReachable(at now: Instant) -> Bool { isConnected || awaitedUntil(now) != nil }

  init(key: DeviceKey, session: SessionID, info: DeviceInfo) {
    (self.key, self.session, isConnected) = (key, session, true)
    self.info = info
  }
}
