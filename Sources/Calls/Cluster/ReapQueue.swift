import CallModel
import TrunklineBytes

/// Calls of dead nodes that wait to be closed, in steps, each after a claim: a reaper may die too. And the calls that this process
/// has closed: each once, whatever the shared store answers.
///
/// | input | gives |
/// |---|---|
/// | `append` | `Timer.reap` at once; the caller offers no more than `room` |
/// | `first`, `removeFirst` | the next item; it stays until it is removed |
/// | `pause` | `Timer.reap`, if items wait |
/// | `close` | true once for each call within `Limits.startClaim` |
struct ReapQueue: Sendable {
  private var items = Fifo<ReapItem>()
  private var closed = BoundedTable<CallID, Void>(most: Limits.reapQueue)

  var isEmpty: Bool { items.isEmpty }
  var first: ReapItem? { items.first }
  var room: Int { Limits.reapQueue - items.count }
  func isClosed(_ call: CallID) -> Bool { closed[call] != nil }

  mutating func append(_ new: [ReapItem], _ step: inout Step) {
    guard !new.isEmpty else { return }
    items.append(contentsOf: new)
    step.timers.schedule(.reap, notLaterThan: step.now)
  }

  mutating func removeFirst() { _ = items.popFirst() }

  func pause(_ step: inout Step) {
    if !isEmpty { step.timers.schedule(.reap, at: step.now + Limits.reapPause) }
  }

  mutating func close(_ call: CallID, at now: Instant) -> Bool {
    guard !isClosed(call) else { return false }
    closed.set(call, (), until: now + Limits.startClaim, at: now)
    return true
  }
}

struct ReapItem: Hashable, Sendable {
  var entry: CallEntry
  var incarnation: Incarnation
  /// The number of its scan: items of an older scan are dropped.
  var scan: UInt64
}

/// Calls that the previous process left in its journal. Each is claimed while the shared store answers; without an answer in
/// time it is closed all the same: it is ours, and no other node could read it.
///
/// | input | gives |
/// |---|---|
/// | `add` | `Timer.inherited`; a call that is known is ignored |
/// | `due` | claims, and calls whose time is over, `Limits.reapStep` together; `Timer.inherited` again, while any waits |
/// | `failed` | – ; the call is claimed again |
/// | `remove` | the call, once, and whether it was the last one of its incarnation; nil: unknown, or closed already |
struct InheritedCalls: Sendable {
  struct Call: Sendable {
    var entry: CallEntry
    var incarnation: Incarnation
    fileprivate var deadline: Instant
    fileprivate var isAsking = false
  }

  private var calls: [CallID: Call] = [:]
  private var countOf: [Incarnation: Int] = [:]
  private var order: [CallID] = []

  mutating func add(_ entries: [CallEntry], of incarnation: Incarnation, _ step: inout Step) {
    for entry in entries where calls[entry.line.call] == nil {
      calls[entry.line.call] = Call(entry: entry, incarnation: incarnation, deadline: step.now + Limits.inheritWait)
      countOf[incarnation, default: 0] += 1
      order.append(entry.line.call)
    }
    step.timers.schedule(.inherited, at: step.now)
  }

  mutating func due(by claimant: Incarnation, _ step: inout Step) -> [CallID] {
    var (overdue, waiting) = ([CallID](), [CallID]())
    var (index, handled) = (0, 0)
    while index < order.count, handled < Limits.reapStep {
      let call = order[index]
      index += 1
      guard let own = calls[call] else { continue }
      if own.deadline <= step.now {
        overdue.append(call)
        handled += 1
      } else {
        waiting.append(call)
        guard !own.isAsking, step.send(.claimReaping(call, of: own.incarnation, by: claimant), .inheriting(call)) else {
          continue
        }
        calls[call]?.isAsking = true
        handled += 1
      }
    }
    order.replaceSubrange(..<index, with: [])
    order += waiting
    if !order.isEmpty {
      step.timers.schedule(.inherited, at: step.now + (handled == 0 ? .milliseconds(100) : Limits.reapPause))
    }
    return overdue
  }

  mutating func failed(_ call: CallID) { calls[call]?.isAsking = false }

  mutating func remove(_ call: CallID) -> (call: Call, isLast: Bool)? {
    guard let own = calls.removeValue(forKey: call) else { return nil }
    let left = (countOf[own.incarnation] ?? 0) - 1
    countOf[own.incarnation] = left > 0 ? left : nil
    return (own, left <= 0)
  }
}
