/// `dir.get`: the device's directory, or what has changed in it. It changes nothing; a repeat is answered anew.
public struct DirectoryGet: Hashable, Sendable, Codable {
  /// The version that the device has; nil: none.
  public var have: Int?
  /// To go on where an answer ended: the version that it named, and its `next`.
  public var version: Int?
  public var after: Int64?
  public init(have: Int? = nil, version: Int? = nil, after: Int64? = nil) {
    (self.have, self.version, self.after) = (have, version, after)
  }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    have = try values.optionalNumber(.have, in: Limits.directoryVersion)
    version = try values.optionalNumber(.version, in: Limits.directoryVersion)
    after = try values.optionalNumber(.after, in: Limits.directoryNumber).map(Int64.init)
  }
}

/// What the `ok` of `dir.get` says of the parts that follow it.
public struct DirectoryAnswer: Hashable, Sendable, Codable {
  /// Of the directory as it is now.
  public var version: Int
  /// The version that the parts are the difference to; nil: they are the full directory.
  public var from: Int?
  /// How many `dir.full` or `dir.delta` follow. 0, and no `next`: the device has this version.
  public var parts: Int
  /// There is more: ask again with `version` and this for `after`.
  public var next: Int64?
  public init(version: Int, from: Int? = nil, parts: Int, next: Int64? = nil) {
    (self.version, self.from, self.parts, self.next) = (version, from, parts, next)
  }
}

/// `dir.full` (without `from`) and `dir.delta`: a part, ascending by number. Country code and digits of a number are one integer (E.164
/// without `+`).
public struct DirectoryPart: Hashable, Sendable, Codable {
  /// A number and what the call screen shows for it.
  public struct Name: Hashable, Sendable, Codable {
    /// The number.
    public var n: Int64
    /// Its label.
    public var l: String
    /// A number with its label.
    public init(_ n: Int64, _ l: String) { (self.n, self.l) = (n, l) }
  }
  /// Of the directory, once all parts are there.
  public var version: Int
  /// The version that is changed; nil: this is a part of the full directory.
  public var from: Int?
  /// Numbers that are blocked, or not any more.
  public var block: [Int64]?
  /// See ``block``.
  public var unblock: [Int64]?
  /// Numbers with a label, which replaces the one before; and those that have none any more.
  public var identify: [Name]?
  /// See ``identify``.
  public var unidentify: [Int64]?
  /// A part; an absent list is empty.
  public init(
    version: Int, from: Int? = nil, block: [Int64]? = nil, unblock: [Int64]? = nil, identify: [Name]? = nil,
    unidentify: [Int64]? = nil
  ) {
    (self.version, self.from, self.block, self.unblock) = (version, from, block, unblock)
    (self.identify, self.unidentify) = (identify, unidentify)
  }
}

/// `dir.changed`: the directory of this device has another version.
public struct DirectoryChanged: Hashable, Sendable, Codable {
  public var version: Int
  public init(version: Int) { self.version = version }
}
