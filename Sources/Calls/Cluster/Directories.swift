/// A directory that is to have another version in the shared store. Its parts are there already, under names of their own
/// (`SharedStoreRequest.stageDirectoryParts`); this one step makes the version the current one.
public struct DirectoryCommit: Hashable, Sendable {
  public var scope: String
  /// The version that the shared store has to have; 0: none.
  public var expected: Int64
  /// Later than any that the shared store ever had, of whatever directory.
  public var version: Int64
  /// What the version consists of, for its readers.
  public var head: [UInt8]
  /// Staged parts that are kept from now on, and parts of the version before that go after `Limits.staged`.
  public var made: [String]
  public var dropped: [String]
  public init(
    _ scope: String, from expected: Int64, to version: Int64, head: [UInt8], made: [String] = [], dropped: [String] = []
  ) {
    (self.scope, self.expected, self.version, self.head) = (scope, expected, version, head)
    (self.made, self.dropped) = (made, dropped)
  }
}

/// What a `DirectoryCommit` came to. Nothing has changed but with `done`.
public enum CommitOutcome: Int64, Hashable, Sendable {
  /// The shared store has another version than the one that was expected.
  case conflict = 0
  case done = 1
  /// Some directory has a version as late already.
  case late = 2
  /// A part is missing: it was staged too long ago.
  case missing = 3
  /// No more directories.
  case full = 4
}

/// Versions of directories in the shared store.
public struct DirectoryVersions: Hashable, Sendable {
  /// Ascending by version, each directory once.
  public var versions: [(scope: String, version: Int64)] = []
  /// More of them follow behind the last one.
  public var hasMore = false
  /// Another text: the shared store has lost its directories, or is another. Empty: it has none.
  public var epoch = ""
  /// The highest version that it ever had.
  public var last: Int64 = 0
  public init() {}

  public static func == (a: Self, b: Self) -> Bool {
    a.versions.elementsEqual(b.versions, by: ==) && (a.hasMore, a.epoch, a.last) == (b.hasMore, b.epoch, b.last)
  }
  public func hash(into hasher: inout Hasher) { hasher.combine(last) }
}
