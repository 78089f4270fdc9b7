import AppProtocol
public import Bytes
import MediaSession
public import SIPDialogs

/// What follows for calls under way from another address of this machine.
extension CallMachine {
  /// At most `most` live calls behind one, oldest first, and behind which the next come; nil: there are no more. Looks at no other.
  public func liveCalls(after last: CallNumber?, most: Int) -> (calls: [CallID], next: CallNumber?) {
    var (calls, walk) = ([CallID](), callOrder.walk(after: last))
    while let number = walk.next() {
      calls.append(number.call)
      if calls.count == most { return (calls, walk.peek() == nil ? nil : number) }
    }
    return (calls, nil)
  }

  /// The trunk legs of a call; none of one that is not there.
  public func trunkLegs(of id: CallID) -> [LegID] { calls[id]?.legs.map(\.id) ?? [] }

  mutating func networkChanged(_ candidates: [[SocketAddress]], of ids: [CallID], _ step: inout Step) {
    for id in ids {
      // in place, so that the call is not copied
      guard let index = calls.index(forKey: id), calls.values[index].isLive,
        let reservation = calls.values[index].appMedia.reservation, candidates.indices.contains(reservation.thread)
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
  /// Apps are offered these from now on: by an offer that is sent again, by a snapshot, by the answer to a restart. What is connected stays as it is; a
  /// leg whose address is gone falls silent, and is restarted.
  mutating func networkChanged(_ candidates: [SocketAddress], _ step: inout Step) {
    appMedia.reservation?.appCandidates = candidates
    for index in devices.indices {
      devices[index].negotiation.endpoint.candidates = candidates
      if ringsDevices, !devices[index].isDescribed { devices[index].sdp = devices[index].negotiation.makeOffer() }
    }
    if timers[.appGrace] != nil { askForRestart(.net, &step) }
  }

  mutating func moveTrunkLegs(_ step: inout Step) {
    for leg in legs where leg.phase != .over {
      guard let session = leg.session, let peer = leg.media?.remote.ip ?? leg.trunk.peer?.flow.remote.ip else { continue }
      var request = MediaRequest(id, session: session, user: users.owner, toward: peer)
      request.moves = true
      step.output.actions.append(.reserveMedia(request))
    }
  }

  /// Who has the call is to offer again: we are ICE-lite, and cannot.
  mutating func askForRestart(_ cause: MediaRestart.Cause, _ step: inout Step) {
    guard let index = winnerIndex, devices[index].isConnected else { return }
    step.send(.mediaRestart(MediaRestart(gen: devices[index].gen + 1, cause: cause)), to: devices[index].key, call: id)
  }

  /// The trunk leg of a session has ports at another address.
  mutating func mediaMoved(_ session: MediaSessionID, to local: SocketAddress, _ step: inout Step) {
    guard isLive, let index = legs.firstIndex(where: { $0.session == session }) else { return }
    legs[index].move(to: local, &step)
  }
}
