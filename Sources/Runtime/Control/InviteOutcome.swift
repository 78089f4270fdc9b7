import CallFlow
import CallModel

/// The outcome of a call's INVITE. ASR is `answered` of all; NER is `answered`, `busy`, `unanswered` and `rejected` of all: the
/// network did its part, whatever the called user decided (ITU-T E.411, E.425).
enum InviteOutcome: String, CaseIterable, Sendable {
  case answered, busy, unanswered, rejected
  /// The caller gave up before it rang.
  case abandoned
  case failed
}

/// The side whose audio was received during a call.
enum AudioHeard: String, CaseIterable, Sendable {
  case both
  case neither = "none"
  case trunkOnly = "trunk_only"
  case appOnly = "app_only"
}

extension CallRecord {
  /// Nil for a call whose INVITE was never sent.
  var outcome: InviteOutcome? {
    if times[CallStage.connected.rawValue] != nil || times[CallStage.numberAnswered.rawValue] != nil { return .answered }
    if direction == .outgoing, times[CallStage.inviteSent.rawValue] == nil { return nil }
    let hasRung = times[CallStage.ringing.rawValue] != nil
    switch end.reason {
    case .busy, .busyElsewhere: return .busy
    case .unanswered, .dnd: return .unanswered
    case .declined, .declinedElsewhere, .blocked, .diverted: return .rejected
    case .callerCancelled, .localEnd: return hasRung ? .unanswered : .abandoned
    default: return .failed
    }
  }

  /// Seconds from our INVITE to the first 18x or 2xx; nil for incoming calls and if neither came.
  var postDialDelay: Double? {
    guard direction == .outgoing, let sent = times[CallStage.inviteSent.rawValue] else { return nil }
    let stages: [CallStage] = [.ringing, .forwarded, .progress, .numberAnswered, .connected]
    guard let first = stages.compactMap({ times[$0.rawValue] }).min() else { return nil }
    return max(0, Double(first - sent) / 1_000)
  }

  /// Nil for calls that were too short to judge, without statistics, or without a connected device: answered by a recording, or
  /// by a number whose user did not join.
  var audioHeard: AudioHeard? {
    guard connectedMs >= Limits.audioExpected, let fromTrunk, let fromApp else { return nil }
    guard times[CallStage.numberAnswered.rawValue] == nil || times[CallStage.connected.rawValue] != nil else { return nil }
    guard diversions?.contains(where: { $0.recording != nil }) != true else { return nil }
    return switch (fromTrunk.packets > 0, fromApp.packets > 0) {
    case (true, true): .both
    case (true, false): .trunkOnly
    case (false, true): .appOnly
    case (false, false): .neither
    }
  }
}
