// Bounds on the fields of `d`. A violation makes the message malformed (`err{badRequest}`), never the connection.

extension KeyedDecodingContainer {
  func problem(_ key: Key, _ rule: String) -> DecodingError {
    .dataCorruptedError(forKey: key, in: self, debugDescription: rule)
  }

  func text(_ key: Key, limit: Int = Limits.textCharacters) throws -> String {
    let value = try decode(String.self, forKey: key)
    guard !value.isEmpty, value.utf8.count <= limit else { throw problem(key, "1 to \(limit) bytes of text") }
    return value
  }

  func optionalText(_ key: Key, limit: Int = Limits.textCharacters) throws -> String? {
    guard let value = try decodeIfPresent(String.self, forKey: key) else { return nil }
    guard value.utf8.count <= limit else { throw problem(key, "at most \(limit) bytes of text") }
    return value
  }

  func optionalNumber(_ key: Key, in range: ClosedRange<Int>) throws -> Int? {
    guard contains(key), try !decodeNil(forKey: key) else { return nil }
    guard let value = try? decode(Int.self, forKey: key) else { throw problem(key, "a whole number") }
    guard range.contains(value) else { throw problem(key, "\(range.lowerBound) to \(range.upperBound)") }
    return value
  }

  func generation(_ key: Key) throws -> Int? { try optionalNumber(key, in: Limits.generation) }

  func optionalList(_ key: Key) throws -> [String]? {
    guard let value = try decodeIfPresent([String].self, forKey: key) else { return nil }
    guard value.count <= Limits.listEntries, value.allSatisfy({ $0.utf8.count <= Limits.textCharacters }) else {
      throw problem(key, "at most \(Limits.listEntries) texts of \(Limits.textCharacters) bytes")
    }
    return value
  }
}
