/// How long a response may be reused by its own headers (RFC 9111 §5.2.2).
public enum CacheLifetime {
  /// Seconds of `max-age`, less the time under way that Age states; 0 for `no-store` and `no-cache`. Nil: Cache-Control has no
  /// directive that is understood. The shortest of several values counts.
  public static func seconds(cacheControl: String?, age: String? = nil) -> Int? {
    guard let cacheControl else { return nil }
    var shortest: Int?
    for directive in cacheControl.utf8.split(separator: UInt8(ascii: ",")) {
      let parts = directive.split(separator: UInt8(ascii: "="), maxSplits: 1).map { text(of: $0) }
      switch parts.first {
      case "no-store", "no-cache": return 0
      case "max-age":
        guard parts.count == 2, let seconds = number(parts[1]) else { continue }
        shortest = min(shortest ?? .max, seconds)
      default: continue
      }
    }
    guard let shortest else { return nil }
    return max(0, shortest - (age.flatMap { number(text(of: $0.utf8[...])) } ?? 0))
  }

  /// A directive's name or value: in lower case, without the spaces and quotes around it.
  private static func text(of bytes: some BidirectionalCollection<UInt8>) -> String {
    func isAround(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == UInt8(ascii: "\"") }
    var out = Array(bytes)
    while let last = out.last, isAround(last) { out.removeLast() }
    return String(decoding: out.drop { isAround($0) }, as: UTF8.self).lowercased()
  }

  /// delta-seconds; a larger number counts as 2³¹ (§1.2.2).
  private static func number(_ text: String) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
    return min(Int(text) ?? .max, 1 << 31)
  }
}
