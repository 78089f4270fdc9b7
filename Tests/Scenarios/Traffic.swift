import TrunklineAppProtocol
import TrunklineBytes

/// What passes between a handset, its gateway, its app's backend and the push service, counted in sliding windows: nothing may answer itself.
final class Traffic {
  enum Kind: String, CaseIterable { case sent, received, connection, post, tokenRequest, push }

  /// What a kind may reach within `window`: by itself, and for each thing that happened within `memory`.
  struct Bound {
    var alone: Int
    var perEvent: Int
  }
  static let window = Duration.seconds(10)
  /// What an event causes may last so long: a reconnect with its back-off, a call that rings out.
  static let memory = Duration.seconds(60)

  private var times: [Kind: [Instant]] = [:]
  private var events: [Instant] = []
  /// The most of each kind in one window, with the events that were near.
  private(set) var most: [Kind: (count: Int, events: Int)] = [:]
  private(set) var total: [Kind: Int] = [:]
  private(set) var excesses: [String] = []
  /// Refusals of the gateway for want of room.
  private(set) var refusals: [ErrorCode: Int] = [:]
  var bounds: [Kind: Bound] = [:]

  func happened(_ now: Instant) {
    events.append(now)
    events.removeAll { $0 + Self.memory < now }
  }

  func note(_ kind: Kind, _ now: Instant) {
    total[kind, default: 0] += 1
    var recent = times[kind] ?? []
    recent.removeAll { $0 + Self.window <= now }
    recent.append(now)
    times[kind] = recent
    let near = events.count { $0 + Self.memory >= now }
    if recent.count > most[kind]?.count ?? 0 { most[kind] = (recent.count, near) }
    guard let bound = bounds[kind], recent.count > bound.alone + bound.perEvent * near, excesses.count < 5 else { return }
    excesses.append("\(recent.count) × \(kind.rawValue) in \(Self.window), \(near) events near, at \(now)")
  }

  /// A process that has just begun knows of no request before it.
  func launched() { times[.tokenRequest] = [] }

  func refused(_ code: ErrorCode) {
    if code == .tooMany || code == .overload { refusals[code, default: 0] += 1 }
  }
}

/// The app's own backend, asked for a login token: what strangers' backends do.
struct TokenBackend {
  enum Habit: CaseIterable {
    /// A new token each time; one that is kept until it ends; one that is kept for ever.
    case new, cached, stale
    case fails, hangs, slow
    /// One that another key has signed; one that ended a minute ago.
    case forged, ended
  }
  var habit = Habit.new
  /// Of a new token, from now; 5 s to an hour.
  var seconds: Int64 = 3_600
  private var kept: (text: String, expires: Int64)?

  /// - Parameter now: seconds since 1970.
  /// - Returns: nil: there is none.
  mutating func answer(_ sign: (Int64) -> String, now: Int64) -> (token: (text: String, expires: Int64)?, after: Duration) {
    let soon = Duration.milliseconds(150)
    switch habit {
    case .new, .slow:
      kept = (sign(now + seconds), now + seconds)
      return (kept, habit == .slow ? .seconds(8) : soon)
    case .cached:
      if let kept, kept.expires > now { return (kept, soon) }
      kept = (sign(now + seconds), now + seconds)
      return (kept, soon)
    case .stale:
      if kept == nil { kept = (sign(now + seconds), now + seconds) }
      return (kept, soon)
    case .fails: return (nil, soon)
    case .hangs: return (nil, .seconds(30))
    case .forged: return (("e30.e30.AAAA", now + seconds), soon)
    case .ended: return ((sign(now - 60), now - 60), soon)
    }
  }
}
