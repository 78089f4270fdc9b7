/// A decoder over an object without fields: what an absent `d` reads as.
struct NoFields: Decoder {
  var codingPath: [any CodingKey] { [EnvelopeKey.d] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> {
    KeyedDecodingContainer(Container<Key>())
  }
  func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw missing }
  func singleValueContainer() throws -> any SingleValueDecodingContainer { throw missing }

  private var missing: DecodingError { .valueNotFound(Any.self, .init(codingPath: codingPath, debugDescription: "missing")) }

  private struct Container<Key: CodingKey>: KeyedDecodingContainerProtocol {
    var codingPath: [any CodingKey] { [EnvelopeKey.d] }
    var allKeys: [Key] { [] }
    func contains(_ key: Key) -> Bool { false }
    func decodeNil(forKey key: Key) throws -> Bool { throw missing(key) }
    func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T { throw missing(key) }
    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) throws -> KeyedDecodingContainer<
      Nested
    > {
      throw missing(key)
    }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { throw missing(key) }
    func superDecoder() throws -> any Decoder { NoFields() }
    func superDecoder(forKey key: Key) throws -> any Decoder { NoFields() }
    private func missing(_ key: Key) -> DecodingError {
      .keyNotFound(key, .init(codingPath: codingPath, debugDescription: "missing"))
    }
  }
}
