import TrunklineBytes

/// Detects requests of an edge that have waited: in the sockets of a process that was stopped, or on a connection that was cut.
/// An edge queries every 2 s whether this node accepts calls, and forwards an INVITE elsewhere that has no 100 after 2 s; the
/// first requests after a longer silence may be as old as the silence.
struct EdgeRhythm {
  private struct Beat {
    var last: Instant
    /// A query came without a silence before it.
    var isRegular = false
    var staleUntil: Instant?
  }

  private static let silence = Duration.milliseconds(3_500)
  /// How long requests that have waited are read; shorter than the time to the edge's next query.
  private static let reading = Duration.seconds(1)
  /// Flows that are remembered. There are a few edges, with a connection or two each.
  private static let flows = 64
  private var beats: [Flow: Beat] = [:]

  /// A request of an edge outside any dialog.
  mutating func received(_ flow: Flow, isQuestion: Bool, at now: Instant) {
    guard var beat = beats[flow] else {
      if beats.count >= Self.flows, let oldest = beats.min(by: { $0.value.last < $1.value.last })?.key { beats[oldest] = nil }
      beats[flow] = Beat(last: now)
      return
    }
    if now - beat.last < Self.silence {
      if isQuestion { beat.isRegular = true }
    } else if beat.isRegular {
      beat.isRegular = false
      beat.staleUntil = now + Self.reading
    }
    beat.last = now
    beats[flow] = beat
  }

  func isStale(_ flow: Flow, at now: Instant) -> Bool { beats[flow]?.staleUntil.map { now < $0 } ?? false }
}
