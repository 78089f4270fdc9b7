import Cluster
import Logging
import TrunklineBytes
import TrunklinePlatform

/// Updates this node's copies of directories from the shared store, which owns them, and sends imports to it: one request at a
/// time, so that leases and calls never wait behind an import. One thread.
///
/// | event | does |
/// |---|---|
/// | the start; the shared store is connected again, is another, or has lost data; a request that failed | compares all directories |
/// | a message of another node, and every `Limits.sharedLook` | asks for versions later than the last one seen |
/// | the shared store has a later version | reads the parts that it does not have, and applies it whole or not at all |
/// | the shared store has none, an older one, or an unreadable one | serves the copy as before, and reports that |
/// | an import | stages the changed parts, and makes them the current version if no other import did so meanwhile; else begins again |
/// | an import was committed; the start; the shared store is connected again | lets dropped parts expire, `Cluster.Limits.partsPerExpiry` at a time: also those of a node that died after its commit |
/// | a directory that was made here when this gateway was alone | imports it, if the shared store has none; else applies the shared store's |
///
/// **One order for all directories.** A device has one version of all of its directories, so a device that was notified of one
/// must not miss an earlier one of another. Hence versions grow over all directories and are applied in ascending order. A
/// version that could not be read in time is made the current one again, under a later version, before it is applied.
final class DirectorySync {
  typealias Scope = String
  typealias Done = (Result<DirectoryFile.Change, DirectoryService.Fault>) -> Void
  enum Fault: Error { case sharedStore, unreadable(String) }

  struct Import {
    let scope: Scope
    let list: ContactList
    let replaces: Bool
    /// Made here when this gateway was alone, or restored.
    var isOwn = false
    var tries = 0
    let done: Done
  }
  /// A version of this node that was committed to the shared store, and is not applied to the copy yet.
  struct Committed {
    let scope: Scope
    let version: Int
    let made: ContactList
    let change: DirectoryFile.Change
    var done: Done?
  }
  /// Why a copy differs from the shared store's version.
  enum Stale: Equatable {
    case lost
    case older(Int)
    case unreadable(String)
  }

  let file: DirectoryFile
  let sharedStore: SharedStoreClient
  let counters: DirectoryCounters
  let logger: Logger
  /// Called when versions in the file have changed.
  let changed: () -> Void
  let clock: () -> Instant
  /// Directories with a later version in the shared store, ascending by version; those from `nextPending` on are still to be
  /// applied.
  private var pending: [Scope] = []
  private var nextPending = 0
  private var imports: [Import] = []
  /// Directories that were made here; those from `nextOwn` on are still to be imported.
  private var own: [Scope] = []
  private var nextOwn = 0
  var current: Import?
  var committed: Committed?
  private(set) var isAsking = false
  /// The last request had no reply.
  private(set) var isAway = false
  private var mustCompareAll = true
  private var mustLook = true
  /// Dropped parts may wait for their expiry.
  var mustExpire = true
  private var lookAt = Instant.zero
  private var waitUntil = Instant.zero
  /// Requests in the window that ends at `windowEnd`.
  private var sent = 0
  private var windowEnd = Instant.zero
  private var epoch = ""
  var last = 0
  private var since: Int64 = 0
  private var found: Set<Scope> = []
  /// Directories that could not be applied, and when they are tried again.
  private(set) var faults: [Scope: (isUnreadable: Bool, why: String)] = [:]
  private var compareAllAt = Instant.distantFuture
  /// `version`: the one that is served.
  private var stale: [Scope: (why: Stale, version: Int)] = [:]
  /// Tests set fewer.
  var headParts = Limits.headParts
  private let names = String(UInt64.random(in: .min ... .max), radix: 36)
  private var named = 0

  init(
    _ file: DirectoryFile, sharedStore: SharedStoreClient, counters: DirectoryCounters, logger: Logger,
    clock: @escaping () -> Instant = { MonotonicClock.now() }, changed: @escaping () -> Void
  ) {
    (self.file, self.sharedStore, self.counters, self.logger) = (file, sharedStore, counters, logger)
    (self.clock, self.changed) = (clock, changed)
  }

  /// Another node has changed a directory.
  func received() { mustLook = true }
  /// The shared store is connected again: it may have lost data, or be another one.
  func reconnected() { (mustCompareAll, waitUntil) = (true, .zero) }

  /// `done` is called once, now or later.
  func write(_ list: ContactList, into scope: Scope, replaces: Bool, done: @escaping Done) {
    if isAway { return done(.failure(.sharedStore)) }
    guard imports.count < Limits.waitingImports else { return done(.failure(.busy)) }
    imports.append(Import(scope: scope, list: list, replaces: replaces, done: done))
  }

  /// Called when directories may have been made here.
  func changedHere() throws {
    if nextOwn == own.count { (own, nextOwn) = ([], 0) }
    let waiting = Set(own[nextOwn...])
    own += try file.ownScopes().filter { !waiting.contains($0) && $0 != current?.scope }
  }

  /// Ends all imports; no version is read afterwards.
  func stop() { fail(.sharedStore) }

  /// When the next step is due; a past time: now.
  var nextStep: Instant {
    if isAsking { return .distantFuture }
    return max(waitUntil, isIdle && !mustLook && !mustCompareAll && !mustExpire ? min(lookAt, compareAllAt) : .zero)
  }
  var isIdle: Bool { nextPending == pending.count && imports.isEmpty && nextOwn == own.count && !isAsking }

  func step(at now: Instant) {
    guard !isAsking, now >= waitUntil else { return }
    if now >= windowEnd { (sent, windowEnd) = (0, now + Limits.sharedWindow) }
    guard sent < Limits.sharedPerWindow else {
      waitUntil = windowEnd
      return
    }
    counters.waiting.set(Int64(pending.count - nextPending + own.count - nextOwn + imports.count))
    if now >= compareAllAt { (mustCompareAll, compareAllAt, faults) = (true, .distantFuture, [:]) }
    if mustCompareAll || mustLook || now >= lookAt { return look(now) }
    if nextPending < pending.count {
      let scope = pending[nextPending]
      nextPending += 1
      if nextPending == pending.count { (pending, nextPending) = ([], 0) }
      guard faults[scope] == nil else { return }
      return attempt(scope) { compare(scope) }
    }
    if mustExpire { return attempt(nil) { expireDropped() } }
    if !imports.isEmpty { return begin(imports.removeFirst()) }
    guard nextOwn < own.count else { return }
    let scope = own[nextOwn]
    nextOwn += 1
    begin(Import(scope: scope, list: Self.nothing, replaces: false, isOwn: true) { _ in })
  }
  private static let nothing: ContactList = {
    var list = ContactList()
    try? list.finish()
    return list
  }()

  static func isScope(_ text: String) -> Bool {
    text.utf8.count <= Limits.directoryNameBytes && text.utf8.allSatisfy { $0 >= 32 && $0 != 127 }
      && (text.hasPrefix("user:") || text.hasPrefix("account:"))
  }

  /// A name that no part ever had.
  func newName() -> String {
    named += 1
    return "\(names).\(String(named, radix: 36))"
  }

  // MARK: requests

  /// `scope`: the directory to which a failure is attributed.
  func ask(_ request: SharedStoreRequest, _ scope: Scope?, _ then: @escaping (SharedStoreReply) throws -> Void) {
    askOnce(request, scope) { result in
      guard case .success(let reply) = result else { throw Fault.sharedStore }
      try then(reply)
    }
  }

  func askOnce(_ request: SharedStoreRequest, _ scope: Scope?, _ then: @escaping (SharedStoreHandle.Result) throws -> Void) {
    isAsking = true
    sent += 1
    sharedStore.ask(request, at: clock()) { [unowned self] result in
      isAsking = false
      attempt(scope) {
        if case .success = result { isAway = false }
        try then(result)
      }
    }
  }

  /// The head of a directory in the shared store; nil: there is none, or it is not signed by us, or it is of another version.
  func askHead(_ scope: Scope, _ then: @escaping (DirectoryHead?, _ version: Int, _ clock: Int) throws -> Void) {
    ask(.directoryHead(scope), scope) { reply in
      guard case .directoryHead(let bytes, let version, let clock) = reply else { throw Fault.sharedStore }
      let head = bytes.flatMap(DirectoryText.head)
      try then(head?.version == Int(version) ? head : nil, Int(version), Int(clock))
    }
  }

  func attempt(_ scope: Scope?, _ body: () throws -> Void) {
    do {
      try body()
    } catch Fault.sharedStore {
      // the request may have been done, and the store may have lost data
      mustCompareAll = true
      isAway = true
      waitUntil = clock() + Limits.retry + .milliseconds(Int64.random(in: 0...1_000))
      fail(.sharedStore)
    } catch {
      failed(scope, error)
    }
  }

  private func failed(_ scope: Scope?, _ error: any Error) {
    let (isUnreadable, why) = if case Fault.unreadable(let why) = error { (true, why) } else { (false, "\(error)") }
    // the shared store has the version, even if the local copy fails
    if let committed, committed.scope == scope { landed() }
    if let current {
      self.current = nil
      counters.failures.increment()
      return current.done(.failure(.store(why)))
    }
    counters.failures.increment()
    let now = clock()
    compareAllAt = now + Limits.sharedFault
    // other directories continue
    guard let scope, faults.count < Limits.sharedFaults else { return waitUntil = compareAllAt }
    faults[scope] = (isUnreadable, why)
    if isUnreadable {
      report(scope, .unreadable(why))
    } else {
      logger.error("a directory's version was not stored", metadata: ["directory": "\(scope)", "why": "\(why)"])
    }
  }

  /// Fails all imports that are not committed.
  private func fail(_ fault: DirectoryService.Fault) {
    landed()
    let all = [current].compactMap(\.self) + imports
    current = nil
    imports = []
    for one in all { one.done(.failure(fault)) }
  }

  /// Answers the import whose version was committed to the shared store.
  func landed() {
    guard let done = committed?.done, let change = committed?.change else { return }
    committed?.done = nil
    done(.success(change))
  }

  /// Begins the import again after another one was committed; false: it has been tried too often.
  func again(_ one: Import) -> Bool {
    guard one.tries < Limits.importTries else { return false }
    var next = one
    next.tries += 1
    current = nil
    mustLook = true
    imports.insert(next, at: 0)
    return true
  }

  /// The commit only lists the parts that it drops: to let them expire would double the time of its step.
  private func expireDropped() {
    mustExpire = false
    ask(.expireDirectoryParts, nil) { [unowned self] reply in
      guard case .count(let left) = reply else { throw Fault.sharedStore }
      mustExpire = left > 0
    }
  }

  // MARK: stale copies

  func report(_ scope: Scope, _ why: Stale) {
    guard let here = try? file.syncState(scope) else { return }
    let isNew = stale[scope]?.why != why
    guard stale.count < Limits.directories || stale[scope] != nil else { return }
    stale[scope] = (why, here.version)
    counters.stale.set(Int64(stale.count))
    // lost directories are logged together elsewhere
    guard isNew, why != .lost else { return }
    let text =
      switch why {
      case .lost: "it has none"
      case .older(let version): "it has the older version \(version)"
      case .unreadable(let why): why
      }
    logger.error(
      "the served version of a directory is not the shared store's: import the directory again",
      metadata: serving(scope, here.version, ["shared-store": "\(text)"]))
  }

  func served(_ scope: Scope) {
    guard stale.removeValue(forKey: scope) != nil else { return }
    counters.stale.set(Int64(stale.count))
    logger.notice("the served version of a directory is the shared store's again", metadata: ["directory": "\(scope)"])
  }

  private func serving(_ scope: Scope, _ version: Int, _ more: Logger.Metadata = [:]) -> Logger.Metadata {
    var out = more
    (out["directory"], out["served"]) = ("\(scope)", version == 0 ? "none" : "\(version)")
    if version > 0 { out["age_seconds"] = "\(max(0, (Int(WallClock.nowMilliseconds()) - version) / 1_000))" }
    return out
  }

  private func countAge() {
    let oldest = stale.values.lazy.map(\.version).filter { $0 > 0 }.min()
    counters.staleAge.set(oldest.map { max(0, (WallClock.nowMilliseconds() - Int64($0)) / 1_000) } ?? 0)
  }

  // MARK: versions

  private func look(_ now: Instant) {
    lookAt = now + Limits.sharedLook
    mustLook = false
    countAge()
    guard mustCompareAll else { return askForVersions(nil) }
    mustExpire = true
    attempt(nil) {
      mustCompareAll = false
      since = 0
      found = []
      pending = []
      nextPending = 0
      askForVersions(try file.syncStates())
    }
  }

  /// - Parameter here: all local directories, to compare them with all of the shared store's.
  private func askForVersions(_ here: [Scope: DirectoryFile.SyncState]?) {
    ask(.directories(since: since), nil) { [unowned self] reply in
      guard case .directories(let seen) = reply else { throw Fault.sharedStore }
      if seen.epoch != epoch || seen.last < last {
        epoch = seen.epoch
        last = Int(seen.last)
        if here == nil {
          mustCompareAll = true
          return
        }
      }
      last = Int(seen.last)
      var versions: [Scope: Int] = [:]
      for (scope, version) in seen.versions {
        guard Self.isScope(scope), pending.count < Limits.directories else { continue }
        if here != nil { found.insert(scope) }
        let known = try here.map { $0[scope] ?? .init() } ?? file.syncState(scope)
        if known.sharedStore != Int(version) { versions[scope] = Int(version) }
        if known.isCopy, known.version == Int(version) { served(scope) } else { pending.append(scope) }
      }
      try file.saw(versions)
      if let version = seen.versions.last?.version { since = version }
      if seen.hasMore, !seen.versions.isEmpty { return askForVersions(here) }
      if let here { try compared(here) }
    }
  }

  private func compared(_ here: [Scope: DirectoryFile.SyncState]) throws {
    let lost = here.filter { $0.value.base > 0 && !found.contains($0.key) }
    found = []
    try file.saw(lost.filter { $0.value.sharedStore != 0 }.mapValues { _ in 0 })
    let isNew = lost.keys.contains { stale[$0]?.why != .lost }
    for scope in lost.keys { report(scope, .lost) }
    if isNew, let (scope, syncState) = lost.min(by: { $0.value.version < $1.value.version }) {
      logger.error(
        "the shared store has lost directories, which are served from this node's copy: run trunkline directory restore",
        metadata: serving(scope, syncState.version, ["count": "\(lost.count)"]))
    }
    try changedHere()
  }
}
