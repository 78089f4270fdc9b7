import CallFlow
import Configuration
import Control
import Trunking
import TrunklinePlatform
import TrunklineSIPDialogs

/// Control's reports about this process: for load balancers, the status page, the allow-list of SIP and the end of the process.
final class ControlReports: StateOutput {
  private let readiness: Readiness
  private let facts: StatusFacts
  private let peers: TrunkPeers
  private let drain: Drain
  private let memoryLimit: Int64

  init(_ settings: Settings, readiness: Readiness, facts: StatusFacts, peers: TrunkPeers, drain: Drain) {
    (self.readiness, self.facts, self.peers, self.drain) = (readiness, facts, peers, drain)
    let own = settings.limits.memoryMebibytes
    memoryLimit = own > 0 ? Int64(own) << 20 : ProcessMemory.limitBytes()
  }

  func memory() -> (used: Int64, limit: Int64) { (ProcessMemory.residentBytes(), memoryLimit) }

  func overloaded(_ reason: RefusalReason?) {
    readiness.set("load", ready: reason == nil, why: "overloaded (\(reason?.rawValue ?? "")): new calls get 503")
  }

  func trunkNews(_ news: TrunkNews) { if case .located(let trunk, let addresses) = news { peers.located(trunk, addresses) } }

  func trunkStatuses(_ statuses: [TrunkStatus]) {
    readiness.set(trunks: statuses)
    facts.note(statuses)
  }

  func drained() { drain.drained() }
  func left() { drain.left() }
}
