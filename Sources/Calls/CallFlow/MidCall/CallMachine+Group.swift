import AppSessions
import CallModel
import TrunklineAppProtocol
import TrunklineMediaSession

/// Groups of one device's calls, whose trunks hear each other. A group consists of the calls that name it, so it ends with them.
///
///     event                                          group
///     call.group{with}, both connected               both, and all that either is in a group with
///     call.group{}                                   without this call
///     a call ends                                    without it
///     one is left                                    none
///
/// Hold, mute, digits, restarts, transfers and a lost socket change nothing: a call that is held neither hears nor is heard until it is
/// resumed.
extension CallMachine {
  mutating func group(_ id: CallID, _ request: CallGroup, by key: DeviceKey, _ step: inout Step) -> RequestAnswer {
    guard let call = calls[id], call.canBeGrouped(by: key) else { return .err(Failure(.badState)) }
    guard let with = request.with else {
      leaveGroup(id, &step)
      return .ok
    }
    guard with != id else { return .err(Failure(.badRequest, msg: "with is this call")) }
    // the answer does not reveal whether another device has such a call
    guard let other = calls[with], other.canBeGrouped(by: key) else {
      return .err(Failure(.badState, msg: "with is not a connected call of this device"))
    }
    guard call.reservation?.thread == other.reservation?.thread else {
      return .err(Failure(.unsupported, msg: "the calls' media is on different threads"))
    }
    // safe to repeat
    guard call.audio.group == nil || call.audio.group != other.audio.group else { return .ok }
    var members = groupMembers(of: call, key)
    members += groupMembers(of: other, key).filter { !members.contains($0) }
    guard members.count <= Limits.groupedCalls else { return .err(Failure(.tooMany)) }
    let group = other.audio.group ?? call.audio.group ?? MediaGroupID(raw: makeNumber())
    for member in members {
      change(member, &step) { call, step in
        call.enter(group, &step)
        call.sendGroup(of: members, &step)
      }
    }
    return .ok
  }

  /// Removes a call from its group, also one that is over. If one other call remains, it is in no group either.
  mutating func leaveGroup(_ id: CallID, _ step: inout Step) {
    guard let call = calls[id], let winner = call.winner, call.audio.group != nil else { return }
    let others = groupMembers(of: call, winner).filter { $0 != id }
    change(id, &step) { $0.leaveGroup(&$1) }
    for other in others {
      change(other, &step) { if others.count == 1 { $0.leaveGroup(&$1) } else { $0.sendGroup(of: others, &$1) } }
    }
  }

  private func groupMembers(of call: Call, _ key: DeviceKey) -> [CallID] {
    guard let group = call.audio.group else { return [call.id] }
    return calls.ids(of: key.user).filter { calls[$0]?.audio.group == group }
  }

  /// The others, for a device's snapshot and for operators; nil: it is in no group.
  func groupPeers(of id: CallID, for key: DeviceKey) -> [CallID]? {
    guard let call = calls[id], call.winner == key, call.audio.group != nil else { return nil }
    return groupMembers(of: call, key).filter { $0 != id }
  }
}

extension Call {
  func canBeGrouped(by key: DeviceKey) -> Bool { isLive && winner == key && state == .connected }

  mutating func enter(_ group: MediaGroupID, _ step: inout Step) {
    guard let isFirst = audio.enter(group) else { return }
    if isFirst { mark(.grouped, &step) }
    step.media(.group(session, group))
  }

  mutating func leaveGroup(_ step: inout Step) {
    guard audio.leave(), isLive else { return }
    mark(.ungrouped, &step)
    step.media(.group(session, nil))
  }

  /// Reports the other calls of its group from now on.
  func sendGroup(of members: [CallID], _ step: inout Step) {
    report(.callGrouped, at: step.now, &step) { $0.group = members.filter { $0 != id } }
  }

  /// The device gets the audio of both sides and sends the translation. While it translates, a mute applies to its microphone
  /// only, so that the translation stays audible; afterwards it applies in the gateway again.
  mutating func translate(_ request: CallTranslate, _ step: inout Step) -> RequestAnswer {
    guard state == .connected else { return .err(Failure(.badState)) }
    guard audio.translate(request) else { return .ok }
    let languages = [request.local, request.remote].compactMap(\.self).joined(separator: " ")
    mark(request.on ? .translating : .translated, detail: languages.isEmpty ? nil : languages, &step)
    if audio.isMuted { step.media(.mute(session, !request.on)) }
    return .ok
  }
}
