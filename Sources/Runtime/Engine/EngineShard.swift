import Bytes
import Cluster

/// The command connection to one primary, and what waits for its answers: those come in the order of the commands.
final class EngineShard {
  struct Waiting {
    /// Nil: nobody waits any more, the answer is read and forgotten.
    var id: EngineRequestID?
    var command: EngineCommand?
    var sent: Instant
    var deadline: Instant
    var redirections = 0
  }

  let address: EngineSettings.Address
  /// A tag in one of its slots, for its marker.
  let tag: String
  var link: EngineLink?
  private var queue: [Waiting] = []
  private var head = 0
  /// All before it have their answer or were told of their time-out.
  private var looked = 0

  init(_ address: EngineSettings.Address, tag: String) { (self.address, self.tag) = (address, tag) }

  var count: Int { queue.count - head }
  /// When the oldest that somebody waits for has timed out.
  var deadline: Instant? { looked < queue.count ? queue[looked].deadline : nil }

  func append(_ waiting: Waiting) { queue.append(waiting) }

  /// The command whose answer has come.
  func next() -> Waiting? {
    guard head < queue.count else { return nil }
    let first = queue[head]
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

  /// Those whose time is over, once each.
  func expired(at now: Instant) -> [EngineRequestID] {
    var out: [EngineRequestID] = []
    while looked < queue.count, queue[looked].deadline <= now {
      if let id = queue[looked].id { out.append(id) }
      queue[looked].id = nil
      looked += 1
    }
    return out
  }

  /// Takes what was sent after a command that has to be sent again, as far as it is of the same slot: in order, so that the last word stays
  /// the last. The answers to what was sent are forgotten.
  func takeLater(of tag: String?) -> [Waiting] {
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
  func takeAll() -> [EngineRequestID] {
    defer {
      queue = []
      (head, looked) = (0, 0)
    }
    return queue[head...].compactMap(\.id)
  }
}
