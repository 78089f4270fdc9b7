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
  /// Between two looks at whether the process ends, while nobody reads the log.
  static let logWaitMilliseconds: Int32 = 100
  static let logMessageBytes = 2_048
  static let logValueBytes = 512
  static let logFields = 32
}
