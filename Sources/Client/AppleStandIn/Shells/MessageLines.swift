import Foundation
import TrunklineBytes

/// Frames of the socket between an app's process and a handset: a JSON value and a line feed. Any split of the stream gives the
/// same messages. Lines that are no message are counted and skipped; a line that is too long ends the connection.
public struct MessageLines: Sendable {
  /// Bytes of a line, without its line feed.
  public static let limit = 65_536

  /// The line is longer than `limit`.
  public struct TooLong: Error {}

  /// Lines that were no message.
  public private(set) var unknown = 0
  private var rest: [UInt8] = []

  public init() {}

  /// The messages that are complete with these bytes.
  public mutating func append<Message: Decodable>(_ bytes: some Sequence<UInt8>, as type: Message.Type) throws(TooLong)
    -> [Message]
  {
    rest += bytes
    var (messages, start): ([Message], Int) = ([], 0)
    while let end = rest[start...].firstIndex(of: 10) {
      guard end - start <= Self.limit else { throw TooLong() }
      if let message = try? JSONDecoder().decode(type, from: Data(rest[start..<end])) {
        messages.append(message)
      } else {
        unknown += 1
      }
      start = end + 1
    }
    rest.removeFirst(start)
    guard rest.count <= Self.limit else { throw TooLong() }
    return messages
  }

  /// Nil for a line longer than `limit`.
  public static func line(_ message: some Encodable) -> [UInt8]? {
    guard let data = try? JSONEncoder().encode(message), data.count <= limit else { return nil }
    return [UInt8](data) + [10]
  }
}
