import Cluster
import MemorySharedStore
import TrunklineBytes

@testable import Store

/// A shared store in memory, and what becomes of requests on their way. One thread.
final class SharedStoreHub: @unchecked Sendable {
  /// On their way to a thread.
  final class Answers: @unchecked Sendable {
    var list: [(UInt64, SharedStoreHandle.Result)] = []

    func deliver(to client: SharedStoreClient) {
      let arrived = list
      list = []
      for (number, result) in arrived { client.answered(number, result) }
    }
  }
  var store = SharedStoreStore()
  var now = Instant.zero + .seconds(1_000_000)
  var isAway = false
  /// It has no memory left, or is a replica: what would change something is refused.
  var refuses: String?
  /// Of 1.
  var losesReplies = 0.0
  /// These are done, and their reply is lost.
  var loses: (SharedStoreRequest) -> Bool = { _ in false }
  /// Before these it dies.
  var diesAt: (SharedStoreRequest) -> Bool = { _ in false }
  /// Parts that are not there.
  var hides: Set<String> = []
  var random = SplitMix64(seed: 1)
  var requests = 0

  func answer(_ request: SharedStoreRequest) -> SharedStoreHandle.Result {
    if diesAt(request) { isAway = true }
    guard !isAway else { return .failure(.away) }
    if let refuses {
      switch request {
      case .stageDirectoryParts, .commitDirectory, .addHistory: return .failure(.refused(refuses))
      default: break
      }
    }
    requests += 1
    var reply = store.apply(request, at: now)
    if case .directoryParts(let pieces) = reply { reply = .directoryParts(pieces.filter { !hides.contains($0.name) }) }
    if loses(request) { return .failure(.timeout) }
    return Double.random(in: 0..<1, using: &random) < losesReplies ? .failure(.timeout) : .success(reply)
  }

  func client(_ node: String, _ answers: Answers) -> SharedStoreClient {
    let sharedStore = SharedStoreHandle(node: Incarnation(node: node, started: 1)) { [self] request, answer in
      answer(self.answer(request))
    }
    return SharedStoreClient(sharedStore) { answers.list.append(($0, $1)) }
  }
}
