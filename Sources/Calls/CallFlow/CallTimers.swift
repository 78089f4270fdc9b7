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

/// A timer that is set. The earliest comes first; of several at one instant, the first in `CallTimer`.
struct DueTimer: Comparable {
  let timer: CallTimer
  let at: Instant

  init?(_ timer: CallTimer, _ at: Instant?) {
    guard let at else { return nil }
    (self.timer, self.at) = (timer, at)
  }

  static func < (a: DueTimer, b: DueTimer) -> Bool { (a.at, a.timer.rawValue) < (b.at, b.timer.rawValue) }

  static func earliest(_ timers: DueTimer?...) -> DueTimer? { timers.lazy.compactMap(\.self).min() }
}
