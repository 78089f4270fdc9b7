public import Cluster
import TrunklineBytes

/// The shared store of a cluster, as the directory thread uses it.
public struct SharedStoreHandle: Sendable {
  public typealias Result = Swift.Result<SharedStoreReply, SharedStoreFailure>
  /// This node.
  public var node: Incarnation
  /// Any thread; the answer is delivered once, on any thread.
  public var ask: @Sendable (SharedStoreRequest, @escaping @Sendable (Result) -> Void) -> Void
  public init(
    node: Incarnation, ask: @escaping @Sendable (SharedStoreRequest, @escaping @Sendable (Result) -> Void) -> Void
  ) {
    (self.node, self.ask) = (node, ask)
  }
}

/// Requests of one thread, whose answers are delivered to that thread. One thread, except for `post`.
final class SharedStoreClient {
  typealias Answer = (SharedStoreHandle.Result) -> Void
  let node: Incarnation
  private let sharedStore: SharedStoreHandle
  private let post: @Sendable (UInt64, SharedStoreHandle.Result) -> Void
  private var number: UInt64 = 0
  private var waiting: [UInt64: (asked: Instant, answer: Answer)] = [:]

  /// - Parameter post: any thread: delivers an answer to `answered`, on the thread; a lost answer counts as a time-out later.
  init(_ sharedStore: SharedStoreHandle, post: @escaping @Sendable (UInt64, SharedStoreHandle.Result) -> Void) {
    (self.sharedStore, self.post, node) = (sharedStore, post, sharedStore.node)
  }

  func ask(_ request: SharedStoreRequest, at now: Instant, _ answer: @escaping Answer) {
    number += 1
    waiting[number] = (now, answer)
    sharedStore.ask(request) { [post, number] in post(number, $0) }
  }

  /// Sends a request whose answer is ignored.
  func request(_ request: SharedStoreRequest) { sharedStore.ask(request) { _ in } }

  func answered(_ number: UInt64, _ result: SharedStoreHandle.Result) { waiting.removeValue(forKey: number)?.answer(result) }

  /// Fails requests whose answers were lost on their way to this thread.
  func expire(at now: Instant) {
    guard !waiting.isEmpty else { return }
    for number in waiting.filter({ now - $0.value.asked >= Limits.sharedStoreAnswer }).keys.sorted() {
      answered(number, .failure(.timeout))
    }
  }
}
