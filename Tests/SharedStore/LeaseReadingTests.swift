import Cluster
import RESP
import Testing

@testable import SharedStore

/// Which leases are kept when there are more than the limit.
@Suite struct LeaseReadingTests {
  private func value(_ node: String, calls: Int = 0) -> RESPValue {
    .bytes(Array(#"{"v":1,"i":"\#(node).1","url":"wss://x","sip":"sip:10.0.0.1:5060","calls":\#(calls)}"#.utf8))
  }
  private func names(_ leases: [NodeLease]) -> Set<String> { Set(leases.map(\.incarnation.node)) }

  @Test func `strangers take no place of this node's, nor of those that were there before`() {
    var reading = LeaseReading(own: Incarnation(node: "own", started: 1))
    let first = reading.read([value("n2"), value("own"), value("n1")])
    #expect(first.leases.map(\.incarnation.node) == ["n1", "n2", "own"] && first.dropped == 0)
    let strangers = (0..<5_200).map { value("x\($0)") }
    for calls in 1...3 {
      let (leases, dropped) = reading.read(strangers + [value("n2", calls: calls), value("own", calls: calls), value("n1")])
      #expect(leases.count == 5_000 && dropped == 203)
      #expect(names(leases).isSuperset(of: ["n1", "n2", "own"]))
    }
    let after = reading.read([value("n2"), value("own")])
    #expect(names(after.leases) == ["n2", "own"] && after.dropped == 0)
  }

  @Test func `what is no lease is counted each time, and of very many the rest is not looked at`() {
    var reading = LeaseReading()
    for _ in 0..<2 {
      let (leases, dropped) = reading.read([.null, .integer(3), .bytes([]), .bytes(Array("{".utf8)), value("n1")])
      #expect(leases.count == 1 && dropped == 4)
    }
    let (leases, dropped) = reading.read([RESPValue](repeating: .bytes(Array("{".utf8)), count: 20_000) + [value("n1")])
    #expect(leases.isEmpty && dropped == 20_001)
  }
}
