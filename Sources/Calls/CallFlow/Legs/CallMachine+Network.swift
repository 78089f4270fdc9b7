public import CallModel
import TrunklineAppProtocol
public import TrunklineBytes
import TrunklineMediaSession
public import TrunklineSIPDialogs

/// The effects of a new address of this machine on live calls.
extension CallMachine {
  /// At most `most` live calls after `last`, oldest first, and the cursor for the next ones; nil: there are no more. Visits no
  /// others.
  public func liveCalls(after last: CallNumber?, most: Int) -> (calls: [CallID], next: CallNumber?) {
    var (calls, walk) = ([CallID](), calls.walk(after: last))
    while let number = walk.next() {
      calls.append(number.call)
      if calls.count == most { return (calls, walk.peek() == nil ? nil : number) }
    }
    return (calls, nil)
  }

  /// The trunk legs of a call; empty if it does not exist.
  public func trunkLegs(of id: CallID) -> [LegID] { calls[id]?.legs.map(\.id) ?? [] }

  mutating func networkChanged(_ candidates: [[SocketAddress]], of ids: [CallID], _ step: inout Step) {
    for id in ids {
      guard let reservation = calls.read(id, { $0.isLive ? $0.reservation : nil }) ?? nil,
        candidates.indices.contains(reservation.thread)
      else { continue }
      let now = candidates[reservation.thread]
      if !now.isEmpty, now != reservation.appCandidates { change(id, &step) { $0.networkChanged(now, &$1) } }
    }
  }

  mutating func moveTrunkLegs(of ids: [CallID], _ step: inout Step) {
    for id in ids { change(id, &step) { if $0.isLive { $0.moveTrunkLegs(&$1) } } }
  }
}

extension Call {
  /// Offers these candidates to apps from now on: in an offer that is sent again, in a snapshot, in the answer to a restart.
  /// Connected legs stay as they are; a leg whose address was removed falls silent and is restarted.
  mutating func networkChanged(_ candidates: [SocketAddress], _ step: inout Step) {
    moveApps(to: candidates)
    for index in devices.indices { devices[index].moves(to: candidates, offers: ringsDevices) }
    if watch.isAppSilent { askForRestart(.net, &step) }
  }

  mutating func moveTrunkLegs(_ step: inout Step) {
    for leg in legs where leg.phase != .over {
      guard let session = leg.session, let peer = leg.media?.remote.ip ?? leg.trunk.peer?.flow.remote.ip else { continue }
      var request = MediaRequest(id, session: session, user: users.owner, toward: peer)
      request.moves = true
      step.output.actions.append(.reserveMedia(request))
    }
  }

  /// Requests a new offer from the device that has the call: we are ICE-lite, and cannot make one.
  mutating func askForRestart(_ cause: MediaRestart.Cause, _ step: inout Step) {
    guard let index = winnerIndex, devices[index].isConnected else { return }
    step.send(.mediaRestart(MediaRestart(gen: devices[index].gen + 1, cause: cause)), to: devices[index].key, call: id)
  }

  /// The trunk leg of a session has ports at another address.
  mutating func mediaMoved(_ session: MediaSessionID, to local: SocketAddress, _ step: inout Step) {
    guard isLive, let index = legs.index(of: session) else { return }
    legs[index].move(to: local, &step)
  }
}
