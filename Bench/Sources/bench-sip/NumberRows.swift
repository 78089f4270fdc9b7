import BenchKit
import PhoneNumbers

/// What reading a dialled number costs the control thread: once a call, and for each number that a trunk sends.
enum NumberRows {
  private static let dialled: [(region: String, text: String)] = [
    ("DE", "030 1234567"), ("DE", "+49 (0)30 1234567"), ("US", "1-800-FLOWERS"), ("US", "(650) 253-0000"),
    ("AU", "0011 49 30 1234567"),
    ("AR", "011 15-2345-6789"), ("HU", "06 30 123 4567"), ("CH", "144"), ("JP", "010 1 650 253 0000"),
    ("BR", "0 15 11 2345-6789"),
  ]

  static func rows(_ bench: Bench) throws {
    let plans = dialled.compactMap { NumberPlan(country: $0.region) }
    bench.require(plans.count == dialled.count, "a region has no plan")
    let work = BenchWork("ours") { loop in
      loop.run { index in
        let position = index % dialled.count
        guard let number = try? DialledNumber(dialled[position].text, in: plans[position]) else { return 0 }
        return UInt64(number.text.utf8.count)
      }
    }
    try bench.compare("a dialled number read", operations: 20_000, ours: work, goal: .atMost(5_000), oursMayAllocate: true)
  }
}
