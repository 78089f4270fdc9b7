import TrunklineAppProtocol
import TrunklineBytes

/// The phone's calls, ended ones for a while, and the groups in which they are mixed.
///
/// | event | effect |
/// |---|---|
/// | `add` | the call; of `Limits.rememberedCalls` an ended one is removed |
/// | a change of a call that is not in the table | none |
/// | `join` | both calls and all members of their groups are one group |
/// | `leaveGroup`, also at the end of a call | the call is in no group; a last other member is in none either |
/// | `regroup` | groups as a snapshot names them, for its live calls |
/// | `addOrphan`, `claimOrphans` | a call of a killed process is returned once |
struct PhoneCallTable: Sendable {
  private var calls: [Identifier: PhoneCall] = [:]
  /// Calls with the same number are one group.
  private var groups: [Identifier: Int] = [:]
  private var groupCount = 0
  /// Calls of a process that was killed, which a push's session may not end.
  private var orphans: Set<Identifier> = []

  /// In a fixed order: the same events cause the same actions.
  private static func ordered(_ ids: some Sequence<Identifier>) -> [Identifier] {
    ids.sorted { ($0.high, $0.low) < ($1.high, $1.low) }
  }

  /// A call is changed in its slot; `add` adds and removes calls.
  subscript(_ id: Identifier) -> PhoneCall? {
    get { calls[id] }
    _modify { yield &calls[id] }
  }

  // MARK: all calls

  var all: [Identifier] { Self.ordered(calls.keys) }
  /// Calls that have not ended.
  var live: [Identifier] { Self.ordered(calls.filter { !$0.value.isOver }.map(\.key)) }
  var hasLive: Bool { calls.values.contains { !$0.isOver } }
  func isLive(_ id: Identifier) -> Bool { calls[id]?.isOver == false }
  func hasLive(of session: Int) -> Bool { calls.values.contains { !$0.isOver && $0.link.session == session } }
  /// Live calls that belong to the session.
  func live(of session: Int) -> [Identifier] { live.filter { calls[$0]?.link.session == session } }
  var nextDeadline: Instant? { calls.values.flatMap(\.deadlines).compactMap(\.self).min() }
  func info(of id: Identifier) -> CallInfo? { calls[id]?.info(id, group: groups[id]) }

  /// Ended calls are kept for a while: a late push must find them.
  mutating func add(_ id: Identifier, _ call: PhoneCall) {
    if calls.count >= Limits.rememberedCalls,
      let old = calls.filter(\.value.isOver).keys.min(by: { $0.description < $1.description })
    {
      calls[old] = nil
    }
    calls[id] = call
  }

  mutating func addOrphan(_ id: Identifier) { if orphans.count < Limits.rememberedCalls { orphans.insert(id) } }

  mutating func claimOrphans() -> [Identifier] {
    defer { orphans = [] }
    return Self.ordered(orphans)
  }

  // MARK: lines and audio

  /// Simultaneous calls: a group is one; a call that was neither offered nor shown does not count.
  var lines: Int {
    let held = calls.filter { !$0.value.isOver && $0.value.holdsLine }.keys
    return held.count { groups[$0] == nil } + Set(held.compactMap { groups[$0] }).count
  }

  /// A call that rings while its gateway is unreachable: its line is given to one whose gateway is reached.
  var lineToGiveUp: Identifier? { live.first { calls[$0]?.givesUpLine == true } }

  /// The call that microphone and loudspeaker belong to, and the others of its group: the call that is neither held nor only
  /// ringing, and all such calls of its group; if there are two, the latest.
  var audible: (call: Identifier?, others: [Identifier]) {
    let hearing = live.filter { calls[$0]?.isAudible == true }
    let next = hearing.max { (calls[$0]?.connectedAt ?? .max) < (calls[$1]?.connectedAt ?? .max) }
    guard let next else { return (nil, []) }
    return (next, members(of: next).filter { $0 != next && hearing.contains($0) })
  }

  // MARK: groups

  func isGrouped(_ id: Identifier) -> Bool { groups[id] != nil }

  /// All calls of the call's group, including itself, in the order of `live`.
  func members(of id: Identifier) -> [Identifier] {
    guard let group = groups[id] else { return [id] }
    return live.filter { groups[$0] == group }
  }

  /// - Parameter other: nil: the call leaves its group.
  func mayGroup(_ id: Identifier, with other: Identifier?) -> Bool {
    guard calls[id]?.state == .connected else { return false }
    guard let other else { return isGrouped(id) }
    guard other != id, isLive(other), calls[other]?.state == .connected, calls[id]?.capabilities?.group == true,
      calls[other]?.capabilities?.group == true
    else { return false }
    return Set(members(of: id) + members(of: other)).count <= Limits.groupedCalls
  }

  mutating func join(_ id: Identifier, with other: Identifier) {
    let members = Set(members(of: id) + members(of: other))
    groupCount += 1
    for member in members { groups[member] = groupCount }
  }

  /// - Returns: the live calls whose group has changed; nil: the call was in none.
  mutating func leaveGroup(_ id: Identifier) -> [Identifier]? {
    guard let group = groups.removeValue(forKey: id) else { return nil }
    let others = live.filter { groups[$0] == group }
    guard others.count == 1 else { return [id].filter(isLive) }
    groups[others[0]] = nil
    return ([id] + others).filter(isLive)
  }

  /// - Returns: the calls that are in a group now and were not, or the reverse.
  mutating func regroup(_ snapshot: [CallSnapshot]) -> [Identifier] {
    let known = snapshot.filter { isLive($0.call) }
    let before = known.map { isGrouped($0.call) }
    for row in known { groups[row.call] = nil }
    for row in known {
      for other in row.group ?? [] where isLive(other) { join(row.call, with: other) }
    }
    return zip(known, before).filter { isGrouped($0.call) != $1 }.map(\.0.call)
  }
}
