import AppSessions
import CallFlow
import CallModel
import Cluster
import Devices
import MemorySharedStore
import PushPolicy
import Testing
import TrunklineAppProtocol
import TrunklineBytes

func callID(_ number: Int) -> CallID { CallID(high: 0x1111_2222_3333_4000, low: 0x8000_0000_0000_0000 | UInt64(number)) }
func key(_ user: String, _ device: String = "phone") -> DeviceKey { DeviceKey(user: user, device: device) }
func line(_ number: Int, user: String = "alice", trunk: String = "carrier", connect: Int64? = nil) -> JournalEntry {
  JournalEntry(
    call: callID(number), sipCallId: "c\(number)", direction: .incoming, trunk: trunk, from: "+491", to: "+492", user: user,
    start: 1_000, connect: connect)
}
func device(_ user: String, _ name: String = "phone", seen: Int64 = 1, revoked: Int64? = nil) -> Device {
  var device = Device(key: key(user, name), at: seen)
  device.revokedAt = revoked
  if revoked == nil { device.bindings = [PushBinding(PushTarget(.apns, token: "t-\(user)-\(name)"), registeredAt: seen)] }
  return device
}
func question(
  _ number: Int, users: [String] = ["alice"], mostOfTrunk: Int? = nil, mostOfUser: Int = 10, mayRedirect: Bool = false
) -> LocateQuestion {
  LocateQuestion(
    callID(number), users: users, trunk: "carrier", mostOfTrunk: mostOfTrunk, mostOfUser: mostOfUser, mayRedirect: mayRedirect)
}

extension ClusterWorld {
  typealias Action = ClusterMachine.Action

  /// Nodes that know each other and have a lease.
  static func running(_ nodes: Int, seed: UInt64 = 1, adjust: @escaping (inout ClusterMachine.Settings) -> Void = { _ in })
    -> ClusterWorld
  {
    let world = ClusterWorld(nodes: nodes, seed: seed, adjust: adjust)
    world.run(for: .seconds(15))
    for index in 0..<nodes { #expect(world.nodes[index].machine.state == .up) }
    return world
  }

  func came(_ node: Int, _ key: DeviceKey, _ session: String = "s1", _ info: DeviceInfo = DeviceInfo(state: .fg)) {
    input(node, .deviceCame(key, SessionID(session), info))
  }

  /// The result of one `locate`, and how long it took.
  func locate(_ node: Int, _ question: LocateQuestion, wait: Duration = .milliseconds(150)) -> (located: Located?, took: Duration)
  {
    let from = log.count
    let start = now
    input(node, .locate(question))
    run(for: wait)
    let found = log[from...].compactMap { logged -> (Located, Instant)? in
      if case .located(question.call, let located) = logged.action, logged.node == node { (located, logged.at) } else { nil }
    }
    #expect(found.count == 1, "one answer to each locate")
    return (found.first?.0, (found.first?.1 ?? start) - start)
  }

  func claim(_ node: Int, _ claim: ClaimQuestion) -> ClaimAnswer? {
    let from = log.count
    input(node, .claim(claim))
    run(for: .milliseconds(150))
    let found = log[from...].compactMap { logged -> ClaimAnswer? in
      if case .claimed(claim.call, let claimed) = logged.action, logged.node == node { claimed } else { nil }
    }
    #expect(found.count == 1, "one answer to each claim")
    return found.first
  }

  /// Rings here, or is connected: entered with its line.
  func start(_ node: Int, _ number: Int, user: String = "alice", connect: Int64? = nil, mostOfTrunk: Int? = nil) {
    input(node, .locate(question(number, users: [user], mostOfTrunk: mostOfTrunk)))
    run(for: .milliseconds(120))
    input(node, .started(line(number, user: user, connect: connect), users: [user]))
    run(for: .milliseconds(20))
  }

  func actions(of node: Int? = nil, since: Instant = .zero) -> [Action] {
    log.filter { (node == nil || $0.node == node) && $0.at >= since }.map(\.action)
  }
  func orphans(since: Instant = .zero) -> [CallID] {
    actions(since: since).compactMap { if case .orphan(let entry, _) = $0 { entry.line.call } else { nil } }
  }
  func reaped(by node: Int) -> Set<CallID> {
    Set(actions(of: node).flatMap { if case .reaped(let calls) = $0 { calls } else { [CallID]() } })
  }
  func leaders(of task: SingleTask) -> [Int] {
    nodes.indices.filter { nodes[$0].isAlive && !nodes[$0].isFrozen && nodes[$0].machine.leads.contains(task) }
  }
  /// A node that is no reaper.
  var follower: Int { nodes.indices.first { !leaders(of: .reaper).contains($0) }! }
  var reaper: Int { leaders(of: .reaper).first ?? -1 }
}

extension Located {
  var remoteDevices: [RemoteDevice]? { if case .here(let remoteDevices, _, _) = self { remoteDevices } else { nil } }
  var isHeard: Bool? { if case .here(_, _, let isHeard) = self { isHeard } else { nil } }
  var registry: [String: [Device]]? { if case .here(_, let registry, _) = self { registry } else { nil } }
}
