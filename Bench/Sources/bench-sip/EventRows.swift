import BenchKit
import CallFlow
import CallModel
import TrunklineBytes
import TrunklineSIPDialogs

/// What an event takes of the control thread: the same calls with events on and off. Writing them down is the store's thread's.
enum EventRows {
  static func rows(_ bench: Bench) throws {
    let name = "a call to a user without a device, with its event"
    let row = try bench.compare(
      name, operations: 2_000, ours: work("ours", isOn: true), limit: work("without events", isOn: false), oursMayAllocate: true,
      note: "INVITE, final response, record and one event at the call machine")
    guard let row, let limit = row.limit else { return }
    bench.add(
      BenchRow(
        "event told by control", unit: "ns", ours: BenchFigure("ours", max(0, row.ours.value - limit.value)),
        goal: .atMost(20_000),
        note: "the difference of the row before"))
  }

  private static func work(_ name: String, isOn: Bool) -> BenchWork {
    BenchWork(name) { loop in
      var calls = RefusedCalls(isOn: isOn)
      loop.run { calls.call($0) }
    }
  }

  private struct RefusedCalls {
    private var machine: CallMachine
    private var output = CallMachine.Output()
    private var now = Instant.zero
    private let flow = Flow(
      transport: .udp, local: SocketAddress(IPAddress(198, 51, 100, 9), 5_060),
      remote: SocketAddress(IPAddress(203, 0, 113, 7), 5_060))

    init(isOn: Bool) {
      var configuration = CallConfiguration()
      configuration.events = GatewayEvent.Rules(isOn: isOn)
      let routing = Routing(
        trunks: [.init(name: "carrier")], users: [.init(id: "alice", numbers: ["+15551230001"])],
        inbound: [.init(trunk: "carrier", target: .users)])
      machine = CallMachine(configuration: configuration, routing: routing, random: .seeded(1))
    }

    /// Call `index`; gives how much it caused.
    mutating func call(_ index: Int) -> UInt64 {
      // tombstones of the ones before go
      now = now + .seconds(1)
      let leg = LegID.inbound(UInt64(index + 1))
      let invite = InboundInvite(
        trunk: "carrier", source: flow, callID: "bench-\(index)@carrier", from: .init(number: "+15557654321"),
        to: .init(number: "+15551230001"), sdp: nil)
      output.removeAll()
      machine.handle(.timer, at: now, into: &output)
      machine.handle(.sip(.inviteReceived(leg, invite)), at: now, into: &output)
      machine.handle(.sip(.legClosed(leg)), at: now, into: &output)
      machine.handle(.timer, at: now, into: &output)
      return UInt64(output.actions.count)
    }
  }
}
