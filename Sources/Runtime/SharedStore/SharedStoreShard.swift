import Cluster
import RESP
import TrunklineBytes

/// The command connection to one primary, and the commands that wait for its answers, which arrive in the order of the commands.
///
/// Its liveness is judged by its own answers: in a Redis Cluster the other primaries may answer all the time.
///
/// | event | then |
/// |---|---|
/// | no command for `Limits.ping` | PING, which is queued like any command |
/// | an answer in time | alive |
/// | a command times out, the third in a row | lost |
/// | commands wait, and no answer for `Limits.silence` | lost |
final class SharedStoreShard {
  struct Waiting {
    /// Nil: no request waits any longer; the answer is read and ignored.
    var id: SharedStoreRequestID?
    var command: SharedStoreCommand?
    var sent: Instant
    var deadline: Instant
    var redirections = 0
  }

  let address: RedisServers.Address
  /// A tag in one of its slots, for its marker.
  let tag: String
  var link: SharedStoreLink?
  private var queue: [Waiting] = []
  private var head = 0
  /// All commands before it were answered or reported as timed out.
  private var looked = 0
  /// When it last answered, or was opened.
  private var receivedAt: Instant
  /// Commands in a row that timed out.
  private var late = 0

  init(_ address: RedisServers.Address, tag: String, at now: Instant) {
    (self.address, self.tag, receivedAt) = (address, tag, now)
  }

  /// The connection is open, and its greeting was answered.
  func opened(_ link: SharedStoreLink, at now: Instant) { (self.link, receivedAt) = (link, now) }

  var count: Int { queue.count - head }
  /// When the shard must be checked again.
  var deadline: Instant {
    guard head < queue.count else { return receivedAt + Limits.ping }
    return min(looked < queue.count ? queue[looked].deadline : .distantFuture, silentSince + Limits.silence)
  }
  /// The connection has been idle for `Limits.ping`.
  func pingIsDue(at now: Instant) -> Bool { count == 0 && receivedAt + Limits.ping <= now }
  /// Why the connection is given up at `now`; nil: it is alive. Call it after `expired`.
  func loss(at now: Instant) -> String? {
    if late >= Limits.late { return "three commands in a row were not answered in time" }
    guard count > 0, silentSince + Limits.silence <= now else { return nil }
    return "the connection stalled: commands are unanswered"
  }
  private var silentSince: Instant { max(receivedAt, queue[head].sent) }

  func append(_ waiting: Waiting) { queue.append(waiting) }

  /// Removes the command whose answer has arrived.
  func next(at now: Instant) -> Waiting? {
    receivedAt = now
    guard head < queue.count else { return nil }
    let first = queue[head]
    if first.deadline > now { late = 0 }
    head += 1
    looked = max(looked, head)
    if head == queue.count {
      queue.removeAll(keepingCapacity: true)
      head = 0
      looked = 0
    } else if head >= 1_024, head * 2 >= queue.count {
      queue.removeFirst(head)
      looked -= head
      head = 0
    }
    return first
  }

  /// The requests that have timed out, once each.
  func expired(at now: Instant) -> [SharedStoreRequestID] {
    var out: [SharedStoreRequestID] = []
    while looked < queue.count, queue[looked].deadline <= now {
      if let id = queue[looked].id { out.append(id) }
      queue[looked].id = nil
      late += 1
      looked += 1
    }
    return out
  }

  /// Removes the commands sent after one that must be sent again, if they are of the same slot, and returns them in order, so
  /// that the last write stays the last. The answers to their first sending are ignored.
  func removeLater(of tag: String?) -> [Waiting] {
    guard let tag else { return [] }
    var out: [Waiting] = []
    for index in head..<queue.count {
      guard queue[index].id != nil, let command = queue[index].command, command.mayRepeat, command.tag == tag else { continue }
      out.append(queue[index])
      queue[index].id = nil
    }
    return out
  }

  /// Empties the queue, and returns the requests that waited.
  func removeAll() -> [SharedStoreRequestID] {
    defer {
      queue = []
      head = 0
      looked = 0
    }
    return queue[head...].compactMap(\.id)
  }
}
