import CallModel
import TrunklineBytes

/// A query of a webhook for a call's users.
struct RouteQuery {
  var hook: Routing.Hook
  var toward: IPAddress
  var diversions: Diversions
}

/// The query that a call waits for; its first end counts.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | none | `ask` | pending until the deadline | – |
/// | pending | `end`: answered, late, or the call is over | none | the query |
/// | none | `end` | none | nil: the answer is late |
struct PendingRoute {
  private var query: RouteQuery?
  private var deadline: Instant?

  mutating func ask(_ query: RouteQuery, until deadline: Instant) { (self.query, self.deadline) = (query, deadline) }

  @discardableResult mutating func end() -> RouteQuery? {
    defer { (query, deadline) = (nil, nil) }
    return query
  }

  var isPending: Bool { query != nil }
  /// The deadline has passed: the fallback follows.
  mutating func expired() { deadline = nil }
  var next: DueTimer? { DueTimer(.route, deadline) }
}
