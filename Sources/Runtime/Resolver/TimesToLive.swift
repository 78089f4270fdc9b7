/// The shortest time to live among the answers of a DNS message (RFC 1035 §4.1), in seconds. c-ares parses the records but does
/// not return the times of NAPTR and SRV. Nil if the message is malformed.
func shortestTimeToLive(_ message: UnsafeBufferPointer<UInt8>) -> UInt32? {
  var at = 12
  func word(_ offset: Int) -> Int? {
    guard offset >= 0, offset + 1 < message.count else { return nil }
    return Int(message[offset]) << 8 | Int(message[offset + 1])
  }
  /// Skips a name: labels up to a zero, or a pointer.
  func skipName() -> Bool {
    while at < message.count {
      let length = message[at]
      if length == 0 {
        at += 1
        return true
      }
      if length & 0xc0 == 0xc0 {
        at += 2
        return at <= message.count
      }
      guard length & 0xc0 == 0 else { return false }
      at += 1 + Int(length)
    }
    return false
  }
  guard let questions = word(4), let answers = word(6) else { return nil }
  for _ in 0..<min(questions, Limits.records) {
    guard skipName() else { return nil }
    at += 4
  }
  var shortest: UInt32?
  for _ in 0..<min(answers, Limits.records) {
    guard skipName(), let high = word(at + 4), let low = word(at + 6), let length = word(at + 8) else { return shortest }
    let time = UInt32(high) << 16 | UInt32(low)
    // RFC 2181 §8: a time with the top bit set counts as zero
    shortest = min(shortest ?? .max, time >> 31 == 1 ? 0 : time)
    at += 10 + length
  }
  return shortest
}
