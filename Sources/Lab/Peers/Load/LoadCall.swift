import TrunklineBytes

/// One bridged call of a load run, with both ends.
final class LoadCall {
  enum Phase { case waiting, settingUp, up, ending, over }
  let number: Int
  let isOutgoing: Bool
  let trunk: TrunkLoadLeg
  let app: AppLoadLeg
  let isSampled: Bool
  var phase = Phase.waiting
  var startedAt = Instant.zero
  var setUp: Duration?
  /// Audio from the app at the trunk, and from the trunk at the app.
  var heardByTrunk = SampledAudio()
  var heardByApp = SampledAudio()
  var endedByTrunk: Bool { number % 2 == 0 }

  init(number: Int, isOutgoing: Bool, isSampled: Bool, trunk: TrunkLoadLeg, app: AppLoadLeg) {
    (self.number, self.isOutgoing, self.isSampled, self.trunk, self.app) = (number, isOutgoing, isSampled, trunk, app)
  }

  /// Speech from here on need not be received.
  func endScoring() {
    heardByApp.callEnds()
    heardByTrunk.callEnds()
  }

  /// The number that the app dials, which contains the call's number.
  var dialled: String { "+1777" + String(1_000_000 + number) }
  static func number(dialled text: String) -> Int? {
    guard text.hasPrefix("+1777"), let value = Int(text.dropFirst(5)), value >= 1_000_000 else { return nil }
    return value - 1_000_000
  }
}
