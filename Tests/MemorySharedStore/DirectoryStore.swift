import AppSessions
import Cluster
import TrunklineBytes

/// Histories in a shared store.
struct HistoryStore: Sendable {
  private struct Row: Sendable {
    var number: Int64
    var call: String
    var content: [UInt8]
  }
  /// The newest first.
  private var rows: [String: [Row]] = [:]

  mutating func apply(_ request: SharedStoreRequest, _ whereabouts: [String: [String: Whereabouts]], at now: Instant)
    -> SharedStoreReply
  {
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

/// Directories in a shared store.
struct DirectoryStore: Sendable {
  private struct Directory: Sendable {
    var version: Int64 = 0
    var head: [UInt8] = []
  }
  private struct Part: Sendable {
    var content: [UInt8]
    /// When the part expires; nil: a version has it.
    var ends: Instant?
  }
  private var directories: [String: Directory] = [:]
  private var parts: [String: Part] = [:]
  /// Parts that commits have dropped, the oldest first.
  private var dropped: [String] = []
  private var last: Int64 = 0
  private var epoch = ""

  /// Parts that have not expired at this time.
  func names(at now: Instant) -> Set<String> { Set(parts.filter { $0.value.ends ?? .distantFuture > now }.keys) }

  mutating func apply(_ request: SharedStoreRequest, at now: Instant) -> SharedStoreReply {
    switch request {
    case .directories(let since):
      var out = DirectoryVersions()
      let later = directories.filter { $0.value.version > since }.sorted { $0.value.version < $1.value.version }
      let page = later.prefix(Limits.directoriesPerRead)
      out.versions = page.map { ($0.key, $0.value.version) }
      (out.hasMore, out.epoch, out.last) = (later.count > page.count, epoch, last)
      return .directories(out)
    case .directoryHead(let scope):
      let directory = directories[scope]
      return .directoryHead(directory?.head, version: directory?.version ?? 0, clock: now.nanoseconds / 1_000_000)
    case .directoryParts(let names):
      let found = names.compactMap { name in
        parts[name].flatMap { $0.ends ?? .distantFuture > now ? DirectoryPiece(name, $0.content) : nil }
      }
      return .directoryParts(found)
    case .stageDirectoryParts(let pieces):
      for piece in pieces { parts[piece.name] = Part(content: piece.content, ends: now + Limits.staged) }
      return .done
    case .commitDirectory(let commit): return take(commit, now)
    case .expireDirectoryParts:
      for name in dropped.prefix(Limits.partsPerExpiry) { parts[name]?.ends = now + Limits.staged }
      dropped.removeFirst(min(dropped.count, Limits.partsPerExpiry))
      return .count(dropped.count)
    default: return .done
    }
  }

  private mutating func take(_ commit: DirectoryCommit, _ now: Instant) -> SharedStoreReply {
    let before = directories[commit.scope]?.version ?? 0
    func outcome(_ outcome: CommitOutcome) -> SharedStoreReply { .committed(outcome, version: before, last: last) }
    guard before == commit.expected else { return outcome(.conflict) }
    guard commit.version > last else { return outcome(.late) }
    guard before != 0 || directories.count < Limits.directories else { return outcome(.full) }
    guard commit.made.allSatisfy({ parts[$0]?.ends.map { $0 > now } ?? false }) else { return outcome(.missing) }
    for name in commit.made { parts[name]?.ends = nil }
    dropped += commit.dropped
    let done = outcome(.done)
    directories[commit.scope] = Directory(version: commit.version, head: commit.head)
    last = commit.version
    if epoch.isEmpty { epoch = "\(commit.scope) \(commit.version)" }
    return done
  }
}
