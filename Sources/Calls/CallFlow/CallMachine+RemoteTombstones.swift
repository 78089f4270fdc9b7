import AppProtocol
import AppSessions
import Bytes

/// Calls that this node does not know, because they were another's: the cluster may know how they ended. A device that a push led here after its
/// call's end hears the true reason so.
extension CallMachine {
  /// Who waits to hear it.
  enum TombstoneReader {
    /// A session that a wake token began: its `welcome` is not out yet.
    case welcome(DeviceKey, SessionID)
    case request(DeviceKey, RequestToken, ClientMessage)
    /// `POST …/reject`.
    case reject(HTTPRequestID, DeviceKey)
    /// A session that stands beside the one which a wake token would have begun.
    case session(DeviceKey)
  }

  /// True: `tombstoneRead` follows. False: what is known here is all.
  mutating func askTombstone(_ id: CallID, for reader: TombstoneReader, _ turn: inout Turn) -> Bool {
    guard configuration.isClustered, calls[id] == nil, pending[id] == nil, tombstones[id] == nil else { return false }
    if let waiting = tombstoneReaders[id] {
      guard waiting.count < Limits.tombstoneReaders else { return false }
      tombstoneReaders[id]?.append(reader)
      return true
    }
    guard tombstoneReaders.count < Limits.askedTombstones else { return false }
    tombstoneReaders[id] = [reader]
    turn.output.actions.append(.askTombstone(id))
    return true
  }

  mutating func tombstoneRead(_ id: CallID, _ found: RemoteTombstone?, _ turn: inout Turn) {
    for reader in tombstoneReaders.removeValue(forKey: id) ?? [] {
      switch reader {
      case .welcome(let key, let session):
        guard let device = presence(key), device.session == session else { continue }
        welcome(device, remote: found, &turn)
      case .request(let key, let request, let message): refuseGone(id, key, request, message, remote: found, &turn)
      case .reject(let request, let key):
        turn.app(.httpAnswer(request, .err(gone(id, key, nil, remote: found, turn))))
      case .session(let key): tellGone(id, key, remote: found, &turn)
      }
    }
  }

  /// A wake token of this device led here, to a call of a node that is dead; its session hears of the end.
  mutating func callLost(_ id: CallID, _ key: DeviceKey, _ turn: inout Turn) {
    // it may have heard it with its own hello
    guard calls[id] == nil, tombstones[id]?.terminals[key] == nil else { return }
    if !askTombstone(id, for: .session(key), &turn) { tellGone(id, key, remote: nil, &turn) }
  }

  private func tellGone(_ id: CallID, _ key: DeviceKey, remote: RemoteTombstone?, _ turn: inout Turn) {
    turn.send(.callGone(over(of: id, for: key, remote: remote, turn)), to: key, call: id)
  }

  /// What a device hears of a call that does not live here.
  func over(of id: CallID, for key: DeviceKey, remote: RemoteTombstone?, _ turn: Turn) -> CallOver {
    if let own = tombstones[id], own.users.contains(key.user) { return own.terminals[key]?.over ?? own.over }
    if let remote, remote.users.contains(key.user) { return remote.over }
    return CallOver(.unknown, by: .gateway, at: turn.wallNow)
  }
}
