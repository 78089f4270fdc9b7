import AppProtocol
import CallFlow

/// How a call came out, as ITU-T E.425 counts: answered ÷ all is the answer-seizure ratio (ASR); answered, busy, no_answer, abandoned
/// and rejected ÷ all the network-effectiveness ratio (NER), which called parties do not lower.
enum SeizureOutcome: String {
  case answered, busy, abandoned, rejected, failed
  case noAnswer = "no_answer"

  init(_ record: CallRecord) {
    if record.connectedMs > 0 || record.times[CallStage.connected.rawValue] != nil {
      self = .answered
      return
    }
    self =
      switch record.end.reason {
      case .busy, .busyElsewhere: .busy
      case .unanswered: .noAnswer
      case .callerCancelled, .localEnd, .remoteHangup, .answeredElsewhere: .abandoned
      case .declined, .declinedElsewhere, .dnd, .blocked, .diverted: .rejected
      case .mediaTimeout, .mediaFailed, .networkLost, .trunkLost, .trunkFailed, .notFound, .forbidden, .codec, .auth, .overload,
        .server, .gatewayRestart, .unknown:
        .failed
      }
  }
}

extension CallRecord {
  /// Seconds from our INVITE to the first sign of the called party; nil for incoming calls, and without a sign.
  var postDialDelay: Double? {
    guard direction == .outgoing, let sent = times[CallStage.inviteSent.rawValue] else { return nil }
    let signs = [CallStage.ringing, .progress, .connected].compactMap { times[$0.rawValue] }
    return signs.min().map { Double(max(0, $0 - sent)) / 1_000 }
  }

  /// The side from which nothing came in a call that had time for it.
  var silentSide: CallSide? {
    guard connectedMs >= 5_000, let fromTrunk, let fromApp, (fromTrunk.packets == 0) != (fromApp.packets == 0) else { return nil }
    return fromTrunk.packets == 0 ? .trunk : .app
  }
}
