import AppSessions
import Cluster
import Devices
import Testing
import TrunklineBytes

/// A node's writes in a second, which must leave the shared store room when all nodes write at their limit.
@Suite struct PacingTests {
  /// A node among others with leases, with a shared store that answers at once.
  private struct Node {
    var machine: ClusterMachine
    var now = Instant.zero + .seconds(100)
    var output = ClusterMachine.Output()
    /// The incarnation where every device was before.
    var before: Incarnation?
    var enters = 0, publishes = 0, renewals = 0
    private var locations: [String: Whereabouts] = [:]
    let others: [NodeLease]

    init(among others: Int) {
      self.others = (0..<others).map { Self.lease(Incarnation(node: "n\($0)", started: 1)) }
      let settings = ClusterMachine.Settings(
        Incarnation(node: "own", started: 1), url: "wss://own/v1/connect", sip: "sip:10.0.0.1:5060", version: "1")
      machine = ClusterMachine(settings, random: .seeded(1), at: now)
      take(.sharedStore(.connected(wasFlushed: false)))
    }

    static func lease(_ incarnation: Incarnation) -> NodeLease {
      NodeLease(incarnation, url: "wss://\(incarnation.node)/v1/connect", sip: "sip:\(incarnation.node):5060", version: "1")
    }

    mutating func take(_ input: ClusterMachine.Input) {
      machine.handle(input, at: now, into: &output)
      if case .timer = input { #expect(machine.nextDeadline.map { $0 > now } ?? true) }
      let actions = output.actions
      output.removeAll()
      for case .sharedStore(let id, let request) in actions { take(.sharedStore(.reply(id, .success(reply(request))))) }
    }

    private mutating func reply(_ request: SharedStoreRequest) -> SharedStoreReply {
      switch request {
      case .renew:
        renewals += 1
        return .nodes(others + [Self.lease(machine.incarnation)], hadLease: renewals > 1, clock: 0)
      case .enter(let location, _):
        enters += 1
        locations[location.device.user] = location
        let old = before.map { Whereabouts(location.device, at: $0, session: SessionID("old")) }
        return .entered(before: old, calls: [], device: nil, since: 1)
      case .publish:
        publishes += 1
        return .done
      case .locate(let user, _):
        var located = LocatedUser(user)
        located.whereabouts = locations[user].map { [$0] } ?? []
        return .located(located)
      case .lead: return .granted(false, holder: others.first?.incarnation)
      default: return .done
      }
    }

    mutating func come(_ count: Int) {
      for number in 0..<count {
        let key = DeviceKey(user: "u\(number)", device: "d")
        take(.deviceCame(key, SessionID("s\(number)"), DeviceInfo(state: .fg)))
      }
    }

    /// Advances the time, and fires the timers.
    mutating func pass(_ length: Duration) {
      let end = now + length
      while let next = machine.nextDeadline, next <= end {
        now = max(now, next)
        take(.timer)
      }
      now = end
    }
  }

  @Test func `a node that has seen the leases once takes few: all may have begun with it`() {
    var node = Node(among: 0)
    #expect(node.renewals == 1)
    node.come(500)
    #expect(node.enters == 30)
    node.pass(.milliseconds(900))
    #expect((30...60).contains(node.enters))
    // each twice: alone, the node writes at its full rate, from a random time within 5 s on
    node.pass(.seconds(8))
    #expect(node.enters == 500 && node.machine.unwritten == 0, "\(node.enters), \(node.machine.unwritten)")
  }

  @Test func `one of a thousand nodes writes its share, in any second`() {
    var node = Node(among: 999)
    node.pass(.seconds(10))
    node.come(300)
    #expect(node.enters == 4)
    for _ in 0..<5 {
      let before = node.enters
      node.pass(.seconds(1))
      // 1/1,000 of 45,000 a second, and a burst of four
      #expect(node.enters - before <= 49)
    }
    node.pass(.seconds(5))
    #expect(node.enters == 300 && node.machine.unwritten == 0)
  }

  @Test func `what others are told of devices that have moved counts like writes`() {
    var node = Node(among: 999)
    node.pass(.seconds(10))
    node.before = node.others[7].incarnation
    node.come(300)
    for _ in 0..<5 {
      let before = node.enters + node.publishes
      node.pass(.seconds(1))
      #expect(node.enters + node.publishes - before <= 50)
    }
    node.pass(.seconds(15))
    #expect(node.enters == 300 && node.publishes == 300)
  }
}
