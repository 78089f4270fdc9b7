import AppleStandIn
import CallFlow
import CallModel
import Testing
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines
import TrunklineSIPDialogs

/// Every order of events of a telephone's calls, through the SDK's machine, the stand-in's and the gateway's.
@Suite struct HandsetOrderTests {
  /// As long as a message's way there and back, so that events meet on the wire; and long enough for all that one event causes.
  private static let gaps = [Duration.milliseconds(15), .milliseconds(350)]
  private static var settings: [HandsetRun.Setting] {
    gaps.flatMap { gap in [true, false].map { HandsetRun.Setting(isOpen: $0, gap: gap) } }
  }
  private static var insertions: [HandsetRun.Setting] {
    HandsetRun.inserted.flatMap { extra in
      [true, false].map { HandsetRun.Setting(isOpen: $0, gap: gaps[1], extra: extra) }
    }
  }

  private func explore(_ setting: HandsetRun.Setting, atLeast runs: Int) {
    var answered = 0
    var failures: [String] = []
    let count = HandsetRun.explore(setting) { run, problems in
      if run.world.records.first?.times[CallStage.connected.rawValue] != nil { answered += 1 }
      if !problems.isEmpty { failures.append("\(run.path.map(\.rawValue)): \(problems)") }
      return failures.count < 4
    }
    #expect(failures.isEmpty, "\(setting): \(failures.joined(separator: "\n"))")
    // a user that declines has not answered
    #expect(count >= runs && (answered > 0 || setting.extra == .decline), "too little was played: \(count), answered \(answered)")
  }

  @Test(arguments: settings)
  func `INV: every order of push, offer, tap, cancel, ready, fail, timeout and drop, through SDK, stand-in and gateway`(
    setting: HandsetRun.Setting
  ) { explore(setting, atLeast: 100) }

  @Test(arguments: insertions)
  func `INV: activation, decline, kill and relaunch, reset, a second push at every step of every order`(
    setting: HandsetRun.Setting
  ) { explore(setting, atLeast: 30) }

  private static var pairs: [HandsetTwoCallRun.Setting] {
    [.init(gap: .milliseconds(6), activates: true), .init(gap: .milliseconds(400), activates: false)]
  }

  @Test(arguments: pairs)
  func
    `INV: two calls to depth 5: second call, Hold & Accept, End & Accept, decline, swap, hold, hang-up by either side, in every order`(
      setting: HandsetTwoCallRun.Setting
    )
  {
    var failures: [String] = []
    let count = HandsetTwoCallRun.explore(setting, depth: 5) { run, problems in
      if !problems.isEmpty { failures.append("\(run.path.map(\.rawValue)): \(problems)") }
      return failures.count < 4
    }
    #expect(failures.isEmpty, "\(setting): \(failures.joined(separator: "\n"))")
    #expect(count >= 300, "too little was played: \(count)")
  }
}
