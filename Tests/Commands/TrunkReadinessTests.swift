import Testing
import Trunking
import TrunklinePlatform

@testable import trunkline

@Suite struct TrunkReadinessTests {
  private func status(_ name: String, _ trouble: TrunkStatus.Trouble? = nil) -> TrunkStatus {
    var out = TrunkStatus(trunk: name)
    if let trouble { out.mark(trouble) }
    return out
  }

  @Test func `ready while one trunk is up, and those that are down are named`() {
    let readiness = Readiness()
    func condition(_ trunks: [TrunkStatus]) -> Readiness.Condition? {
      readiness.set(trunks: trunks)
      return readiness.report.first
    }
    #expect(condition([]) == .init(component: "trunks", reason: nil))
    #expect(condition([status("a"), status("b")]) == .init(component: "trunks", reason: nil))
    #expect(
      condition([status("a", .notAnswering), status("b")])
        == .init(component: "trunks", reason: nil, note: "down: a (OPTIONS not answered)"))
    #expect(readiness.isReady)
    let both = "down: a (not registered), b (disabled)"
    #expect(condition([status("a", .notRegistered), status("b", .disabled)]) == .init(component: "trunks", reason: both))
    #expect(!readiness.isReady)
    #expect(condition([status("a"), status("gone", .removed)]) == .init(component: "trunks", reason: nil), "it is expected")
  }
}
