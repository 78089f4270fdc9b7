import Logging
import Synchronization
import TrunklineBytes
import TrunklinePlatform

/// The thread `names`, for addresses in SDP that the configuration gives as names: looks them up each minute, because a
/// public address may change under its name, and every two seconds while a name has no address. A look-up may be slow, so no
/// thread of calls does it.
final class AdvertisedNames: Sendable {
  struct Question: Hashable, Sendable {
    var name: String
    var family: IPAddress.Family
  }
  private struct State {
    var found: [Question: IPAddress] = [:]
    var isOver = false
  }
  private let interval: Duration
  private let pause: Duration
  private let find: @Sendable (String, IPAddress.Family) -> IPAddress?
  private let wake: EventDescriptor
  /// Signalled when every name was looked up once.
  private let first: EventDescriptor
  private let ended: EventDescriptor
  private let state = Mutex(State())
  private let thread = Mutex<NamedThread?>(nil)

  /// Tests shorten `interval` and `pause`, and replace `find`, the system's resolver.
  init(
    interval: Duration = .seconds(60), pause: Duration = .seconds(2),
    find: @escaping @Sendable (String, IPAddress.Family) -> IPAddress? = { lookUp($0, $1) }
  ) throws(SystemError) {
    (self.interval, self.pause, self.find) = (interval, pause, find)
    (wake, first, ended) = (try EventDescriptor(), try EventDescriptor(), try EventDescriptor())
  }

  /// Calls `changed` on the thread when a name resolves to a new address. Without names no thread starts.
  func start(_ questions: [Question], logger: Logger, changed: @escaping @Sendable () -> Void) throws(SystemError) {
    guard !questions.isEmpty else { return first.signal() }
    let running = try NamedThread.start(name: "names", logger: logger) { [self] in run(questions, logger, changed) }
    thread.withLock { $0 = running }
  }

  /// The last address that was found. Any thread.
  func address(_ name: String, _ family: IPAddress.Family) -> IPAddress? {
    state.withLock { $0.found[Question(name: name, family: family)] }
  }

  /// Waits until every name was looked up once, but no longer than this: name servers may start later than this process.
  func wait(milliseconds: Int32) { _ = first.wait(milliseconds: milliseconds) }

  /// Looks the names up at once, because the network changed. Any thread.
  func lookAgain() { wake.signal() }

  /// A look-up that waits for an unreachable name server delays the end of the process by at most half a second.
  func stop() {
    state.withLock { $0.isOver = true }
    wake.signal()
    let running = thread.withLock { thread in
      defer { thread = nil }
      return thread
    }
    if let running, ended.wait(milliseconds: 500) { running.join() }
  }

  private func run(_ questions: [Question], _ logger: Logger, _ changed: () -> Void) {
    let heartbeat = Heartbeat()
    defer {
      heartbeat.end()
      ended.signal()
    }
    var missing: Set<String> = []
    while true {
      heartbeat.waits()
      let before = missing
      missing = Set(questions.map(\.name))
      for question in questions {
        if state.withLock({ $0.isOver }) { return }
        guard let found = find(question.name, question.family) else { continue }
        missing.remove(question.name)
        if apply(found, question, logger) { changed() }
      }
      for name in missing.subtracting(before).sorted() { logMissing(name, logger) }
      for name in before.subtracting(missing).sorted() {
        logger.notice("an advertised name has an address again", metadata: ["name": "\(name)"])
      }
      first.signal()
      let pause = missing.isEmpty ? interval : min(pause, interval)
      if wake.wait(milliseconds: Int32(pause.nanoseconds / 1_000_000)) { wake.clear() }
      if state.withLock({ $0.isOver }) { return }
      heartbeat.woke()
    }
  }

  /// - Returns: whether the address changed.
  private func apply(_ found: IPAddress, _ question: Question, _ logger: Logger) -> Bool {
    let before = state.withLock { state in
      defer { state.found[question] = found }
      return state.found[question]
    }
    guard before != found else { return false }
    if before != nil {
      logger.notice(
        "an advertised name has another address: new calls use it",
        metadata: ["name": "\(question.name)", "address": "\(found)"])
    }
    return true
  }

  private func logMissing(_ name: String, _ logger: Logger) {
    let last = state.withLock { state in state.found.filter { $0.key.name == name }.map { "\($0.value)" }.sorted() }
    if last.isEmpty {
      logger.warning("an advertised name has no address: it is looked up until it resolves", metadata: ["name": "\(name)"])
    } else {
      logger.warning(
        "an advertised name has no address now: the last one is used",
        metadata: ["name": "\(name)", "address": "\(last.joined(separator: " "))"])
    }
  }
}
