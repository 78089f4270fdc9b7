/// Why a call is over, for `reportCall(with:endedAt:reason:)`.
public enum CXCallEndedReason: Int, Sendable { case failed = 1, remoteEnded, unanswered, answeredElsewhere, declinedElsewhere }
