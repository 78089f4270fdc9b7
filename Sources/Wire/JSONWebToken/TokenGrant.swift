/// The claim `trunkline` of a login token: numbers, limits and diversions that its signer grants to the user. The
/// configuration decides which of them are accepted; this type defines the claim's format and bounds.
///
///     { "sub": "alice", …, "iat": 1790000000,
///       "trunkline": { "numbers": [ "+15551230001" ], "name": "Alice", "max_calls": 2, "allow": [ "+1" ],
///                      "diversions": { "no_answer": { "number": "+15551230009", "after": 15 } } } }
public struct TokenGrant: Hashable, Sendable {
  /// Where calls go that no device answers: exactly one of `user`, `number` and `code`.
  public struct Diversion: Hashable, Sendable {
    public var user: String?
    public var number: String?
    public var code: Int?
    /// Seconds.
    public var after: Int?
    public var showsCaller = false
    public init(user: String? = nil, number: String? = nil, code: Int? = nil, after: Int? = nil) {
      (self.user, self.number, self.code, self.after) = (user, number, code, after)
    }
  }

  /// What is wrong, with its path: `numbers[3]: is no number`.
  public struct Fault: Error, Hashable, Sendable, CustomStringConvertible {
    public var description: String
    public init(_ path: String, _ what: String) { description = "trunkline\(path.isEmpty ? "" : ".")\(path): \(what)" }
  }

  /// The user's numbers, at most `Limits.grantNumbers`; the first is the caller number of the user's calls.
  public var numbers: [String]
  public var name: String?
  /// The account of all `numbers`.
  public var account: String?
  /// Prefixes of numbers that the user may dial; nil: not in the claim.
  public var allow: [String]?
  public var maxCalls: Int?
  public var callsPerHour: Int?
  /// Whether the user's calls are recorded; nil: not in the claim.
  public var record: Bool?
  /// By trigger, in the configuration's spelling.
  public var diversions: [String: Diversion]
  /// `iat` of the token, which may have a fraction, in milliseconds since 1970; 0 without one. The later of two tokens wins.
  /// Not part of the claim's JSON.
  public var issuedAt: Int64

  public init(
    numbers: [String] = [], name: String? = nil, account: String? = nil, allow: [String]? = nil, maxCalls: Int? = nil,
    callsPerHour: Int? = nil, diversions: [String: Diversion] = [:], issuedAt: Int64 = 0
  ) {
    (self.numbers, self.name, self.account, self.allow) = (numbers, name, account, allow)
    (self.maxCalls, self.callsPerHour, self.diversions) = (maxCalls, callsPerHour, diversions)
    self.issuedAt = issuedAt
  }

  /// The triggers of diversions.
  public static let triggers: Set<String> = ["unreached", "no_answer", "busy", "declined", "media_failed"]
}

extension TokenGrant: Codable {
  private struct Key: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init?(intValue: Int) { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init(_ text: String) { stringValue = text }
  }

  /// Reads members of one object and reports where one is wrong. An unknown member is a fault, so that a misspelt `numbers`
  /// is not read as absent.
  private struct Members {
    let values: KeyedDecodingContainer<Key>
    let path: String

    init(_ decoder: any Decoder, _ path: String, known: Set<String>) throws(Fault) {
      guard let values = try? decoder.container(keyedBy: Key.self) else { throw Fault(path, "is not an object") }
      (self.values, self.path) = (values, path)
      for key in values.allKeys.map(\.stringValue).sorted() where !known.contains(key) {
        throw Fault(self.path(String(key.prefix(40))), "is not known here: one of \(known.sorted().joined(separator: ", "))")
      }
    }

    func path(_ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }

    func read<Value: Decodable>(_ name: String, expected: String, as _: Value.Type = Value.self) throws(Fault) -> Value? {
      guard values.contains(Key(name)) else { return nil }
      guard let value = try? values.decode(Value.self, forKey: Key(name)) else { throw Fault(path(name), "is not \(expected)") }
      return value
    }

    func text(_ name: String, spaces: Bool = true) throws(Fault) -> String? {
      guard let text = try read(name, expected: "a string", as: String.self) else { return nil }
      let isPlain = text.unicodeScalars.allSatisfy { $0.value >= (spaces ? 32 : 33) && $0.value != 127 }
      guard !text.isEmpty, text.utf8.count <= Limits.grantTextBytes, isPlain else {
        throw Fault(
          path(name), "must have 1 to \(Limits.grantTextBytes) bytes without control characters\(spaces ? "" : " or spaces")")
      }
      return text
    }

    func integer(_ name: String, _ range: ClosedRange<Int>) throws(Fault) -> Int? {
      guard let value = try read(name, expected: "an integer", as: Int.self) else { return nil }
      guard range.contains(value) else { throw Fault(path(name), "is not within \(range.lowerBound)…\(range.upperBound)") }
      return value
    }

    func numbers(_ name: String, beginnings: Bool = false) throws(Fault) -> [String]? {
      guard let list = try read(name, expected: "a list of strings", as: [String].self) else { return nil }
      guard list.count <= Limits.grantNumbers else { throw Fault(path(name), "has more than \(Limits.grantNumbers) entries") }
      for (index, number) in list.enumerated() where !TokenGrant.isNumber(number, beginning: beginnings) {
        throw Fault("\(path(name))[\(index)]", "is not a number: 1 to 15 digits, with + in front of a country code")
      }
      return list
    }
  }

  private static func isNumber(_ text: String, beginning: Bool = false) -> Bool {
    let digits = text.hasPrefix("+") ? text.dropFirst() : text[...]
    return (beginning ? 0...15 : 1...15).contains(digits.utf8.count) && digits.utf8.allSatisfy { (48...57).contains($0) }
  }

  /// Throws `Fault`.
  public init(from decoder: any Decoder) throws {
    let all = try Members(
      decoder, "", known: ["numbers", "name", "account", "allow", "max_calls", "calls_per_hour", "record", "diversions"])
    numbers = try all.numbers("numbers") ?? []
    var seen: Set<String> = []
    for (index, number) in numbers.enumerated() where !seen.insert(number).inserted {
      throw Fault("numbers[\(index)]", "is given twice")
    }
    name = try all.text("name")
    account = try all.text("account", spaces: false)
    allow = try all.numbers("allow", beginnings: true)
    maxCalls = try all.integer("max_calls", 0...1_000)
    callsPerHour = try all.integer("calls_per_hour", 0...10_000)
    record = try all.read("record", expected: "a boolean")
    issuedAt = 0
    diversions = [:]
    guard all.values.contains(Key("diversions")) else { return }
    guard let container = try? all.values.superDecoder(forKey: Key("diversions")) else { return }
    let triggers = try Members(container, "diversions", known: Self.triggers)
    for key in triggers.values.allKeys {
      let row = try Members(
        triggers.values.superDecoder(forKey: key), "diversions.\(key.stringValue)",
        known: ["user", "number", "code", "after", "show_caller"])
      diversions[key.stringValue] = try Self.diversion(row, key.stringValue)
    }
  }

  private static func diversion(_ row: Members, _ trigger: String) throws(Fault) -> Diversion {
    var out = Diversion()
    out.user = try row.text("user")
    out.number = try row.text("number")
    if let number = out.number, !isNumber(number) { throw Fault(row.path("number"), "is not a number") }
    out.code = try row.integer("code", 400...699)
    guard [out.user != nil, out.number != nil, out.code != nil].count(where: { $0 }) == 1 else {
      throw Fault(row.path, "needs exactly one of user, number, code")
    }
    out.after = try row.integer("after", 1...600)
    if out.after != nil, trigger != "unreached", trigger != "no_answer" {
      throw Fault(row.path("after"), "goes with unreached and no_answer")
    }
    out.showsCaller = try row.read("show_caller", expected: "a boolean") ?? false
    return out
  }

  public func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: Key.self)
    if !numbers.isEmpty { try values.encode(numbers, forKey: Key("numbers")) }
    try values.encodeIfPresent(name, forKey: Key("name"))
    try values.encodeIfPresent(account, forKey: Key("account"))
    try values.encodeIfPresent(allow, forKey: Key("allow"))
    try values.encodeIfPresent(maxCalls, forKey: Key("max_calls"))
    try values.encodeIfPresent(callsPerHour, forKey: Key("calls_per_hour"))
    try values.encodeIfPresent(record, forKey: Key("record"))
    guard !diversions.isEmpty else { return }
    var triggers = values.nestedContainer(keyedBy: Key.self, forKey: Key("diversions"))
    for (trigger, diversion) in diversions {
      var row = triggers.nestedContainer(keyedBy: Key.self, forKey: Key(trigger))
      try row.encodeIfPresent(diversion.user, forKey: Key("user"))
      try row.encodeIfPresent(diversion.number, forKey: Key("number"))
      try row.encodeIfPresent(diversion.code, forKey: Key("code"))
      try row.encodeIfPresent(diversion.after, forKey: Key("after"))
      if diversion.showsCaller { try row.encode(true, forKey: Key("show_caller")) }
    }
  }
}
