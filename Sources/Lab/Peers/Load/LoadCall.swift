import Bytes

/// One bridged call of a load run, seen from both ends.
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
  /// The trunk hears the app, the app hears the trunk.
  var heardByTrunk = SampledAudio()
  var heardByApp = SampledAudio()
  var endedByTrunk: Bool { number % 2 == 0 }

  init(number: Int, isOutgoing: Bool, isSampled: Bool, trunk: TrunkLoadLeg, app: AppLoadLeg) {
    (self.number, self.isOutgoing, self.isSampled, self.trunk, self.app) = (number, isOutgoing, isSampled, trunk, app)
  }

  /// What is said from here on need not be heard.
  func endScoring() {
    heardByApp.callEnds()
    heardByTrunk.callEnds()
  }

  /// What the app dials: the call's number can be told from it.
  var dialled: String { "+1777" + String(1_000_000 + number) }
  static func number(dialled text: String) -> Int? {
    guard text.hasPrefix("+1777"), let value = Int(text.dropFirst(5)), value >= 1_000_000 else { return nil }
    return value - 1_000_000
  }
}
