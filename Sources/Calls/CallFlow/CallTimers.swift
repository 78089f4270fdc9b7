import CallModel
import TrunklineBytes

/// The deadlines of a call. Each exists once; setting it again moves it.
enum CallTimer: Int, CaseIterable {
  /// 180 or INVITE is sent without the journal's confirmation.
  case journal
  /// The call was not answered: incoming ring window, outgoing Timer C.
  case ring
  /// The webhook has not answered.
  case route
  /// No device has reported that it rings, and a rule diverts such calls.
  case unreached
  /// A device has not responded to its offer: it is pushed to.
  case push
  /// 180 after the first accepted push.
  case early180
  /// The media gate did not open.
  case gate
  /// The winner's DTLS failed and it may still restart.
  case restart
  /// `media.active` is treated as sent.
  case mediaActive
  /// The app leg stayed silent.
  case appGrace
  /// A silent trunk is pinged again, or did not answer.
  case trunkPing
  case longestCall
  case softPause
  /// A device without a socket did not reconnect.
  case vanished
  /// The verifier did not answer.
  case verification
  /// The record is written without the final statistics.
  case finalStatistics
}

/// The deadlines of one call.
struct CallTimers {
  private var due = [Instant](repeating: .distantFuture, count: CallTimer.allCases.count)

  subscript(timer: CallTimer) -> Instant? {
    get { due[timer.rawValue] == .distantFuture ? nil : due[timer.rawValue] }
    set { due[timer.rawValue] = newValue ?? .distantFuture }
  }

  /// The earliest deadline; nil if nothing waits.
  var next: Instant? { due.min().flatMap { $0 == .distantFuture ? nil : $0 } }

  mutating func clear() { for index in due.indices { due[index] = .distantFuture } }

  /// Dequeues one timer that is due, earliest first.
  mutating func popDue(at now: Instant) -> CallTimer? {
    guard let earliest = due.indices.min(by: { due[$0] < due[$1] }), due[earliest] <= now, due[earliest] != .distantFuture else {
      return nil
    }
    due[earliest] = .distantFuture
    return CallTimer(rawValue: earliest)
  }
}
