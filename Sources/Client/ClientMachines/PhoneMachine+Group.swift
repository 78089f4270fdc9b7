import TrunklineAppProtocol
import TrunklineBytes

/// Calls that are mixed: the gateway joins their trunks, this device their audio. A group counts as one simultaneous call, as in
/// CallKit.
extension PhoneMachine {
  /// Simultaneous calls: a group is one; a call that was neither offered nor shown does not count.
  var lines: Int {
    let held = liveCalls.filter { calls[$0]?.holdsLine == true }
    return held.count { calls[$0]?.group == nil } + Set(held.compactMap { calls[$0]?.group }).count
  }

  /// All calls of the call's group, including itself, in the order of `liveCalls`.
  func groupMembers(of id: Identifier) -> [Identifier] {
    guard let group = calls[id]?.group else { return [id] }
    return liveCalls.filter { calls[$0]?.group == group }
  }

  private func mayGroup(_ id: Identifier, _ other: Identifier?) -> Bool {
    guard calls[id]?.call?.state == .connected else { return false }
    guard let other else { return calls[id]?.group != nil }
    guard other != id, calls[other]?.isOver == false, calls[other]?.call?.state == .connected,
      calls[id]?.capabilities?.group == true, calls[other]?.capabilities?.group == true
    else { return false }
    return Set(groupMembers(of: id) + groupMembers(of: other)).count <= Limits.groupedCalls
  }

  /// The app's request; nil: the call leaves its group.
  mutating func changeGroup(_ id: Identifier, _ other: Identifier?, _ out: inout [Action]) {
    if mayGroup(id, other) { out.append(.request(.group(id, other))) }
  }

  mutating func group(_ id: Identifier, _ other: Identifier?, _ action: SystemActionID, _ now: Instant, _ out: inout [Action]) {
    guard mayGroup(id, other), let question = ask(.callGroup(CallGroup(with: other)), call: id, now, &out) else {
      return out.append(.complete(action, false))
    }
    groups[question] = (id, other, action)
  }

  /// The gateway's answer. Held calls of a new group are resumed; after a split, calls that are not active are held.
  mutating func finishGroup(
    _ id: Identifier, _ other: Identifier?, _ action: SystemActionID, isDone: Bool, _ now: Instant, _ out: inout [Action]
  ) {
    out.append(.complete(action, isDone))
    guard isDone, calls[id]?.isOver == false else { return }
    guard let other else {
      leaveGroup(id, now, &out)
      // one call, or one group, is active at a time; the other peers hear hold audio
      if let listening { holdOthers(than: listening, &out) }
      return
    }
    guard calls[other]?.isOver == false else { return }
    join(id, other)
    for member in groupMembers(of: id) {
      if let on = calls[member]?.hold.want(false) { out.append(.request(.hold(member, on))) }
      notifyChange(member, &out)
    }
    listen(now, &out)
  }

  private mutating func join(_ id: Identifier, _ other: Identifier) {
    let members = Set(groupMembers(of: id) + groupMembers(of: other))
    groupCount += 1
    for member in members { calls[member]?.group = groupCount }
  }

  /// Also for an ended call. A single call is not a group.
  mutating func leaveGroup(_ id: Identifier, _ now: Instant, _ out: inout [Action]) {
    guard let group = calls[id]?.group else { return }
    calls[id]?.group = nil
    let others = liveCalls.filter { calls[$0]?.group == group }
    if others.count == 1 { calls[others[0]]?.group = nil }
    for changed in [id] + (others.count == 1 ? others : []) where calls[changed]?.isOver == false { notifyChange(changed, &out) }
    listen(now, &out)
  }

  /// Applies the gateway's groups from the snapshot of a new session.
  mutating func update(groupsOf snapshot: [CallSnapshot], _ now: Instant, _ out: inout [Action]) {
    let known = snapshot.filter { calls[$0.call]?.isOver == false }
    let before = known.map { calls[$0.call]?.group != nil }
    for row in known { calls[row.call]?.group = nil }
    for row in known {
      for other in row.group ?? [] where calls[other]?.isOver == false { join(row.call, other) }
    }
    for (row, was) in zip(known, before) where was != (calls[row.call]?.group != nil) { notifyChange(row.call, &out) }
    listen(now, &out)
  }

  /// Drops group requests whose answers are no longer needed.
  mutating func dropGroupQuestions(_ isDropped: (Identifier, SystemActionID) -> Bool, completes: Bool, _ out: inout [Action]) {
    for (question, asked) in groups where isDropped(asked.call, asked.action) {
      groups[question] = nil
      if completes { out.append(.complete(asked.action, false)) }
    }
  }
}
