/// `dir.get`: requests the device's directory, or its changes. It changes nothing; a repeat is answered again.
public struct DirectoryGet: Hashable, Sendable, Codable {
  /// The version that the device has; nil: none.
  public var have: Int?
  /// To continue after a partial answer: its `version`, and its `next`.
  public var version: Int?
  public var after: Int64?
  /// With `have`: the `of` received with that version.
  public var of: String?
  public init(have: Int? = nil, version: Int? = nil, after: Int64? = nil, of: String? = nil) {
    (self.have, self.version, self.after, self.of) = (have, version, after, of)
  }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    have = try values.optionalNumber(.have, in: Limits.directoryVersion)
    version = try values.optionalNumber(.version, in: Limits.directoryVersion)
    after = try values.optionalNumber(.after, in: Limits.directoryNumber).map(Int64.init)
    of = try values.decodeIfPresent(String.self, forKey: .of)
  }
}

/// `dir.find`: names of the device's directory that contain these letters, or numbers that contain these digits, for a list while
/// typing. It changes nothing; a repeat is answered again.
public struct DirectoryFind: Hashable, Sendable, Codable {
  /// Words that a name must all contain, or at least three digits.
  public var text: String
  /// How many names at most; nil: 20.
  public var limit: Int?
  /// A search.
  public init(text: String, limit: Int? = nil) { (self.text, self.limit) = (text, limit) }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    text = try values.text(.text, limit: Limits.findCharacters)
    limit = try values.optionalNumber(.limit, in: Limits.findNames)
  }
}

/// The answer to `dir.get`, in its `ok`; it describes the parts that follow.
public struct DirectoryAnswer: Hashable, Sendable, Codable {
  /// The directory's current version.
  public var version: Int
  /// The version that the parts are the difference to; nil: they are the full directory.
  public var from: Int?
  /// If many gateways share directories: identifies those that the version belongs to. If it differs, versions cannot be
  /// compared.
  public var of: String?
  /// How many `dir.full` or `dir.delta` follow. 0, and no `next`: the device has this version.
  public var parts: Int
  /// More follows: request again with `version` and this for `after`.
  public var next: Int64?
  public init(version: Int, from: Int? = nil, of: String? = nil, parts: Int, next: Int64? = nil) {
    (self.version, self.from, self.of, self.parts, self.next) = (version, from, of, parts, next)
  }
}

/// `dir.full` (without `from`) and `dir.delta`: a part, ascending by number. Country code and digits of a number are one integer
/// (E.164 without `+`).
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
  /// The directory's version once all parts are received.
  public var version: Int
  /// The version that this part changes; nil: this is a part of the full directory.
  public var from: Int?
  /// See ``DirectoryAnswer``: to be stored with the version.
  public var of: String?
  /// Numbers to block, and numbers to unblock.
  public var block: [Int64]?
  /// See ``block``.
  public var unblock: [Int64]?
  /// Numbers with a label, which replaces the previous one, and numbers whose label is removed.
  public var identify: [Name]?
  /// See ``identify``.
  public var unidentify: [Int64]?
  /// A part; an absent list is empty.
  public init(
    version: Int, from: Int? = nil, of: String? = nil, block: [Int64]? = nil, unblock: [Int64]? = nil, identify: [Name]? = nil,
    unidentify: [Int64]? = nil
  ) {
    (self.version, self.from, self.of, self.block, self.unblock) = (version, from, of, block, unblock)
    (self.identify, self.unidentify) = (identify, unidentify)
  }
}

/// `dir.changed`: the directory of this device has a new version.
public struct DirectoryChanged: Hashable, Sendable, Codable {
  public var version: Int
  /// See `DirectoryAnswer`.
  public var of: String?
  public init(version: Int, of: String? = nil) { (self.version, self.of) = (version, of) }
}
