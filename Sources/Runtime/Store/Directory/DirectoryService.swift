public import AppSessions
public import CallModel
public import Cluster
import Foundation
public import Logging
import Synchronization
public import TrunklineAppProtocol
import TrunklineBytes
public import TrunklinePlatform

/// The thread `directory`: directories and histories of users, for their devices, for the admin port, and for the call machine,
/// which it notifies of blocked callers. No thread waits for it. It serves users in turn.
///
///     let service = try DirectoryService(path: settings.directory, history: settings.history, logger: logger)
///     let started = service.versions                              // for sessions, before the first one
///     try service.start(send: { app.post($0) }, block: { inbox.post(.blocked(scope: $0, $1)) })
///     service.handle(event, send: { app.post($0) })                // every event of sessions; true: it is not control's
///     service.written(records)
///     service.stop()
///
/// Imports of other processes are seen within `Limits.directoryLook` (0.5 s).
public final class DirectoryService: Sendable {
  /// Why a request failed.
  public enum Fault: Error, Sendable, Equatable {
    /// The mailbox is full.
    case busy
    /// The file cannot be read or written, or a limit is reached.
    case store(String)
    /// The shared store does not answer, or refuses: its directories are unchanged, unless only its answer was lost.
    case sharedStore
    /// In a cluster: each time that this import was committed, another one had changed the directory.
    case conflict
  }
  enum Message: Sendable {
    case event(SessionEvent)
    case records([CallRecord])
    case handle(ContactList, scope: String, replaces: Bool, @Sendable (Result<DirectoryFile.Change, Fault>) -> Void)
    case page(DeviceKey, accounts: [String], version: Int?, after: Int64?, @Sendable (Result<DirectoryPage, Fault>) -> Void)
    case list(@Sendable (Result<[DirectoryFile.Listing], Fault>) -> Void)
    case erase(user: String, @Sendable (Result<DirectoryFile.Erased, Fault>) -> Void)
    case history(HistorySettings)
    /// The shared store's answer to a request of this thread, by number.
    case answer(UInt64, SharedStoreHandle.Result)
    case news(ClusterMessage)
    case reconnected
    case stop
  }

  let file: DirectoryFile
  /// By scope, at the start.
  public let versions: [String: Int]
  let counters = DirectoryCounters()
  private let history: HistorySettings
  private let sharedStore: SharedStoreHandle?
  /// By user, so that one user's requests do not delay another's. Messages of no user have the empty name.
  private let mailbox: FairMailbox<String, Message>
  private let logger: Logger
  private let thread = Mutex<NamedThread?>(nil)

  /// Opens the file. Blocks; throws `StoreError`.
  /// - Parameter sharedStore: in a cluster: directories are shared with the other nodes, and histories are in the shared store
  ///   only.
  public init(path: String, history: HistorySettings, sharedStore: SharedStoreHandle? = nil, logger: Logger) throws {
    (self.history, self.sharedStore, self.logger) = (history, sharedStore, logger)
    file = try DirectoryFile(path: path)
    versions = try file.versions()
    mailbox = try FairMailbox(capacity: Limits.directoryMailbox, share: Limits.directoryPerUser)
  }

  /// Blocked callers of every directory, for the call machine before its first call. Blocks.
  public func blocked() throws -> [(scope: String, numbers: [Int64])] {
    try versions.keys.sorted().map { scope in
      let numbers = try file.blocked(in: scope)
      counters.count(blocked: numbers.count, in: scope)
      return (scope, numbers)
    }
  }

  /// - Parameters:
  ///   - send: sends to the sessions.
  ///   - block: sends to the call machine; false: its queue is full, and it is notified again.
  public func start(
    send: @escaping @Sendable (SessionCommand) -> Void, block: @escaping @Sendable (String, [Int64]) -> Bool
  ) throws {
    let (file, versions, history, counters, logger) = (file, versions, history, counters, logger)
    let running = try NamedThread.start(name: "directory", logger: logger) { [mailbox, sharedStore] in
      let client = sharedStore.map { SharedStoreClient($0) { mailbox.post(.answer($0, $1), of: "", isExempt: true) } }
      DirectoryWork(
        file, versions: versions, history: history, counters: counters, sharedStore: client, logger: logger, send: send,
        block: block
      ).run(mailbox)
    }
    thread.withLock { $0 = running }
  }

  /// Messages of no user may fill the whole mailbox, as no user repeats them at will.
  @discardableResult private func post(_ message: Message, of user: String = "") -> Bool {
    guard mailbox.depth < Limits.directoryMailbox else {
      mailbox.refused.increment()
      return false
    }
    return mailbox.post(message, of: user, isExempt: true)
  }

  /// Any thread. True: the event was a request of `dir.*` or `hist.*`, which this thread answers. False: others must handle it
  /// too.
  public func handle(_ event: SessionEvent, send: @Sendable (SessionCommand) -> Void) -> Bool {
    switch event {
    case .request(let device, _, let token, let message, _) where message.type.isOfDirectory:
      if !mailbox.post(.event(event), of: device.user) {
        send(.notify(device, .err(Failure(.overload, retryMs: 1_000)), re: token.request))
      }
      return true
    // Exempt from the limit: at most as many as there are sessions; a lost one would refuse its session for life, or leave it
    // behind.
    case .connected(let device, _, _, _), .upgraded(let device, _, _), .ended(let device, _):
      mailbox.post(.event(event), of: device.user, isExempt: true)
    default: break
    }
    return false
  }

  /// Called on the store's thread: these records are in their file.
  public func written(_ records: [CallRecord]) {
    if !post(.records(records)) { counters.lost.increment(by: UInt64(records.count)) }
  }

  /// Any thread; `done` is called on the directory thread.
  public func handle(
    _ list: ContactList, into scope: String, replaces: Bool,
    done: @escaping @Sendable (Result<DirectoryFile.Change, Fault>) -> Void
  ) {
    if !post(.handle(list, scope: scope, replaces: replaces, done)) { done(.failure(.busy)) }
  }

  /// Any thread: a page of a device's directory, for an answer by HTTP.
  public func page(
    of device: DeviceKey, accounts: [String], version: Int?, after: Int64?,
    done: @escaping @Sendable (Result<DirectoryPage, Fault>) -> Void
  ) {
    if !mailbox.post(.page(device, accounts: accounts, version: version, after: after, done), of: device.user) {
      done(.failure(.busy))
    }
  }

  /// Any thread: the existing directories. `done` is called on the directory thread, or at once, and must not take long.
  public func directories(done: @escaping @Sendable (Result<[DirectoryFile.Listing], Fault>) -> Void) {
    if !post(.list(done)) { done(.failure(.busy)) }
  }

  /// Any thread: deletes the history and the directory of a user.
  public func erase(user: String, done: @escaping @Sendable (Result<DirectoryFile.Erased, Fault>) -> Void) {
    if !post(.erase(user: user, done)) { done(.failure(.busy)) }
  }

  /// Any thread: a message of a live node about directories or a history.
  public func received(_ message: ClusterMessage) { post(.news(message)) }

  /// Any thread: the shared store is connected again.
  public func reconnected() { post(.reconnected) }

  /// Any thread.
  public func reconfigure(_ history: HistorySettings) { post(.history(history)) }

  /// Writes waiting changes and ends the thread.
  public func stop() {
    let running = thread.withLock { thread in
      defer { thread = nil }
      return thread
    }
    guard let running else { return }
    mailbox.post(.stop, of: "", isExempt: true)
    running.join()
  }

  /// The shared store owns the directories; the local ones are copies.
  public var isShared: Bool { sharedStore != nil }

  public var queue: MailboxReading { mailbox.reading("directory") }
  public var metrics: [MetricFamily] { counters.families }
}

/// A part of a device's directory, and the cursor of the next one.
public struct DirectoryPage: Sendable {
  public var part: DirectoryPart
  /// See `DirectoryAnswer`.
  public var of: String?
  public var next: Int64?
}

/// The directory thread writes these, except `lost`.
final class DirectoryCounters: Sendable {
  private let blockedOf = Mutex<[String: Int]>([:])

  func count(blocked: Int, in scope: String) {
    let all = blockedOf.withLock { all in
      all[scope] = blocked == 0 ? nil : blocked
      return all.values.reduce(0, +)
    }
    self.blocked.set(Int64(all))
  }

  let contacts = Gauge()
  let blocked = Gauge()
  let calls = Counter()
  let lost = Counter()
  let failures = Counter()
  let answers = Counter()
  let waiting = Gauge()
  let fetched = Counter()
  let given = Counter()
  let stale = Gauge()
  let staleAge = Gauge()

  var families: [MetricFamily] {
    [
      .gauge("trunkline_directory_contacts", help: "Contacts of all directories.", contacts),
      .gauge("trunkline_directory_blocked", help: "Blocked numbers in memory, of all directories.", blocked),
      .counter("trunkline_directory_answers_total", help: "Answered requests of devices for directory and history.", answers),
      .counter("trunkline_history_calls_total", help: "Calls that were added to histories, once for each user.", calls),
      .counter(
        "trunkline_history_lost_total", help: "Calls dropped as the queue to the histories was full; their records are written.",
        lost),
      .counter("trunkline_directory_failures_total", help: "Failed reads and writes of directories and histories.", failures),
      .gauge(
        "trunkline_directory_waiting", help: "Directories of a cluster that wait for a read or a write of the shared store.",
        waiting),
      .counter(
        "trunkline_directory_fetched_total", help: "Versions of directories that were read from the shared store.", fetched),
      .counter(
        "trunkline_directory_given_total", help: "Versions of directories that this node wrote to the shared store.", given),
      .gauge(
        "trunkline_directory_stale", help: "Directories whose version here is not the shared store's, or is unreadable there.",
        stale),
      .gauge("trunkline_directory_stale_seconds", help: "Age of the oldest version among these.", staleAge),
    ]
  }
}
