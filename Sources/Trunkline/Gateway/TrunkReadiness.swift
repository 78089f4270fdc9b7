import Trunking
import TrunklinePlatform

extension Readiness {
  /// Ready while one trunk is up, and if there are no trunks: then nothing is expected of them. Trunks that are down are named
  /// either way.
  func set(trunks: [TrunkStatus]) {
    let configured = trunks.filter { $0.why != .removed }
    let down = configured.compactMap { trunk in trunk.why.map { "\(trunk.trunk) (\(trunk.lookUp ?? $0.rawValue))" } }
    let text = down.isEmpty ? nil : "down: " + down.joined(separator: ", ")
    set("trunks", ready: configured.isEmpty || down.count < configured.count, why: text ?? "", note: text)
  }

  /// `GET /v1/ready`: as `/readyz`, without trunks. A carrier that is away is away for every node, and apps that no load balancer
  /// admits would not even be notified.
  var isReadyForApps: Bool {
    let report = report
    return !report.isEmpty && report.allSatisfy { $0.reason == nil || $0.component == "trunks" }
  }
}
