/// The directory's entry for one number. The two lists are independent, as they are for iOS: a number may be blocked, identified,
/// or both.
public struct DirectoryEntry: Sendable, Hashable {
  /// The caller's number.
  public var number: PhoneNumber
  /// Shown by the call screen; nil or empty: the number is not identified. Cut to `DirectoryLimits.labelBytes`.
  public var label: String?
  /// Calls of this number do not ring.
  public var isBlocked: Bool

  /// A number with a label, a block, or both; with neither it is left out.
  public init(_ number: PhoneNumber, label: String? = nil, isBlocked: Bool = false) {
    (self.number, self.label, self.isBlocked) = (number, label, isBlocked)
  }
}

/// The two lists that iOS keeps.
public enum DirectoryList: Sendable, Hashable, CaseIterable {
  /// Numbers whose calls do not ring.
  case blocking
  /// Numbers with a label for the call screen.
  case identification
}

/// A change of the directory as a server sends it: a part of the full directory, or a difference to a version. A large change
/// consists of several chunks with the same `version` and `base`, which are applied together: `DirectoryStore.apply`.
public struct DirectoryChunk: Sendable, Hashable {
  /// Removes one number from one list.
  public struct Removal: Sendable, Hashable {
    /// The number to remove.
    public var number: PhoneNumber
    /// The list that it is removed from; it may stay on the other.
    public var list: DirectoryList
    /// Removes a number from a list.
    public init(_ number: PhoneNumber, from list: DirectoryList) { (self.number, self.list) = (number, list) }
  }
  /// The directory's version after this change; versions only grow.
  public var version: UInt64
  /// The version that this is the difference to; nil: the full directory.
  public var base: UInt64?
  /// In any order; applied before the additions of the same chunk. A number that is not in the list is not an error.
  public var removes: [Removal]
  /// In any order; the last label of a number wins.
  public var adds: [DirectoryEntry]

  /// A change, or a part of one.
  public init(version: UInt64, base: UInt64? = nil, removes: [Removal] = [], adds: [DirectoryEntry] = []) {
    (self.version, self.base, self.removes, self.adds) = (version, base, removes, adds)
  }
}

/// Limits of the files; a reader refuses more.
public enum DirectoryLimits {
  /// A label's UTF-8 bytes; a longer one is cut before the character that does not fit.
  public static let labelBytes = 255
  /// Labels that occur more than once are stored once, up to this many.
  public static let sharedLabels = 1_024
  /// Additions and removals of one call to the store, before duplicates are dropped.
  public static let changes = 20_000_000
  /// Default for the entries of one extension: Apple documents an error for too many, but no number; others report 2 million.
  public static let entriesPerExtension = 1_900_000
}
