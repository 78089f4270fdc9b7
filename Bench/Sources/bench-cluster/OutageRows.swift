import AppSessions
import BenchKit
import CallModel
import Cluster
import Devices
import Foundation
import TrunklineBytes

/// How long the control thread of a full node works in one turn after the shared store was away, or has lost its data: calls,
/// devices and remembered users are compared with it in steps. The real machine alone, with a shared store that answers at once,
/// on virtual time; what is measured is the machine's own time.
struct OutageRows {
  let bench: Bench

  func all() {
    guard bench.mayWant("after an outage", "after a flush") else { return }
    for isFlushed in [false, true] {
      var node = FullNode(calls: bench.isSmall ? 500 : 20_000, users: bench.isSmall ? 2_000 : 100_000)
      node.loseSharedStore(isFlushed: isFlushed)
      bench.require(node.machine.unwritten == 0 && node.isWhole, "the node put back \(node.counts), not all that it has")
      let name = isFlushed ? "after a flush" : "after an outage"
      bench.add(
        BenchRow(
          "\(name): control's longest turn", unit: "ms", ours: BenchFigure("ours", node.longest), goal: .atMost(5),
          note: "\(node.count) calls, \(node.count) devices, \(node.users) users remembered; \(node.turns) turns, "
            + String(format: "%.1f s of virtual time", node.seconds)))
    }
  }
}

private struct FullNode {
  var machine: ClusterMachine
  let count: Int
  let users: Int
  private(set) var longest = 0.0
  private(set) var turns = 0
  private(set) var seconds = 0.0
  private var now = Instant.zero + .seconds(100)
  private var output = ClusterMachine.Output()
  private var renewals = 0
  private var hasLease = false
  private var measures = false
  private var written: Set<CallID> = []
  private var entered: Set<String> = []
  private var reviewed: Set<String> = []
  private var stored: Set<String> = []
  private var isFlushed = false

  init(calls: Int, users: Int) {
    (count, self.users) = (calls, users)
    let own = Incarnation(node: "own", started: 1)
    machine = ClusterMachine(
      ClusterMachine.Settings(own, url: "wss://own/v1/connect", sip: "sip:192.0.2.1:5060", version: "1"), random: .seeded(1),
      at: now)
    take(.sharedStore(.connected(wasFlushed: false)))
    for number in 0..<users {
      take(.devices([.stored(Device(key: key(number), at: 1))]))
      if number % 1_000 == 0 { pass(.seconds(2)) }
    }
    for number in 0..<calls {
      take(.deviceCame(key(number), SessionID("s\(number)"), DeviceInfo(state: .fg)))
      let line = JournalEntry(
        call: CallID(high: 0x1111_2222_3333_4000, low: 0x8000_0000_0000_0000 | UInt64(number)), sipCallId: "c\(number)",
        direction: .incoming, trunk: "carrier", from: "+491", to: "+492", user: user(number), start: 1_000, connect: 1_001)
      take(.started(line, users: [user(number)]))
      if number % 1_000 == 0 { pass(.seconds(2)) }
    }
    while machine.unwritten > 0 { pass(.seconds(1)) }
    pass(.seconds(100))
  }

  /// The store is away for a second. Measures every turn until all is put back.
  mutating func loseSharedStore(isFlushed: Bool) {
    take(.sharedStore(.lost("it is away")))
    pass(.seconds(1))
    (measures, self.isFlushed, hasLease) = (true, isFlushed, !isFlushed)
    (written, entered, reviewed, stored) = ([], [], [], [])
    let start = now
    take(.sharedStore(.connected(wasFlushed: isFlushed)))
    pass(.seconds(8))
    while !isWhole || machine.unwritten > 0, now - start < .seconds(3_600) { pass(.seconds(1)) }
    seconds = (now - start).inSeconds
  }

  var counts: String {
    "\(written.count) calls, \(entered.count) devices, \(stored.count) registrations, and compared \(reviewed.count) users"
  }

  /// Whether all of the node was written, or compared.
  var isWhole: Bool {
    isFlushed
      ? written.count == count && entered.count == count && stored.count == users : reviewed.count == count && entered.isEmpty
  }

  private func user(_ number: Int) -> String { "user\(number)@phone.example.com" }
  private func key(_ number: Int) -> DeviceKey { DeviceKey(user: user(number), device: "phone") }

  private mutating func take(_ input: ClusterMachine.Input) {
    let begun = monotonicNanoseconds()
    machine.handle(input, at: now, into: &output)
    if measures {
      longest = max(longest, milliseconds(begun, monotonicNanoseconds()))
      turns += 1
    }
    let actions = output.actions
    output.removeAll()
    for case .sharedStore(let id, let request) in actions { take(.sharedStore(.reply(id, .success(reply(request))))) }
  }

  private mutating func reply(_ request: SharedStoreRequest) -> SharedStoreReply {
    switch request {
    case .renew:
      defer { (hasLease, renewals) = (true, renewals + 1) }
      let own = NodeLease(machine.incarnation, url: "wss://own/v1/connect", sip: "sip:192.0.2.1:5060", version: "1")
      return .nodes([own], hadLease: hasLease, clock: 0)
    case .put(let entry, _): written.insert(entry.line.call)
    case .enter(let location, _):
      entered.insert(location.device.user)
      return .entered(before: nil, calls: [], device: nil, since: 1)
    case .register(let user, _): stored.insert(user)
    case .locate(let user, let entering):
      if entering == nil { reviewed.insert(user) }
      var located = LocatedUser(user)
      let number = Int(user.dropFirst(4).prefix { $0 != "@" }) ?? 0
      located.devices = [Device(key: key(number), at: 1)]
      if entering == nil {
        located.whereabouts = [Whereabouts(key(number), at: machine.incarnation, session: SessionID("s\(number)"), state: .fg)]
      }
      return .located(located)
    case .lead: return .granted(false, holder: nil)
    default: break
    }
    return .done
  }

  private mutating func pass(_ length: Duration) {
    let end = now + length
    while let next = machine.nextDeadline, next <= end {
      now = max(now, next)
      take(.timer)
    }
    now = end
  }
}
