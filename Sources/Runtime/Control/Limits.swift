/// The named limits of this module, with every bound on a queue, table or message.
enum Limits {
  /// Inputs of other threads that wait for control; a further post is refused and counted, and the sender decides what that
  /// means.
  static let inbox = 32_768
  /// Inputs read from the inbox in one step, so that sockets and timers are not starved.
  static let inboxPerStep = 512
  /// Questions of other threads that wait for control, those read in one step and in one second (the rest waits in pauses), and
  /// the devices, calls or nodes that one question reads. A page of trunks is shorter, as a trunk contains its servers.
  static let questions = 1_024
  static let questionsPerStep = 4
  static let questionsPerSecond = 2_000
  static let questionPause = Duration.milliseconds(2)
  static let questionEntries = 256
  static let questionTrunks = 32
  /// For the asker: questions that wait for an answer, work that waits for its thread, and requests under way per client.
  static let asked = 1_024
  static let askerWork = 4_096
  static let requestsPerClient = 16
  /// Calls that move to other addresses of this machine in one step, and the pause until the next: 3,200 calls a second at most.
  static let movedCalls = 16
  static let movePause = Duration.milliseconds(5)
  /// How often the wall clock is compared with the monotonic one, and the loop's delay measured.
  static let clockCheck = Duration.seconds(1)
  /// A node that has not answered SIP OPTIONS in this time is silent.
  static let probe = Duration.seconds(1)
  /// How often the loop's delay is sampled for `OverloadDetector`, and the number of samples that it uses.
  static let pressureCheck = Duration.milliseconds(100)
  static let delaySamples = 10
  /// Mean delay of the control loop above which new calls are refused, and below which they are accepted again. A step takes well
  /// under a millisecond: at 200 ms the machine is short of CPU, and calls would be set up seconds late.
  static let delayHigh = Duration.milliseconds(200)
  static let delayLow = Duration.milliseconds(50)
  /// A longer sample counts as this.
  static let longestDelay = Duration.seconds(1)
  /// How long datagrams arrive faster than they are read before calls are refused: a caller's INVITE waits in the kernel already,
  /// and a refusal costs a fraction of an accepted call.
  static let backlog = Duration.milliseconds(40)
  /// Memory in use, in percent of the limit.
  static let memoryHighPercent: Int64 = 90
  static let memoryLowPercent: Int64 = 85
  /// How long `/readyz` reports overload after the last refusal was due.
  static let overloadHold = Duration.seconds(2)
  /// Label sets of a counter by trunk; further ones are counted under `other`.
  static let trunkLabelSets = 4_096
  /// A call without packets from a side for this many milliseconds after it was connected had no audio from that side.
  static let audioExpected: Int64 = 5_000
}
