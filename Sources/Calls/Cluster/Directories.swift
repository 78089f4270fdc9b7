/// A directory that is to have another version in the engine. Its parts are there already (`EngineRequest.stageDirectory`).
public struct DirectoryCommit: Hashable, Sendable {
  public enum Form: Hashable, Sendable {
    /// The parts are changes from `expected` to `version`.
    case change
    /// The parts replace the directory. Of the version that the engine has already: its changes are kept for nodes that are behind.
    case whole
  }
  public var scope: String
  /// The version that the engine has to have; 0: none.
  public var expected: Int64
  public var version: Int64
  public var form: Form
  /// The name under which the parts were staged, and how many there are.
  public var staged: String
  public var parts: Int
  /// What no node has told the engine before: its version has to be later than any that the engine ever had, and nothing may have come behind the
  /// place `after`: whoever gives something has taken all that was given before.
  public var isNew: Bool
  public var after: Int64
  public init(
    _ scope: String, from expected: Int64, to version: Int64, _ form: Form, staged: String, parts: Int, isNew: Bool,
    after: Int64
  ) {
    (self.scope, self.expected, self.version, self.form) = (scope, expected, version, form)
    (self.staged, self.parts, self.isNew, self.after) = (staged, parts, isNew, after)
  }
}

/// What a `DirectoryCommit` came to.
public enum CommitOutcome: Int64, Hashable, Sendable {
  /// The engine has another version than the one that was expected, or of some directory a later one.
  case conflict = 0
  case done = 1
  /// It keeps no more changes of this directory: it has to come whole.
  case mustBeWhole = 2
  /// Parts are missing: they were staged too long ago.
  case notStaged = 3
  /// No more directories.
  case full = 4
}

/// Versions of directories in the engine.
public struct DirectoryVersions: Hashable, Sendable {
  /// In the order in which they came, each once.
  public var versions: [(scope: String, version: Int64)] = []
  /// The place in that order of the last one; `since` of the next question.
  public var place: Int64 = 0
  /// More of them follow behind the last one.
  public var hasMore = false
  /// Another text: the engine has lost its directories, or is another. Empty: it has none.
  public var epoch = ""
  /// The highest version that it ever had.
  public var last: Int64 = 0
  public init() {}

  public static func == (a: Self, b: Self) -> Bool {
    a.versions.elementsEqual(b.versions, by: ==) && (a.place, a.hasMore, a.epoch, a.last) == (b.place, b.hasMore, b.epoch, b.last)
  }
  public func hash(into hasher: inout Hasher) { hasher.combine(last) }
}
