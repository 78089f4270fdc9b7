import Bytes

/// Whether what an edge sends has waited: in the sockets of a process that stood still, or on a connection that was cut. An edge asks every 2 s
/// whether this node takes calls, and sends an INVITE on that has no 100 after 2 s; what comes first after a longer silence is as old as that.
struct EdgeRhythm {
  private struct Beat {
    var last: Instant
    /// It has asked twice in a row.
    var isRegular = false
    var staleUntil: Instant?
  }

  private static let silence = Duration.milliseconds(3_500)
  /// Until what has waited is read: less than until the edge has asked again.
  private static let reading = Duration.seconds(1)
  /// Of edges, of which there are a few, with a connection or two.
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
      (beat.isRegular, beat.staleUntil) = (false, now + Self.reading)
    }
    beat.last = now
    beats[flow] = beat
  }

  func isStale(_ flow: Flow, at now: Instant) -> Bool { beats[flow]?.staleUntil.map { now < $0 } ?? false }
}
