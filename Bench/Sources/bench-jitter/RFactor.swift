import TrunklineRTP

/// What delay and missing audio cost a conversation together: the transmission rating R of ITU-T G.107 (E-model) for a path without echo.
enum RFactor {
  /// Packetisation and the other leg, added to what play-out takes: a mouth-to-ear delay is judged, not a buffer.
  static let restOfPathMilliseconds = 40.0
}

extension ReplayResult {
  var rFactor: Double {
    OpinionScore(
      codec: .g711, lossFraction: concealed, oneWayDelayMilliseconds: meanDelay + RFactor.restOfPathMilliseconds
    ).rating
  }
}
