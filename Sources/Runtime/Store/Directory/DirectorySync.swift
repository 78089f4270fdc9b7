import Bytes
import Cluster
import Logging
import Platform

/// Keeps this node's directories and the engine's the same: one request at a time, so that leases and calls never wait behind an import. One
/// thread.
///
/// | event | does |
/// |---|---|
/// | the start; a request that failed; another epoch, or a lower highest version than before: flushed, or writes were lost | compares all directories |
/// | a word of another node, and every `Limits.sharedLook` | asks for versions later than the last one seen |
/// | an import here | compares that directory |
///
/// To compare one directory:
///
/// | the engine has | and here is nothing pending | and here is something pending |
/// |---|---|---|
/// | none, or an older one than `base` | gives it whole | gives it whole |
/// | `base` | – | gives the changes; whole where they are too many |
/// | a later one | takes the changes; whole where they do not lead from `base` to it | the same, merges, and gives what is left |
///
/// What is given counts if the engine still has the version that was compared with, and this node has all that the engine has
/// (`CommitOutcome.conflict` else: compared again).
///
/// **One order for all directories.** A device has one version of all of its directories, so whoever has been told of one must not miss an
/// earlier one of another. Hence new versions come to the engine in ascending order, are taken in the order in which they came, and nothing new is
/// given before all is taken. A version that is taken late all the same (a later one is here that was not given yet; directories were put back
/// after a flush) becomes a new version of this node.
final class DirectorySync {
  typealias Scope = String
  private enum Fault: Error { case engine, unreadable(String) }

  private let file: DirectoryFile
  private let engine: EngineClient
  private let counters: DirectoryCounters
  private let logger: Logger
  /// The file has other versions.
  private let changed: () -> Void
  private let clock: () -> Instant
  /// What others have, in the order in which it came; those behind `nextTake` are to be taken.
  private var takes: [(scope: Scope, version: Int)] = []
  private var nextTake = 0
  /// What they do not have; those behind `nextGive` are to be given.
  private var gives: [Scope] = []
  private var nextGive = 0
  private var given: Set<Scope> = []
  private var isAsking = false
  private var mustCompareAll = true
  private var mustLook = true
  private var lookAt = Instant.zero
  private var waitUntil = Instant.zero
  /// Requests since `windowEnd` less a window.
  private var sent = 0
  private var windowEnd = Instant.zero
  private var epoch = ""
  private var last: Int64 = 0
  private var since: Int64 = 0
  private var found: Set<Scope> = []
  private var stagings = 0
  /// Directories that could not be taken or given, and when they are tried again.
  private var faults: [Scope: Instant] = [:]
  private var compareAllAt = Instant.distantFuture

  init(
    _ file: DirectoryFile, _ engine: EngineClient, _ counters: DirectoryCounters, logger: Logger,
    clock: @escaping () -> Instant = { MonotonicClock.now() }, changed: @escaping () -> Void
  ) {
    (self.file, self.engine, self.counters, self.logger) = (file, engine, counters, logger)
    (self.clock, self.changed) = (clock, changed)
  }

  /// Another node has changed something.
  func heard() { mustLook = true }

  /// Versions here have changed.
  func changedHere() throws { for scope in try file.pendingScopes() { give(scope) } }

  /// When it wants a turn; the past: now.
  var nextTurn: Instant {
    if isAsking { return .distantFuture }
    return max(waitUntil, isIdle && !mustLook && !mustCompareAll ? min(lookAt, compareAllAt) : .zero)
  }
  var isIdle: Bool { nextTake == takes.count && nextGive == gives.count && !isAsking }

  func turn(at now: Instant) {
    guard !isAsking, now >= waitUntil else { return }
    if now >= windowEnd { (sent, windowEnd) = (0, now + Limits.sharedWindow) }
    guard sent < Limits.sharedPerWindow else {
      waitUntil = windowEnd
      return
    }
    counters.waiting.set(Int64(takes.count - nextTake + gives.count - nextGive))
    if now >= compareAllAt {
      (mustCompareAll, compareAllAt, faults) = (true, .distantFuture, [:])
    }
    if mustCompareAll || mustLook || now >= lookAt { return look(now) }
    if nextTake < takes.count {
      let (scope, version) = takes[nextTake]
      nextTake += 1
      if nextTake == takes.count { (takes, nextTake) = ([], 0) }
      return compare(scope, version)
    }
    guard nextGive < gives.count else { return }
    let scope = gives[nextGive]
    nextGive += 1
    given.remove(scope)
    if nextGive == gives.count { (gives, nextGive) = ([], 0) }
    compare(scope, nil)
  }

  private func give(_ scope: Scope) {
    if given.count < Limits.directories, given.insert(scope).inserted { gives.append(scope) }
  }

  private func take(_ scope: Scope, _ version: Int) {
    if Self.isScope(scope), takes.count - nextTake < Limits.directories { takes.append((scope, version)) }
  }

  private func compare(_ scope: Scope, _ version: Int?) {
    guard faults[scope] == nil else { return }
    attempt(scope) { readChanges(Comparison(scope, try file.standing(scope), listed: version)) }
  }

  static func isScope(_ text: String) -> Bool {
    text.utf8.count <= Limits.directoryNameBytes && text.utf8.allSatisfy { $0 >= 32 && $0 != 127 }
      && (text.hasPrefix("user:") || text.hasPrefix("account:"))
  }

  // MARK: asking

  /// `scope`: is compared again if this fails.
  private func ask(_ request: EngineRequest, _ scope: Scope?, _ then: @escaping (EngineReply) throws -> Void) {
    isAsking = true
    sent += 1
    engine.ask(request, at: clock()) { [unowned self] result in
      isAsking = false
      attempt(scope) {
        guard case .success(let reply) = result else { throw Fault.engine }
        try then(reply)
      }
    }
  }

  private func attempt(_ scope: Scope?, _ body: () throws -> Void) {
    do {
      try body()
    } catch Fault.engine {
      // what was asked may have been done, and what was there may be lost
      mustCompareAll = true
      waitUntil = clock() + Limits.retry + .milliseconds(Int64.random(in: 0...1_000))
    } catch {
      let now = clock()
      compareAllAt = now + Limits.sharedFault
      counters.failures.increment()
      let why = if case Fault.unreadable(let why) = error { why } else { "\(error)" }
      // others go on
      if let scope, faults.count < Limits.sharedFaults { faults[scope] = compareAllAt } else { waitUntil = compareAllAt }
      logger.error("a directory is not the same at all nodes", metadata: ["directory": "\(scope ?? "-")", "why": "\(why)"])
    }
  }

  // MARK: which

  private func look(_ now: Instant) {
    lookAt = now + Limits.sharedLook
    mustLook = false
    if mustCompareAll {
      (mustCompareAll, since, found, takes, nextTake) = (false, 0, [], [], 0)
      askForVersions(comparesAll: true)
    } else {
      askForVersions(comparesAll: false)
    }
  }

  private func askForVersions(comparesAll: Bool) {
    ask(.directories(since: since), nil) { [unowned self] reply in
      guard case .directories(let seen) = reply else { throw Fault.engine }
      if seen.epoch != epoch || seen.last < last {
        (epoch, last) = (seen.epoch, seen.last)
        if !comparesAll {
          mustCompareAll = true
          return
        }
      }
      last = seen.last
      try file.heard(Int(last))
      since = seen.place
      for (scope, version) in seen.versions {
        let here = try file.standing(scope)
        if here.base < version { take(scope, Int(version)) } else if here.base > version { give(scope) }
        if comparesAll, found.count < Limits.directories { found.insert(scope) }
      }
      if seen.hasMore, !seen.versions.isEmpty { return askForVersions(comparesAll: comparesAll) }
      if comparesAll { try compareAll() }
    }
  }

  private func compareAll() throws {
    try changedHere()
    for scope in try file.versions().keys where !found.contains(scope) { give(scope) }
    found = []
  }

  // MARK: one directory

  /// What is known of a directory while it is compared. An object: closures that hold it would copy what it has gathered.
  private final class Comparison {
    let scope: Scope
    let here: DirectoryFile.Standing
    /// The engine's as it was listed; nil: it was not.
    let listed: Int?
    /// The engine's; nil: not asked yet.
    var version: Int?
    var chain: ChangeChain
    var read = 0
    init(_ scope: Scope, _ here: DirectoryFile.Standing, listed: Int?) {
      (self.scope, self.here, self.listed, chain) = (scope, here, listed, ChangeChain(from: here.base))
    }
  }

  private func readChanges(_ comparison: Comparison) {
    ask(.directory(comparison.scope, since: Int64(comparison.chain.base), skip: comparison.read), comparison.scope) {
      [unowned self] reply in
      guard case .values(let values, let number) = reply else { throw Fault.engine }
      let version = Int(number)
      guard comparison.version ?? version == version else { return moved(comparison) }
      let isFirst = comparison.version == nil
      comparison.version = version
      let here = comparison.here
      if isFirst {
        if version == 0, here.version == 0 { return }
        if version < here.base || version == 0 {
          return giveWhole(comparison.scope, from: version, to: here.version, isNew: here.isPending)
        }
        if version == here.base {
          guard here.isPending else { return }
          // an import since then
          guard try file.standing(comparison.scope) == here else { return give(comparison.scope) }
          return try giveChanges(comparison.scope, here)
        }
        guard comparison.listed == version else { return moved(comparison) }
      }
      guard comparison.chain.add(values) else { return readPart(comparison, WholeReading()) }
      comparison.read += values.count
      if values.count == Cluster.Limits.changesPerRead { return readChanges(comparison) }
      guard comparison.chain.leads(to: version), here.base > 0 else { return readPart(comparison, WholeReading()) }
      let chain = comparison.chain
      let isMerged = try file.merge(
        comparison.scope, chain.incoming, replaced: chain.replaced, to: version, now: WallClock.nowMilliseconds())
      guard isMerged else { return readPart(comparison, WholeReading(isAfter: chain)) }
      try taken(comparison.scope)
    }
  }

  /// It has a later version by now, which is listed behind those that are to be taken before it.
  private func moved(_ comparison: Comparison) {
    mustLook = true
    if comparison.here.isPending { give(comparison.scope) }
  }

  private func taken(_ scope: Scope) throws {
    counters.fetched.increment()
    changed()
    if try file.standing(scope).isPending { give(scope) }
  }

  // MARK: a whole one

  private final class WholeReading {
    /// What others changed since `base`, if that is known.
    let isAfter: ChangeChain?
    var head: [UInt8] = []
    var version = 0
    /// The engine has lost what is here, and goes on without it.
    var isBroken = false
    var parts = 0
    var next = 0
    var reader = ContactReader(.csv)
    var list = ContactList()
    /// From `version` on.
    var chain = ChangeChain(from: 0)
    var read = 0
    init(isAfter: ChangeChain? = nil) { self.isAfter = isAfter }
  }

  private func readPart(_ comparison: Comparison, _ reading: WholeReading) {
    ask(.directoryPart(comparison.scope, reading.next), comparison.scope) { [unowned self] reply in
      guard case .values(let values, let number) = reply else { throw Fault.engine }
      guard Int(number) == comparison.version else { return moved(comparison) }
      guard let bytes = values.first, let head = DirectoryText.head(bytes) else {
        throw Fault.unreadable("its head in the engine is none")
      }
      if reading.head.isEmpty {
        (reading.head, reading.version, reading.parts) = (bytes, head.version, head.parts)
        let base = comparison.here.base
        reading.isBroken = comparison.chain.isBroken || (head.from < base && base < head.version)
        try reading.reader.take(Array((ContactReader.head + "\n").utf8))
      }
      guard bytes == reading.head else { return moved(comparison) }
      if reading.next < reading.parts {
        guard values.count == 2 else { throw Fault.unreadable("a part of it is missing in the engine") }
        try reading.reader.take(values[1])
        reading.next += 1
      }
      if reading.next < reading.parts { return readPart(comparison, reading) }
      reading.list = try reading.reader.finish()
      reading.chain = ChangeChain(from: reading.version)
      readRest(comparison, reading)
    }
  }

  /// What has changed since the whole was written.
  private func readRest(_ comparison: Comparison, _ reading: WholeReading) {
    let scope = comparison.scope
    ask(.directory(scope, since: Int64(reading.version), skip: reading.read), scope) { [unowned self] reply in
      guard case .values(let values, let number) = reply else { throw Fault.engine }
      guard Int(number) == comparison.version else { return moved(comparison) }
      guard reading.chain.add(values) else { throw Fault.unreadable("its changes in the engine do not follow each other") }
      reading.read += values.count
      if values.count == Cluster.Limits.changesPerRead { return readRest(comparison, reading) }
      guard reading.chain.leads(to: Int(number)) else { throw Fault.unreadable("changes of it are missing in the engine") }
      let whole = try reading.list.overlaid(by: reading.chain.incoming.mapValues(\.contact))
      try file.take(
        whole: whole, scope, changed: reading.isAfter?.incoming ?? reading.chain.incoming,
        replaced: reading.isAfter?.replaced, isBroken: reading.isBroken, version: Int(number), now: WallClock.nowMilliseconds())
      try taken(scope)
    }
  }

  // MARK: giving

  private func giveChanges(_ scope: Scope, _ here: DirectoryFile.Standing) throws {
    guard case .changes(let contacts, let replaces) = try file.outgoing(scope) else {
      return giveWhole(scope, from: here.base, to: here.version, isNew: true)
    }
    let parts = DirectoryText.changes(contacts, from: here.base, to: here.version, replaces: replaces)
    guard parts.count <= Cluster.Limits.directoryChangesKept else {
      return giveWhole(scope, from: here.base, to: here.version, isNew: true)
    }
    let commit = DirectoryCommit(
      scope, from: Int64(here.base), to: Int64(here.version), .change, staged: nextName(), parts: parts.count,
      isNew: true, after: since)
    stage(commit, parts)
  }

  private func nextName() -> String {
    stagings += 1
    return "\(engine.node).\(stagings)"
  }

  private func stage(_ commit: DirectoryCommit, _ parts: [[UInt8]], next: Int = 0) {
    guard next < parts.count else { return self.commit(commit) }
    ask(.stageDirectory(commit.staged, part: next, parts[next]), commit.scope) { [unowned self] _ in
      stage(commit, parts, next: next + 1)
    }
  }

  private func giveWhole(_ scope: Scope, from: Int, to version: Int, isNew: Bool) {
    let commit = DirectoryCommit(
      scope, from: Int64(from), to: Int64(version), .whole, staged: nextName(), parts: 0, isNew: isNew,
      after: since)
    attempt(scope) { try stageWhole(commit, after: 0) }
  }

  /// The contacts behind a number, part by part; then the head.
  private func stageWhole(_ commit: DirectoryCommit, after: Int64) throws {
    let contacts = try file.contacts(
      commit.scope, version: Int(commit.version), after: after, limit: Limits.sharedPartContacts)
    guard let contacts else { return give(commit.scope) }
    var next = commit
    next.parts += 1
    guard let lastContact = contacts.last else {
      let head = DirectoryText.head(from: Int(commit.expected), version: Int(commit.version), parts: commit.parts)
      return ask(.stageDirectory(commit.staged, part: nil, head), commit.scope) { [unowned self] _ in self.commit(next) }
    }
    // labels of many bytes: what has no room comes with the next part
    var (text, after) = ("", lastContact.number)
    for contact in contacts {
      let line = DirectoryText.line(contact.number, contact)
      if text.utf8.count + line.utf8.count > Limits.sharedPartBytes { break }
      text += line
      after = contact.number
    }
    ask(.stageDirectory(commit.staged, part: commit.parts, Array(text.utf8)), commit.scope) { [unowned self, next] _ in
      try stageWhole(next, after: after)
    }
  }

  private func commit(_ commit: DirectoryCommit) {
    let scope = commit.scope
    ask(.commitDirectory(commit), scope) { [unowned self] reply in
      guard case .committed(let outcome, let before, let last, let place, let changes) = reply else { throw Fault.engine }
      switch outcome {
      case .done: try committed(commit, after: place, changes: changes)
      case .conflict:
        if before != commit.expected || place != commit.after {
          mustLook = true
        } else {
          try file.renumber(scope, after: Int(last), now: WallClock.nowMilliseconds())
          changed()
        }
        give(scope)
      case .mustBeWhole: giveWhole(scope, from: Int(commit.expected), to: Int(commit.version), isNew: commit.isNew)
      case .notStaged: throw Fault.engine
      case .full: throw Fault.unreadable("the engine has \(Cluster.Limits.directories) directories")
      }
    }
  }

  private func committed(_ commit: DirectoryCommit, after place: Int64, changes: Int) throws {
    let (scope, version) = (commit.scope, Int(commit.version))
    if commit.expected != commit.version {
      counters.given.increment()
      try file.confirm(scope, version)
      // nothing else came in between
      if place == since { since += 1 }
      last = max(last, commit.version)
      engine.tell(.broadcast(.directories))
    }
    let here = try file.standing(scope)
    if here.isPending { return give(scope) }
    // a reader of the whole would have many changes to read after it
    if commit.form == .change, changes >= Cluster.Limits.directoryChangesWritten {
      giveWhole(scope, from: version, to: version, isNew: false)
    }
  }
}
