// The named limits of this module; every bound on a queue, table or message stands here.
enum Limits {
  static let metricFamilies = 500
  /// Samples rendered of one family; the rest is left out.
  static let samplesPerFamily = 2_000
  /// Lines that wait for the writer; beyond that they are dropped and counted.
  static let waitingLogLines = 8_192
  /// Lines written with one system call.
  static let logLinesPerWrite = 64
  /// What waits has so long to be taken while the process ends.
  static let lastLogTime = Duration.seconds(1)
  /// Between two checks whether the process ends, while the log has no reader.
  static let logWaitMilliseconds: Int32 = 100
  /// Lines of one kind that one who causes them has, at once and a second; of all who cause such a line; kinds and causes that are remembered, and
  /// as much of their text.
  static let logBurstPerCause = 20.0
  static let logLinesPerCause = 2.0
  static let logBurstPerKind = 200.0
  static let logLinesPerKind = 20.0
  static let logKinds = 4_096
  static let logKindBytes = 128
  /// Between two looks at what was left out and is told by no other line.
  static let logSweep = Duration.seconds(10)
  static let logMessageBytes = 2_048
  static let logValueBytes = 512
  static let logFields = 32
}
