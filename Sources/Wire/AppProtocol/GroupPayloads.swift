public import TrunklineBytes

/// `call.group`: this call and `with` hear each other from now on, and so do all that either is in a group with. Without `with`
/// this call leaves its group.
public struct CallGroup: Hashable, Sendable, Codable {
  public var with: Identifier?
  public init(with: Identifier? = nil) { self.with = with }
}

/// `call.translate`: the device translates the speech of this call, or no longer does.
public struct CallTranslate: Hashable, Sendable, Codable {
  /// Which translator: the system's, or one of the app's own.
  public enum Engine: String, Sendable, Codable { case `default`, custom }
  public var on: Bool
  /// Languages of this side and of the other one (BCP 47), at most `Limits.languageCharacters` each.
  public var local: String?
  public var remote: String?
  public var engine: Engine?
  public init(on: Bool, local: String? = nil, remote: String? = nil, engine: Engine? = nil) {
    (self.on, self.local, self.remote, self.engine) = (on, local, remote, engine)
  }
  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    on = try values.decode(Bool.self, forKey: .on)
    local = try values.optionalText(.local, limit: Limits.languageCharacters)
    remote = try values.optionalText(.remote, limit: Limits.languageCharacters)
    // an engine of a later version that is unknown here is accepted, and left out
    engine = try values.decodeIfPresent(String.self, forKey: .engine).flatMap { Engine(rawValue: $0) }
  }
}
