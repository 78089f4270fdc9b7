import Bytes

/// Values of `kid` that tokens have named and no fetched key has.
///
/// | a `kid` | and the keys were fetched | then |
/// |---|---|---|
/// | seen for the first time, or a minute ago | – | it is awaited: keys are fetched |
/// | seen before | not since | it is awaited |
/// | seen before | since | it is refused |
///
/// Anybody can make up a `kid`, so the table is bounded, and the oldest gives way: then a token is asked to come again one time more than it would
/// have to. How often keys are fetched for all of this is not decided here (`KeyRefresh`).
struct UnknownKeys {
  enum Verdict { case awaited, refused }
  private var seen: [String: Instant] = [:]
  /// The same, oldest first; `next` is where the next one goes once there are as many as may be.
  private var order: [String] = []
  private var next = 0

  var count: Int { seen.count }

  /// - Parameter fetchedAt: when the last fetch that brought keys began.
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
