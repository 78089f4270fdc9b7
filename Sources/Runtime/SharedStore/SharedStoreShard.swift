import Bytes
import Cluster

/// The command connection to one primary, and what waits for its answers: those come in the order of the commands.
///
/// It is believed only while it answers, each one for itself: of a Redis Cluster the others may answer all the time.
///
/// | event | then |
/// |---|---|
/// | no command for `Limits.ping` | PING, which waits like any command |
/// | an answer in time | good |
/// | a command's time is over, the third in a row | lost |
/// | commands wait, and no answer for `Limits.silence` | lost |
final class SharedStoreShard {
  struct Waiting {
    /// Nil: nobody waits any more, the answer is read and forgotten.
    var id: SharedStoreRequestID?
    var command: SharedStoreCommand?
    var sent: Instant
    var deadline: Instant
    var redirections = 0
  }

  let address: SharedStoreSettings.Address
  /// A tag in one of its slots, for its marker.
  let tag: String
  var link: SharedStoreLink?
  private var queue: [Waiting] = []
  private var head = 0
  /// All before it have their answer or were told of their time-out.
  private var looked = 0
  /// When it last answered, or was opened.
  private var receivedAt: Instant
  /// Commands in a row whose time was over.
  private var late = 0

  init(_ address: SharedStoreSettings.Address, tag: String, at now: Instant) {
    (self.address, self.tag, receivedAt) = (address, tag, now)
  }

  /// It is open: all of its greeting was answered.
  func opened(_ link: SharedStoreLink, at now: Instant) { (self.link, receivedAt) = (link, now) }

  var count: Int { queue.count - head }
  /// When it is to be looked at again.
  var deadline: Instant {
    guard head < queue.count else { return receivedAt + Limits.ping }
    return min(looked < queue.count ? queue[looked].deadline : .distantFuture, silentSince + Limits.silence)
  }
  /// Nothing was asked for a while: it is time to ask whether it is there.
  func pingIsDue(at now: Instant) -> Bool { count == 0 && receivedAt + Limits.ping <= now }
  /// Why it is given up at `now`; nil: it is believed. After `expired`.
  func loss(at now: Instant) -> String? {
    if late >= Limits.late { return "three commands in a row were not answered in time" }
    guard count > 0, silentSince + Limits.silence <= now else { return nil }
    return "the connection stalled: commands are unanswered"
  }
  private var silentSince: Instant { max(receivedAt, queue[head].sent) }

  func append(_ waiting: Waiting) { queue.append(waiting) }

  /// The command whose answer has come.
  func next(at now: Instant) -> Waiting? {
    receivedAt = now
    guard head < queue.count else { return nil }
    let first = queue[head]
    if first.deadline > now { late = 0 }
    head += 1
    looked = max(looked, head)
    if head == queue.count {
      queue.removeAll(keepingCapacity: true)
      (head, looked) = (0, 0)
    } else if head >= 1_024, head * 2 >= queue.count {
      queue.removeFirst(head)
      looked -= head
      head = 0
    }
    return first
  }

  /// Those whose time is over and that somebody waits for, once each.
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

  /// Takes what was sent after a command that has to be sent again, as far as it is of the same slot: in order, so that the last word stays
  /// the last. The answers to what was sent are forgotten.
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

  /// Everybody who waits; nobody does any more.
  func removeAll() -> [SharedStoreRequestID] {
    defer {
      queue = []
      (head, looked) = (0, 0)
    }
    return queue[head...].compactMap(\.id)
  }
}
