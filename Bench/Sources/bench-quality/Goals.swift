import BenchKit

extension Path {
  var title: String {
    switch self {
    case .pcmu: "PCMU"
    case .trunkToApp: "trunk to app"
    case .appToTrunk: "app to trunk"
    case .g722ToApp: "G.722 to app"
    case .appToG722: "app to G.722"
    }
  }
  /// The name of the score in `Scores.perceived`.
  var score: String { band == .wideband ? "PESQ-WB" : "PESQ" }
  /// The goals for the received audio.
  func leastScore(_ network: String) -> BenchGoal? {
    switch (self, network) {
    case (.trunkToApp, "3 % loss"): .atLeast(3.6)
    case (.trunkToApp, "5 % loss"): .atLeast(3.45)
    case (.trunkToApp, "10 % loss"): .atLeast(3.0)
    case (.appToTrunk, "20 % loss"): .atLeast(2)
    default: .atLeast(1, of: .peer)
    }
  }
  func mostDrop(_ network: String) -> BenchGoal? {
    switch (self, network) {
    case (.pcmu, "3 % loss"): .atMost(0.5)
    case (.pcmu, "5 % loss"): .atMost(1)
    case (.appToTrunk, "3 % loss"): .atMost(0.3)
    case (.appToTrunk, "5 % loss"): .atMost(0.6)
    case (.appToTrunk, "10 % loss"): .atMost(1)
    default: nil
    }
  }
}
