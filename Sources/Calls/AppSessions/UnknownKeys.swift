import TrunklineBytes

/// Values of `kid` that tokens have named and no fetched key has.
///
/// | a `kid` | and the keys were fetched | then |
/// |---|---|---|
/// | seen for the first time, or a minute ago | – | it is awaited: keys are fetched |
/// | seen before | not since | it is awaited |
/// | seen before | since | it is refused |
///
/// Anyone can invent a `kid`, so the table is bounded and the oldest is dropped: its token must then be sent once more than
/// necessary. `KeyRefresh` decides how often keys are fetched.
struct UnknownKeys {
  enum Verdict { case awaited, refused }
  private var seen: [String: Instant] = [:]
  /// The same, oldest first; `next` is the index for the next one once the table is full.
  private var order: [String] = []
  private var next = 0

  var count: Int { seen.count }

  /// - Parameter fetchedAt: when the last fetch that returned keys began.
  mutating func verdict(of kid: String, fetchedAt: Instant, at now: Instant) -> Verdict {
    if let first = seen[kid], now - first < Limits.unknownKeyTime { return fetchedAt > first ? .refused : .awaited }
    if seen.updateValue(now, forKey: kid) != nil { return .awaited }
    if order.count < Limits.unknownKeys {
      order.append(kid)
    } else {
      seen[order[next]] = nil
      order[next] = kid
      next = (next + 1) % order.count
    }
    return .awaited
  }
}
