/// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  /// Inputs of other threads waiting for control; a post beyond that is refused and counted, and the sender decides what it means.
  static let inbox = 32_768
  /// Inputs taken from the inbox in one turn, so that sockets and timers are not starved.
  static let inboxPerStep = 512
  /// Questions of other threads that wait for control, those taken in one turn and in one second (the rest waits in pauses), and what one looks at: devices, calls, nodes. A page of trunks is
  /// shorter, as a trunk has its servers.
  static let questions = 1_024
  static let questionsPerStep = 4
  static let questionsPerSecond = 2_000
  static let questionPause = Duration.milliseconds(2)
  static let questionEntries = 256
  static let questionTrunks = 32
  /// Of the asker: questions that wait for an answer, work that waits for its thread, and requests of one client under way.
  static let asked = 1_024
  static let askerWork = 4_096
  static let requestsPerClient = 16
  /// Calls that follow other addresses of this machine in one turn, and the pause until the next: 3,200 calls a second at most.
  static let movedCalls = 16
  static let movePause = Duration.milliseconds(5)
  /// How often the wall clock is compared with the monotonic one, and the loop's delay measured.
  static let clockCheck = Duration.seconds(1)
  /// A node that has not answered SIP OPTIONS in this time is silent.
  static let probe = Duration.seconds(1)
  /// How often the loop's delay is taken for `OverloadDetector`, and how many of them it looks at.
  static let pressureCheck = Duration.milliseconds(100)
  static let delaySamples = 10
  /// Mean delay of the control loop from which new calls are refused, and below which they are taken again. A turn takes well under
  /// a millisecond: at 200 ms the machine is short of CPU, and calls would be set up seconds late.
  static let delayHigh = Duration.milliseconds(200)
  static let delayLow = Duration.milliseconds(50)
  /// The most that one sample counts for.
  static let longestDelay = Duration.seconds(1)
  /// Datagrams have come faster than they are read for so long: a caller's INVITE waits in the kernel already, and what is refused costs a
  /// fraction of what is taken.
  static let backlog = Duration.milliseconds(40)
  /// Memory in use, in percent of the limit.
  static let memoryHighPercent: Int64 = 90
  static let memoryLowPercent: Int64 = 85
  /// How long `/readyz` says so after the last refusal was due.
  static let overloadHold = Duration.seconds(2)
  /// Label sets of a counter by trunk; what comes beyond is counted under `other`.
  static let trunkLabelSets = 4_096
  /// Connected for so many milliseconds, a call without packets from a side had no audio from there.
  static let audioExpected: Int64 = 5_000
}
