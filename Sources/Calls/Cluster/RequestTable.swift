import TrunklineBytes

/// The connection to the shared store, and the requests that wait for a reply.
///
/// | input | gives |
/// |---|---|
/// | `connect`, `disconnect` | – ; requests that wait stay until their replies or `popOverdue` |
/// | `close` | – ; no request is sent any more: another process has this node's name |
/// | `add` | the request's number; nil while not connected, after `close`, or if `Limits.requests` wait |
/// | `remove` | the purpose of the request, once; nil for a number that is unknown or answered |
/// | `popOverdue` | a request that has waited longer than `Limits.replyWait`, oldest first; it still is to be removed |
struct RequestTable: Sendable {
  struct Pending: Sendable {
    var purpose: ClusterMachine.Purpose
    var sent: Instant
  }

  private(set) var isConnected = false
  private(set) var isClosed = false
  private var pending: [SharedStoreRequestID: Pending] = [:]
  /// Oldest first, to find the requests without a reply.
  private var order = Fifo<SharedStoreRequestID>()
  private var last: UInt64 = 0

  mutating func connect() { isConnected = true }
  mutating func disconnect() { isConnected = false }
  mutating func close() { isClosed = true }

  mutating func add(_ purpose: ClusterMachine.Purpose, at now: Instant) -> SharedStoreRequestID? {
    guard isConnected, !isClosed, pending.count < Limits.requests else { return nil }
    last += 1
    let id = SharedStoreRequestID(last)
    pending[id] = Pending(purpose: purpose, sent: now)
    order.append(id)
    return id
  }

  mutating func remove(_ id: SharedStoreRequestID) -> Pending? { pending.removeValue(forKey: id) }

  mutating func popOverdue(at now: Instant) -> SharedStoreRequestID? {
    while let id = order.first {
      let request = pending[id]
      if let request, now - request.sent <= Limits.replyWait { return nil }
      _ = order.popFirst()
      if request != nil { return id }
    }
    return nil
  }
}
