import TrunklineAppProtocol
import TrunklineBytes

/// Calls that are mixed: the gateway joins their trunks, this device their audio. A group counts as one simultaneous call, as in
/// CallKit.
extension PhoneMachine {
  /// The app's request; nil: the call leaves its group.
  mutating func changeGroup(_ id: Identifier, with other: Identifier?, _ out: inout [Action]) {
    if calls.mayGroup(id, with: other) { out.append(.request(.group(id, other))) }
  }

  mutating func group(
    _ id: Identifier, with other: Identifier?, for action: SystemActionID, _ now: Instant, _ out: inout [Action]
  ) {
    guard calls.mayGroup(id, with: other), let question = ask(.callGroup(CallGroup(with: other)), call: id, now, &out) else {
      return out.append(.complete(action, false))
    }
    requests.add(question, .group(id, with: other, action))
  }

  /// The gateway's answer. Held calls of a new group are resumed; after a split, calls that are not active are held.
  mutating func finishGroup(
    _ id: Identifier, with other: Identifier?, for action: SystemActionID, isDone: Bool, _ now: Instant, _ out: inout [Action]
  ) {
    out.append(.complete(action, isDone))
    guard isDone, calls.isLive(id) else { return }
    guard let other else {
      leaveGroup(id, now, &out)
      // one call, or one group, is active at a time; the other peers hear hold audio
      if let listening = audio.listening { holdOthers(than: listening, &out) }
      return
    }
    guard calls.isLive(other) else { return }
    calls.join(id, with: other)
    for member in calls.members(of: id) {
      if let on = calls[member]?.hold.want(false) { out.append(.request(.hold(member, on))) }
      notifyChange(member, &out)
    }
    listen(now, &out)
  }

  /// Also for an ended call. A single call is not a group.
  mutating func leaveGroup(_ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    guard let changed = calls.leaveGroup(id) else { return }
    for id in changed { notifyChange(id, &out) }
    listen(now, &out)
  }

  /// Applies the gateway's groups from the snapshot of a new session.
  mutating func update(groupsOf snapshot: [CallSnapshot], _ now: Instant, _ out: inout [Action]) {
    for id in calls.regroup(snapshot) { notifyChange(id, &out) }
    listen(now, &out)
  }
}
