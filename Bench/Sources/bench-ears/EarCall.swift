/// One call, as ears.py measured it. Down is from the trunk to the app; times are milliseconds.
struct EarCall: Decodable {
  /// Tells one gateway from another.
  var build: String
  var row: String
  var client: String
  var bridge: String
  var number: Int
  var attempt: Int
  var pesqDown: [Double]
  var pesqUp: [Double]
  var earDownMs: Double?
  var wobbleDownMs: Double?
  var wobbleUpMs: Double?
  var clippedDownMs: Double?
  var concealedPct: Double?
  var targetMs: Double?
  var transitDownMs: Double?
  var transitUpMs: Double?
  var transitDownMovesMs: Double?
  var transitUpMovesMs: Double?
  var laterDown: Int
  var kbpsDown: Double
  var kbpsUp: Double
  var copies: Double?
  var repairedMs: Double?
  /// From the second packet on: how late the client sent, at the most.
  var latestEverUpMs: Double?
  var harnessLateMs: Double
  var bridgeCores: Double
  var record: Record?

  /// What the gateway wrote of what came from each side.
  struct Record: Decodable {
    var fromTrunk: Stream?
    var fromApp: Stream?
  }
  struct Stream: Decodable {
    var concealedMs: Double
  }
  /// Of both directions; nil for another bridge, and where carrier or client sent more than 5 ms late themselves.
  var madeUpMs: Double? {
    guard harnessLateMs <= 5, latestEverUpMs ?? 0 <= 5 else { return nil }
    return record.map { ($0.fromTrunk?.concealedMs ?? 0) + ($0.fromApp?.concealedMs ?? 0) }
  }
}
