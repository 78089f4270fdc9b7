import AppSessions
import CallModel
import Cluster
import Logging
import TrunklineAppProtocol
import TrunklineBytes
import TrunklinePlatform

/// The work of the directory thread. One thread.
final class DirectoryWork {
  private struct Live {
    var session: SessionID
    var accounts: [String]
  }

  private let file: DirectoryFile
  private let counters: DirectoryCounters
  private let logger: Logger
  private let send: (SessionCommand) -> Void
  private let block: (String, [Int64]) -> Bool
  private var history: HistorySettings
  /// Only in a cluster.
  private let sharedStore: SharedStoreClient?
  private var sync: DirectorySync?
  private var sharedHistory: SharedHistory?
  private var versions: [String: Int]
  private var stamp = 0
  /// Scopes whose blocked callers were not sent to the call machine yet.
  private var unnotified: Set<String> = []
  /// The file has changes of other nodes that devices are not notified of yet.
  private var isStale = false
  private var refreshAt = Instant.zero
  private var live: [DeviceKey: Live] = [:]
  private var devicesOfUser: [String: Set<String>] = [:]
  private var waiting: [CallRecord] = []
  private var lookAt = MonotonicClock.now()
  private var sweepAt = MonotonicClock.now()
  private var problem: String?

  init(
    _ file: DirectoryFile, versions: [String: Int], history: HistorySettings, counters: DirectoryCounters,
    sharedStore: SharedStoreClient?,
    logger: Logger, send: @escaping (SessionCommand) -> Void, block: @escaping (String, [Int64]) -> Bool
  ) {
    (self.file, self.versions, self.history, self.counters) = (file, versions, history, counters)
    (self.sharedStore, self.logger, self.send, self.block) = (sharedStore, logger, send, block)
    guard let sharedStore else { return }
    sync = DirectorySync(file, sharedStore: sharedStore, counters: counters, logger: logger) { [unowned self] in isStale = true }
    sharedHistory = SharedHistory(sharedStore, settings: history, counters: counters) { [unowned self] user, row in
      self.send(of: user) { .histChanged(HistoryChanged(id: Int(row))) }
    }
  }

  func run(_ mailbox: FairMailbox<String, DirectoryService.Message>) {
    let heartbeat = Heartbeat()
    file.onProgress.withLock { $0 = { heartbeat.woke() } }
    defer {
      file.onProgress.withLock { $0 = nil }
      heartbeat.end()
    }
    attempt {
      stamp = try file.stamp()
      try file.trimViews()
    }
    // Covers an import between the reading of `versions` and now.
    refresh()
    count()
    var isOver = false
    while !isOver {
      var (next, used) = (mailbox.wait(timeout: pause, heartbeat: heartbeat), 0)
      while let message = next {
        if case .stop = message { isOver = true } else { handle(message) }
        // a message is some milliseconds of work: each one shows that the thread is alive
        heartbeat.woke()
        used += 1
        next = isOver || used < Limits.directoryMessages ? mailbox.next() : nil
      }
      flush()
      look()
      share()
    }
    sync?.stop()
    sharedHistory?.stop()
  }

  private var pause: Duration {
    guard let sync else { return Limits.directoryLook }
    return max(.zero, min(Limits.directoryLook, sync.nextStep - MonotonicClock.now()))
  }

  /// The cluster's part of a step.
  private func share() {
    guard let sharedStore else { return }
    let now = MonotonicClock.now()
    sharedStore.expire(at: now)
    sharedHistory?.step(at: now)
    sync?.step(at: now)
    // each notification reads all versions, so changes in quick succession are notified together
    if isStale, now >= refreshAt || sync?.isIdle ?? true {
      isStale = false
      refreshAt = now + Limits.directoryLook
      refresh()
    }
  }

  private func handle(_ message: DirectoryService.Message) {
    switch message {
    case .event(let event): handle(event)
    case .records(let records):
      if let sharedHistory { return sharedHistory.add(records) }
      let room = max(0, Limits.waitingHistory - waiting.count)
      waiting += records.prefix(room)
      if records.count > room { counters.lost.increment(by: UInt64(records.count - room)) }
    case .handle(let list, let scope, let replaces, let done):
      if let sync { return sync.write(list, into: scope, replaces: replaces, done: done) }
      done(result { try file.write(list, into: scope, replaces: replaces, now: WallClock.nowMilliseconds()) })
      refresh()
    case .page(let device, let accounts, let version, let after, let done):
      done(
        result {
          let question = DirectoryFile.Question(
            version: version, after: after, page: Limits.directoryPage, isShared: sharedStore != nil)
          let found = try file.answer(question, to: device, accounts: accounts, now: WallClock.nowMilliseconds())
          let part = found.parts.first ?? DirectoryPart(version: found.answer.version)
          return DirectoryPage(part: part, of: found.answer.of, next: found.answer.next)
        })
    case .list(let done): done(result { try file.directories() })
    case .erase(let user, let done): erase(user, done)
    case .answer(let number, let result): sharedStore?.answered(number, result)
    case .reconnected: sync?.reconnected()
    case .news(.directories): sync?.received()
    case .news(.history(let user, let row)): send(of: user) { .histChanged(HistoryChanged(id: Int(row))) }
    case .news: break
    case .history(let settings):
      history = settings
      sharedHistory?.settings = settings
      sweepAt = MonotonicClock.now()
    case .stop: break
    }
  }

  private func erase(_ user: String, _ done: @escaping @Sendable (Result<DirectoryFile.Erased, DirectoryService.Fault>) -> Void) {
    guard let sync, let sharedHistory else {
      done(result { try file.erase(user: user, now: WallClock.nowMilliseconds()) })
      refresh()
      return send(of: user) { .histChanged(HistoryChanged(id: 0)) }
    }
    var nothing = ContactList()
    try? nothing.finish()
    sync.write(nothing, into: DirectoryScope.user(user), replaces: true) { [unowned self] emptied in
      let contacts: Int
      switch emptied {
      case .success(let change): contacts = change.removed
      case .failure(let fault): return done(.failure(fault))
      }
      sharedHistory.erase(user, at: MonotonicClock.now()) { [unowned self] count in
        guard let count else { return done(.failure(.sharedStore)) }
        done(
          result {
            var all = try file.erase(user: user, now: WallClock.nowMilliseconds(), isCopied: true)
            all.calls = all.calls + count
            all.contacts = contacts
            return all
          })
      }
    }
  }

  private func result<Value>(_ body: () throws -> Value) -> Result<Value, DirectoryService.Fault> {
    do {
      return .success(try body())
    } catch {
      counters.failures.increment()
      return .failure(.store("\(error)"))
    }
  }

  // MARK: devices

  private func handle(_ event: SessionEvent) {
    switch event {
    case .connected(let device, let session, let info, _), .upgraded(let device, let session, let info):
      guard info.onlyCall == nil else { return }
      live[device] = Live(session: session, accounts: info.accounts)
      devicesOfUser[device.user, default: []].insert(device.device)
      attempt {
        if sharedStore != nil {
          // the device may come from another node, with other directories
          let (version, mark) = try file.sharedVersion(of: device, accounts: info.accounts)
          return send(.notify(device, .dirChanged(DirectoryChanged(version: version, of: mark))))
        }
        guard let version = try file.viewChanged(device, accounts: info.accounts, now: WallClock.nowMilliseconds()) else {
          return
        }
        send(.notify(device, .dirChanged(DirectoryChanged(version: version))))
      }
    case .ended(let device, let session):
      guard live[device]?.session == session else { return }
      live[device] = nil
      devicesOfUser[device.user]?.remove(device.device)
      if devicesOfUser[device.user]?.isEmpty ?? false { devicesOfUser[device.user] = nil }
    case .request(let device, _, let token, let message, _): answer(message, device, token)
    default: break
    }
  }

  private func answer(_ message: ClientMessage, _ device: DeviceKey, _ token: RequestToken) {
    func reply(_ message: ServerMessage) { send(.notify(device, message, re: token.request)) }
    guard let accounts = live[device]?.accounts else { return reply(.err(Failure(.overload, retryMs: 1_000))) }
    if let sharedHistory, case .histList(let list) = message {
      return sharedHistory.page(list, of: device.user, at: MonotonicClock.now()) { [unowned self] page in
        counters.answers.increment()
        guard var page else { return reply(.err(Failure(.overload, retryMs: 2_000))) }
        attempt { page.calls = try file.seen(page.calls, by: device, accounts: accounts) }
        reply(.ok(Success(hist: page)))
      }
    }
    let found = result { () throws -> [ServerMessage] in
      switch message {
      case .dirGet(let get):
        let found = try file.answer(
          .init(get, isShared: sharedStore != nil), to: device, accounts: accounts, now: WallClock.nowMilliseconds())
        let isFull = found.answer.from == nil
        return [.ok(Success(dir: found.answer))] + found.parts.map { isFull ? .dirFull($0) : .dirDelta($0) }
      case .dirFind(let find): return [.ok(Success(names: try file.names(for: find, of: device, accounts: accounts)))]
      case .histList(let list): return [.ok(Success(hist: try file.page(list, of: device, accounts: accounts)))]
      case .histResolve(let resolve):
        return [.ok(Success(names: try file.names(resolve.handles, of: device, accounts: accounts)))]
      default: return [.err(Failure(.unsupported))]
      }
    }
    counters.answers.increment()
    switch found {
    case .success(let messages): for message in messages { reply(message) }
    case .failure(let fault):
      logger.warning("a directory cannot be read", metadata: ["why": "\(fault)"])
      reply(.err(Failure(.server, retryMs: 5_000)))
    }
  }

  private func send(of user: String, _ message: () -> ServerMessage) {
    for device in devicesOfUser[user] ?? [] { send(.notify(DeviceKey(user: user, device: device), message())) }
  }

  // MARK: changes

  private func flush() {
    if !waiting.isEmpty {
      attempt {
        let newest = try file.add(waiting, history)
        waiting.removeAll(keepingCapacity: true)
        counters.calls.increment(by: UInt64(newest.count))
        for (user, id) in newest { send(of: user) { .histChanged(HistoryChanged(id: id)) } }
      }
    }
    for scope in unnotified { sendBlocked(scope) }
  }

  /// Reads imports of other processes and drops old calls, at intervals.
  private func look() {
    let now = MonotonicClock.now()
    if now >= lookAt {
      lookAt = now + Limits.directoryLook
      attempt {
        let seen = try file.stamp()
        if seen != stamp {
          // also if the version is the same: an operator restores a directory to the shared store so
          try sync?.changedHere()
          refresh()
        }
        stamp = seen
      }
    }
    if now >= sweepAt {
      sweepAt = now + Limits.historySweep
      attempt { try file.dropOld(history, now: WallClock.nowMilliseconds()) }
    }
  }

  /// Notifies of every directory whose version differs from the last notified one.
  private func refresh() {
    attempt {
      let now = try file.versions()
      let changed = now.filter { versions[$0.key] != $0.value }
      guard !changed.isEmpty else { return }
      try sync?.changedHere()
      versions = now
      for (scope, version) in changed {
        send(.directory(scope: scope, version: version))
        unnotified.insert(scope)
      }
      for (device, known) in live {
        let version = DirectoryScope.of(device, accounts: known.accounts).compactMap { changed[$0] }.max()
        let mark = sharedStore == nil ? nil : DirectoryFile.mark(device, known.accounts)
        if let version { send(.notify(device, .dirChanged(DirectoryChanged(version: version, of: mark)))) }
      }
      for scope in unnotified { sendBlocked(scope) }
      count()
    }
  }

  private func sendBlocked(_ scope: String) {
    attempt {
      let numbers = try file.blocked(in: scope)
      guard block(scope, numbers) else { return }
      unnotified.remove(scope)
      counters.count(blocked: numbers.count, in: scope)
    }
  }

  private func count() {
    attempt { counters.contacts.set(Int64(try file.directories().reduce(0) { $0 + $1.entries })) }
  }

  /// A failure is logged once; the work is tried again in the next step.
  private func attempt(_ body: () throws -> Void) {
    do {
      try body()
      if problem != nil { logger.notice("directories and histories can be used again") }
      problem = nil
    } catch {
      counters.failures.increment()
      if problem == nil { logger.error("directories and histories cannot be used", metadata: ["why": "\(error)"]) }
      problem = "\(error)"
    }
  }
}
