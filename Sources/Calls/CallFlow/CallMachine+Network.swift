import AppProtocol
import Bytes
import MediaSession

/// What follows for calls under way from another address of this machine.
extension CallMachine {
  /// Each call whose thread offers apps something else than it did. Costs a comparison for each call.
  mutating func networkChanged(_ candidates: [[SocketAddress]], _ turn: inout Turn) {
    var changed: [CallID] = []
    // by index: each call would be copied
    for index in calls.indices where calls.values[index].isLive {
      guard let reservation = calls.values[index].appMedia.reservation, candidates.indices.contains(reservation.thread) else {
        continue
      }
      let now = candidates[reservation.thread]
      if !now.isEmpty, now != reservation.appCandidates { changed.append(calls.keys[index]) }
    }
    for id in Self.inOrder(changed) {
      change(id, &turn) { call, turn in
        guard let reservation = call.appMedia.reservation else { return }
        call.networkChanged(candidates[reservation.thread], &turn)
      }
    }
  }

  /// Asks of each trunk leg with media whether it has to go on at another address. Costs a question for each.
  mutating func moveTrunkLegs(_ turn: inout Turn) {
    for id in Self.inOrder(calls.keys) { change(id, &turn) { if $0.isLive { $0.moveTrunkLegs(&$1) } } }
  }

  /// Not in that of the table, which is another one in each process.
  private static func inOrder(_ calls: some Sequence<CallID>) -> [CallID] {
    calls.sorted { ($0.high, $0.low) < ($1.high, $1.low) }
  }
}

extension Call {
  /// Apps are offered these from now on: by an offer that is sent again, by a snapshot, by the answer to a restart. What is connected stays as it is; a
  /// leg whose address is gone falls silent, and is restarted.
  mutating func networkChanged(_ candidates: [SocketAddress], _ turn: inout Turn) {
    appMedia.reservation?.appCandidates = candidates
    for index in devices.indices {
      devices[index].negotiation.endpoint.candidates = candidates
      if ringsDevices, !devices[index].isDescribed { devices[index].sdp = devices[index].negotiation.makeOffer() }
    }
    if timers[.appGrace] != nil { askForRestart(.net, &turn) }
  }

  mutating func moveTrunkLegs(_ turn: inout Turn) {
    for leg in legs where leg.phase != .over {
      guard let session = leg.session, let media = leg.media else { continue }
      var request = MediaRequest(id, session: session, user: users.owner, toward: media.remote.ip)
      request.moves = true
      turn.output.actions.append(.reserveMedia(request))
    }
  }

  /// Who has the call is to offer again: we are ICE-lite, and cannot.
  mutating func askForRestart(_ cause: MediaRestart.Cause, _ turn: inout Turn) {
    guard let index = winnerIndex, devices[index].isConnected else { return }
    turn.send(.mediaRestart(MediaRestart(gen: devices[index].gen + 1, cause: cause)), to: devices[index].key, call: id)
  }

  /// The trunk leg of a session has ports at another address.
  mutating func mediaMoved(_ session: MediaSessionID, to local: SocketAddress, _ turn: inout Turn) {
    guard isLive, let place = legs.firstIndex(where: { $0.session == session }) else { return }
    legs[place].move(to: local, &turn)
  }
}
