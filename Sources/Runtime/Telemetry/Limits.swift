// The named limits of this module: every bound on a queue, table or message.
enum Limits {
  static let metricFamilies = 500
  /// Samples rendered of one family; further ones are omitted.
  static let samplesPerFamily = 2_000
  /// Lines that wait for the writer; beyond that they are dropped and counted.
  static let waitingLogLines = 8_192
  /// Lines written with one system call.
  static let logLinesPerWrite = 64
  /// How long waiting lines may be written while the process ends.
  static let lastLogTime = Duration.seconds(1)
  /// How often the end of the process is checked while the log is not read.
  static let logWaitMilliseconds: Int32 = 100
  /// Lines of one kind: per cause at once and per second, then over all causes; further below, how many kinds and causes are
  /// remembered, and how much of their text.
  static let logBurstPerCause = 20.0
  static let logLinesPerCause = 2.0
  static let logBurstPerKind = 200.0
  static let logLinesPerKind = 20.0
  static let logKinds = 4_096
  static let logKindBytes = 128
  /// How often omitted lines are reported that no later line has reported.
  static let logSweep = Duration.seconds(10)
  static let logMessageBytes = 2_048
  static let logValueBytes = 512
  static let logFields = 32
}
