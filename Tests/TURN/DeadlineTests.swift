import Testing
import TrunklineBytes
import TrunklineSTUN

@testable import TrunklineTURN

/// `TURNRig` holds after every timeout that the next deadline is later; this takes a client through its states in any order.
@Suite struct DeadlineTests {
  @Test(arguments: 1...40 as ClosedRange<UInt64>)
  func `a deadline is later than the timeout that was handled, whatever came before`(
    seed: UInt64
  ) {
    var random = SplitMix64(seed: seed)
    func pick(_ count: Int) -> Int { Int(random.next() % UInt64(count)) }
    let rig = TURNRig(isStream: seed % 4 == 0)
    rig.client.permit(TURNRig.gateway.ip, at: rig.now, into: &rig.output)
    rig.start()
    var asked: [[UInt8]] = []
    for _ in 0..<300 {
      asked = (asked + rig.take()).suffix(4)
      let request = asked.isEmpty ? [UInt8](repeating: 0, count: 20) : asked[pick(asked.count)]
      switch pick(16) {
      case 0: rig.receive(rig.challenge(request, pick(2) == 0 ? .unauthenticated : .staleNonce))
      case 1, 2, 3: rig.receive(rig.success(request, lifetime: [2, 60, 600, .max][pick(4)]))
      case 4: if pick(6) == 0 { rig.receive(rig.error(request, [.serverError, .allocationMismatch, .tryAlternate][pick(3)])) }
      case 5: rig.client.permit(IPAddress(10, 0, 0, UInt8(pick(4))), at: rig.now, into: &rig.output)
      case 6: rig.client.bind(SocketAddress(IPAddress(10, 0, 0, 1), UInt16(1 + pick(3))), at: rig.now, into: &rig.output)
      case 7: rig.receive([0x40, UInt8(pick(3)), 0, 1, 1])
      case 8: rig.receive((0..<pick(60)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
      case 9: if pick(40) == 0 { rig.client.close(at: rig.now, into: &rig.output) }
      case 10, 11: rig.wait(.milliseconds(Int64(pick(5_000))))
      default:
        guard let due = rig.client.nextDeadline else { return }
        rig.now = max(rig.now, due)
        rig.handleTimeout()
      }
    }
  }
}
