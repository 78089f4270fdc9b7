import AppSessions
import Bytes
import Cluster

/// Histories as an engine has them.
struct HistoryStore: Sendable {
  private struct Row: Sendable {
    var number: Int64
    var call: String
    var content: [UInt8]
  }
  /// The newest first.
  private var rows: [String: [Row]] = [:]

  mutating func apply(_ request: EngineRequest, _ whereabouts: [String: [String: Whereabouts]], at now: Instant) -> EngineReply {
    let clock = now.nanoseconds / 1_000_000
    switch request {
    case .addHistory(let call, let user, let row, let most, let keep):
      var all = rows[user] ?? []
      guard !all.contains(where: { $0.call == call.description }) else { return .added(nil, at: []) }
      let number = max(clock, (all.first?.number ?? 0) + 1)
      all.removeAll { $0.number < clock - keep.nanoseconds / 1_000_000 }
      all.insert(Row(number: number, call: call.description, content: Array("{\"n\":\(number),".utf8) + row), at: 0)
      rows[user] = Array(all.prefix(most))
      return .added(number, at: Set((whereabouts[user] ?? [:]).values.map(\.incarnation)))
    case .history(let user, let before, let most, let keep):
      let oldest = clock - keep.nanoseconds / 1_000_000
      let found = (rows[user] ?? []).filter { $0.number >= oldest && $0.number < before ?? .max }
      return .values(found.prefix(most).map(\.content), found.count > most ? 1 : 0)
    case .forgetHistory(let user): return .count(rows.removeValue(forKey: user)?.count ?? 0)
    default: return .done
    }
  }
}

/// Directories as an engine has them.
struct DirectoryStore: Sendable {
  private struct Directory: Sendable {
    var version: Int64 = 0
    var place: Int64 = 0
    var parts: [String: [UInt8]] = [:]
    var changes: [(version: Int64, part: [UInt8])] = []
  }
  private var directories: [String: Directory] = [:]
  private var staged: [String: (parts: [String: [UInt8]], ends: Instant)] = [:]
  private var last: Int64 = 0
  private var place: Int64 = 0
  private var epoch = ""

  mutating func apply(_ request: EngineRequest, at now: Instant) -> EngineReply {
    switch request {
    case .directories(let since):
      var out = DirectoryVersions()
      let later = directories.filter { $0.value.place > since }.sorted { $0.value.place < $1.value.place }
      let page = later.prefix(Limits.directoriesPerRead)
      out.versions = page.map { ($0.key, $0.value.version) }
      (out.place, out.hasMore) = (page.last?.value.place ?? since, later.count > page.count)
      (out.epoch, out.last) = (epoch, last)
      return .directories(out)
    case .directory(let scope, let since, let skip):
      let found = (directories[scope]?.changes ?? []).filter { $0.version > since }.dropFirst(skip).prefix(Limits.changesPerRead)
      return .values(found.map(\.part), directories[scope]?.version ?? 0)
    case .directoryPart(let scope, let part):
      let directory = directories[scope] ?? Directory()
      let values = [directory.parts["head"], directory.parts["\(part)"]].compactMap(\.self)
      return .values(directory.parts["head"] == nil ? [] : values, directory.version)
    case .stageDirectory(let name, let part, let content):
      if staged[name].map({ $0.ends <= now }) == true { staged[name] = nil }
      staged[name, default: ([:], now)].parts[part.map { "\($0)" } ?? "head"] = content
      staged[name]?.ends = now + Limits.staged
      return .done
    case .commitDirectory(let commit): return take(commit, now)
    default: return .done
    }
  }

  private mutating func take(_ commit: DirectoryCommit, _ now: Instant) -> EngineReply {
    var directory = directories[commit.scope] ?? Directory()
    let before = directory.version
    func told(_ outcome: CommitOutcome) -> EngineReply {
      .committed(outcome, version: before, last: last, place: place, changes: directory.changes.count)
    }
    guard before == commit.expected, !commit.isNew || (commit.version > last && commit.after == place) else {
      return told(.conflict)
    }
    guard let parts = staged[commit.staged].flatMap({ $0.ends > now ? $0.parts : nil }), parts.count == commit.parts else {
      return told(.notStaged)
    }
    guard before != 0 || directories.count < Limits.directories else { return told(.full) }
    switch commit.form {
    case .change:
      guard directory.changes.count + parts.count <= Limits.directoryChanges else { return told(.mustBeWhole) }
      // of one version by their bytes, as a sorted set has them
      let sorted = parts.values.sorted { $0.lexicographicallyPrecedes($1) }
      directory.changes += sorted.map { (commit.version, $0) }
    case .whole:
      directory.parts = parts
      directory.changes = before == commit.version ? directory.changes.suffix(Limits.directoryChangesKept) : []
    }
    staged[commit.staged] = nil
    let told = told(.done)
    if before != commit.version {
      place += 1
      directory.place = place
    }
    directory.version = commit.version
    directories[commit.scope] = directory
    last = max(last, commit.version)
    if epoch.isEmpty { epoch = commit.staged }
    return told
  }
}
