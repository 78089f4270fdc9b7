import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineBytes

/// Calls that this node does not know, because they were another's: the cluster may know how they ended. So a device that a push
/// led here after its call's end gets the true reason.
extension CallMachine {
  /// True: `tombstoneRead` follows. False: there is no query, and only what is known here counts.
  mutating func askTombstone(_ id: CallID, for reader: TombstoneQueries.Reader, _ step: inout Step) -> Bool {
    guard configuration.isClustered, calls[id] == nil, !pending.has(id), tombstones[id] == nil else { return false }
    switch tombstoneQueries.wait(reader, for: id) {
    case .ask: step.output.actions.append(.askTombstone(id))
    case .wait: break
    case .full: return false
    }
    return true
  }

  mutating func tombstoneRead(_ id: CallID, _ found: RemoteTombstone?, _ step: inout Step) {
    for reader in tombstoneQueries.remove(id) {
      switch reader {
      case .welcome(let key, let session):
        guard let device = presences[key], device.session == session else { continue }
        welcome(device, remote: found, &step)
      case .request(let key, let request, let message): refuseGone(id, for: key, request, message, remote: found, &step)
      case .reject(let request, let key):
        step.app(.httpAnswer(request, .err(gone(id, for: key, own: nil, remote: found, step))))
      case .session(let key): sendGone(id, key, remote: found, &step)
      }
    }
  }

  /// A wake token of this device led here, to a call of a dead node: notifies the device's session of the end.
  mutating func callLost(_ id: CallID, _ key: DeviceKey, _ step: inout Step) {
    // its own hello may have returned the end already
    guard calls[id] == nil, tombstones[id]?.terminals[key] == nil else { return }
    if !askTombstone(id, for: .session(key), &step) { sendGone(id, key, remote: nil, &step) }
  }

  private func sendGone(_ id: CallID, _ key: DeviceKey, remote: RemoteTombstone?, _ step: inout Step) {
    step.send(.callGone(over(of: id, for: key, remote: remote, step)), to: key, call: id)
  }

  /// The end of a call that is not live here, for a device.
  func over(of id: CallID, for key: DeviceKey, remote: RemoteTombstone?, _ step: Step) -> CallOver {
    if let own = tombstones[id], own.users.contains(key.user) { return own.terminals[key]?.over ?? own.over }
    if let remote, remote.users.contains(key.user) { return remote.over }
    return CallOver(.unknown, by: .gateway, at: step.wallNow)
  }
}
