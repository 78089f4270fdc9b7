/// A commit of a directory's next version in the shared store. Its parts are stored already, under names of their own
/// (`SharedStoreRequest.stageDirectoryParts`); this one step makes the version the current one.
public struct DirectoryCommit: Hashable, Sendable {
  public var scope: String
  /// The current version that the shared store must have; 0: none.
  public var expected: Int64
  /// Later than any version that the shared store ever had, of any directory.
  public var version: Int64
  /// The list of the version's parts, for its readers.
  public var head: [UInt8]
  /// Staged parts that the commit keeps, and parts of the previous version that expire after `Limits.staged`.
  public var made: [String]
  public var dropped: [String]
  public init(
    _ scope: String, from expected: Int64, to version: Int64, head: [UInt8], made: [String] = [], dropped: [String] = []
  ) {
    (self.scope, self.expected, self.version, self.head) = (scope, expected, version, head)
    (self.made, self.dropped) = (made, dropped)
  }
}

/// The result of a `DirectoryCommit`. Only `done` changes anything.
public enum CommitOutcome: Int64, Hashable, Sendable {
  /// The shared store has another version than `expected`.
  case conflict = 0
  case done = 1
  /// A directory already has a version that is as late or later.
  case late = 2
  /// A part is missing: it was staged too long ago.
  case missing = 3
  /// The shared store has no room for another directory.
  case full = 4
}

/// Versions of directories in the shared store.
public struct DirectoryVersions: Hashable, Sendable {
  /// Ascending by version, each directory once.
  public var versions: [(scope: String, version: Int64)] = []
  /// More versions follow after the last one.
  public var hasMore = false
  /// Changes when the shared store has lost its directories, or is another one. Empty: it has no directories.
  public var epoch = ""
  /// The highest version that the shared store ever had.
  public var last: Int64 = 0
  public init() {}

  public static func == (a: Self, b: Self) -> Bool {
    a.versions.elementsEqual(b.versions, by: ==) && (a.hasMore, a.epoch, a.last) == (b.hasMore, b.epoch, b.last)
  }
  public func hash(into hasher: inout Hasher) { hasher.combine(last) }
}
